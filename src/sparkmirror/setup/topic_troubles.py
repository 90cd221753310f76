"""Makes the troubles of selected topics that are not mirrored, or not all of their partitions. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sparkmirror.domain.errors import AuthorizationError, KafkaError, TopicExistsError
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.kafka.wire.error_codes import (
    INVALID_REPLICATION_FACTOR,
    POLICY_VIOLATION,
    THROTTLING_QUOTA_EXCEEDED,
)
from sparkmirror.policies.admin_writes import Results
from sparkmirror.settings.topic_selection import Selected
from sparkmirror.setup.topic_plan import GrowTopic, NewTopic, SourceTopic, TopicPlan, throttled_creation

_ELSE: Final = "correct what it names, or add the topic to topics.exclude"


def is_throttled(error: KafkaError | None) -> bool:
    return error is not None and error.code == THROTTLING_QUOTA_EXCEEDED


def is_done(error: KafkaError | None) -> bool:
    """Whether it was created, or exists already: the listing may be older than the topic."""
    return error is None or isinstance(error, TopicExistsError)


def blocked(selected: Selected, source: Mapping[str, SourceTopic]) -> Iterator[Trouble]:
    """The topics whose names, or plug-ins, keep them from being mirrored."""
    for topic, why in selected.blocked.items():
        cause = Cause(TroubleWord.BLOCKED, Subject.TOPIC, why.why, why.remedy)
        yield Trouble(cause, topic, partitions=(0, source[topic].partitions))


def untold(errors: Mapping[str, KafkaError], source: Mapping[str, SourceTopic]) -> Iterator[Trouble]:
    """The topics that are not created since their configs can't be read."""
    for topic, error in errors.items():
        cause = Cause.of_error(TroubleWord.NOT_CREATED, Subject.TOPIC, topic, error)
        yield Trouble(cause, topic, partitions=(0, source[topic].partitions))


def refused(flow: Flow, plan: TopicPlan, results: Results) -> Iterator[Trouble]:
    """The topics that the target has not created, or not grown."""
    for new in plan.creates:
        yield from _not_made(flow, new, results[new.name])
    for grow in plan.grows:
        yield from _not_made(flow, grow, results[grow.name])


def _not_made(flow: Flow, change: NewTopic | GrowTopic, error: KafkaError | None) -> Iterable[Trouble]:
    if error is None or is_done(error):
        return
    word, first = (
        (TroubleWord.NOT_GROWN, change.existing)
        if isinstance(change, GrowTopic)
        else (TroubleWord.NOT_CREATED, 0)
    )
    if is_throttled(error):
        cause = Cause(TroubleWord.THROTTLED, Subject.TOPIC, throttled_creation(flow.target))
    else:
        cause = Cause.of_error(word, Subject.TOPIC, change.name, error, _remedy(flow, error))
    yield Trouble(cause, change.source, change.name, partitions=(first, change.partitions))


def _remedy(flow: Flow, error: KafkaError) -> str:
    """Return what to do besides what the error says."""
    if isinstance(error, AuthorizationError):
        return "or do it by hand"
    if error.code == INVALID_REPLICATION_FACTOR:
        return (
            f"set {flow}.replication.factor to what the brokers of {flow.target} allow, "
            "or to -1 for their default"
        )
    if error.code == POLICY_VIOLATION:
        return f"change the policy of {flow.target}, create it by hand, or add the topic to topics.exclude"
    return _ELSE
