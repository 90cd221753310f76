"""Creates and alters topics without the configs that the target refuses, which it finds by asking.

For one config that it refuses a broker creates no topic and alters none, and its error need not name it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from sparkmirror.domain.errors import KafkaError, UnsupportedVersionError
from sparkmirror.domain.quantities import some_of
from sparkmirror.domain.topics import AlterConfigOp, TopicCreation
from sparkmirror.kafka.wire.error_codes import (
    INVALID_CONFIG,
    INVALID_REQUEST,
    POLICY_VIOLATION,
    THROTTLING_QUOTA_EXCEEDED,
)
from sparkmirror.policies.admin_writes import Results

_ABOUT_A_CONFIG: Final = frozenset({INVALID_CONFIG, INVALID_REQUEST, POLICY_VIOLATION})
_ASKED_MAX: Final = 200
"""Questions at a time: what they leave open is asked at the next attempt."""
_PASSES: Final = 2
"""A config may be accepted only beside one that comes behind it."""

Create: TypeAlias = Callable[[Sequence[TopicCreation]], Results]
Alter: TypeAlias = Callable[[Mapping[str, Sequence[AlterConfigOp]]], Results]
Configs: TypeAlias = Mapping[str, str]
RefusedConfigs: TypeAlias = Mapping[str, Mapping[str, KafkaError]]
"""The refused configs by topic of the target, each with the answer."""


def created_without(refused: RefusedConfigs) -> Iterator[tuple[str, str]]:
    """Return each config with a line about it and its topics; the answer is that to the first of them."""
    topics: dict[tuple[str, int], list[str]] = {}
    for topic, configs in sorted(refused.items()):
        for name, error in configs.items():
            topics.setdefault((name, error.code), []).append(topic)
    for (name, _), of in sorted(topics.items()):
        verb = "is" if len(of) == 1 else "are"
        yield name, f"{some_of(of)} {verb} created without the config {name}: {refused[of[0]][name]}"


class TopicCreations:
    """Creates topics, and remembers what the target has answered about their configs. One owner."""

    def __init__(self, create: Create, check: Create) -> None:
        """`check` validates creations as the target's brokers would, and creates nothing."""
        self._create = create
        self._check = check
        self._answers: dict[frozenset[tuple[str, str]], KafkaError | None] = {}
        self._suspects: dict[str, KafkaError] = {}
        self._left = 0

    def create(self, topics: Sequence[TopicCreation]) -> tuple[Results, RefusedConfigs]:
        """Return the results, and what the topics that could be created lack. Raises KafkaError."""
        self._left = _ASKED_MAX
        results = dict(self._create(topics))
        refused: dict[str, Mapping[str, KafkaError]] = {}
        for topic in topics:
            if topic.configs and _is_about_a_config(results[topic.name]):
                try:
                    refused[topic.name] = self._refused(topic)
                except KafkaError as unclear:
                    if unclear.code == THROTTLING_QUOTA_EXCEEDED:
                        results[topic.name] = unclear
        rest = [without(topic, refused[topic.name]) for topic in topics if refused.get(topic.name)]
        if rest:
            results |= self._create(rest)
        if any(_is_about_a_config(results[topic.name]) for topic in rest):
            self._answers.clear()  # the target judges otherwise than before
        return results, {topic.name: refused[topic.name] for topic in rest if results[topic.name] is None}

    def _refused(self, topic: TopicCreation) -> Mapping[str, KafkaError]:
        """Return the refused configs; none where the refusal has another reason. Raises KafkaError."""
        error = self._ask(topic, topic.configs)
        if error is None:
            return {}  # a plug-in's refusal
        known = {name: self._suspects[name] for name in topic.configs if name in self._suspects}
        if known and self._ask(topic, without(topic, known).configs) is None:
            return known
        for name in topic.configs:
            if self._ask(topic, without(topic, [name]).configs) is None:
                self._suspects[name] = error
                return {name: error}
        found = self._several(topic)
        self._suspects |= found
        return found

    def _several(self, topic: TopicCreation) -> Mapping[str, KafkaError]:
        """Add one config after the other to those that are accepted together."""
        if self._ask(topic, {}) is not None:
            return {}
        accepted: dict[str, str] = {}
        refused: dict[str, KafkaError] = {}
        for _ in range(_PASSES):
            for name in [name for name in topic.configs if name not in accepted]:
                error = self._ask(topic, {**accepted, name: topic.configs[name]})
                if error is None:
                    accepted[name] = topic.configs[name]
                    refused.pop(name, None)
                else:
                    refused[name] = error
        return refused

    def _ask(self, topic: TopicCreation, configs: Configs) -> KafkaError | None:
        """Return a refusal that is about configs. Raises KafkaError for others, or when asked too often."""
        question = frozenset(configs.items())
        if question not in self._answers:
            if not self._left:
                raise KafkaError("asked too often")
            self._left -= 1
            error = self._check([replace(topic, configs=configs)])[topic.name]
            if error is not None and not _is_about_a_config(error):
                raise error
            self._answers[question] = error
        return self._answers[question]


def _is_about_a_config(error: KafkaError | None) -> bool:
    return error is not None and error.code in _ABOUT_A_CONFIG


def without(topic: TopicCreation, names: Collection[str]) -> TopicCreation:
    kept = {name: value for name, value in topic.configs.items() if name not in names}
    return replace(topic, configs=kept)


def alter_configs(
    alter: Alter, changes: Mapping[str, Sequence[AlterConfigOp]]
) -> tuple[Mapping[str, KafkaError], RefusedConfigs]:
    """Alter configs; where brokers refuse a topic's together, one by one.

    Returns the errors of topics, and the refused configs of others. Raises KafkaError.
    """
    errors: dict[str, KafkaError] = {}
    one_by_one: dict[str, Sequence[AlterConfigOp]] = {}
    refused: dict[str, dict[str, KafkaError]] = {}
    for topic, error in alter(changes).items():
        if error is None:
            continue
        if isinstance(error, UnsupportedVersionError):
            raise error
        if not _is_about_a_config(error):
            errors[topic] = error
        elif len(changes[topic]) == 1:
            refused[topic] = {changes[topic][0].name: error}
        else:
            one_by_one[topic] = changes[topic]
    for number in range(max(map(len, one_by_one.values()), default=0)):
        turn = {topic: some[number : number + 1] for topic, some in one_by_one.items() if some[number:]}
        for topic, error in alter(turn).items():
            if error is not None:
                refused.setdefault(topic, {})[turn[topic][0].name] = error
    return errors, refused
