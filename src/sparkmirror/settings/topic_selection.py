"""Selects the source's topics by the rules of a mirror, in their order, and names their copies. Pure."""

import string
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise
from typing import Final, NamedTuple, TypeAlias

from sparkmirror.domain.errors import PluginError
from sparkmirror.domain.explanation import Verdict
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.quantities import some_of
from sparkmirror.domain.state_topics import is_state_topic
from sparkmirror.policies.replication import ReplicationPolicy, is_cycle, trail
from sparkmirror.settings.source import MirrorSourceSettings

_NAME_MAX: Final = 249
_LEGAL: Final = frozenset(string.ascii_letters + string.digits + "._-")


def should_replicate(settings: MirrorSourceSettings, topic: str) -> bool:
    """Return whether a topic of the source cluster is mirrored. Raises PluginError."""
    return refusal(settings, topic) is None


def refusal(settings: MirrorSourceSettings, topic: str) -> Verdict | None:
    """Return the first rule that keeps a topic from being mirrored, or None. Raises PluginError."""
    judged = (rule(settings, topic) for rule in _RULES)
    return next((verdict for verdict in judged if not verdict.passes), None)


def why_not(settings: MirrorSourceSettings, topic: str) -> str | None:
    """Return the reason why a topic is not mirrored; None if it is. Raises PluginError."""
    refused = refusal(settings, topic)
    return None if refused is None else refused.why


def verdicts(settings: MirrorSourceSettings, topic: str) -> list[Verdict]:
    """Return the verdicts of all rules, also those after a refusal."""
    found: list[Verdict] = []
    for rule in _RULES:
        try:
            found.append(rule(settings, topic))
        except PluginError as error:
            found.append(Verdict(BlockKind.PLUGIN.value, passes=False, why=str(error)))
    return found


def remote_topic(settings: MirrorSourceSettings, topic: str) -> str:
    """Return the name that a source topic has on the target. Raises PluginError."""
    return settings.policy.format_remote_topic(settings.flow.source, topic)


def is_copied_back(settings: MirrorSourceSettings, topic: str) -> bool:
    """Return whether the same file's opposite flow copies to a topic what this one would copy from it."""
    opposite = settings.opposite
    try:
        return (
            opposite is not None
            and remote_topic(settings, topic) == topic == remote_topic(opposite, topic)
            and should_replicate(opposite, topic)
        )
    except PluginError:
        return False


Pairs: TypeAlias = Sequence[tuple[str, str]]
"""Source topic and remote topic of what is mirrored, sorted."""


class BlockKind(Enum):
    """The causes for which a topic that is selected can't be mirrored."""

    PLUGIN = "plug-in"
    NAME = "name"
    MERGED = "merged topics"


class Blocked(NamedTuple):
    """The cause why a selected topic is not mirrored, and what to do about it."""

    kind: BlockKind
    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class Selected:
    """The topics of a source that are mirrored, and those that are selected but can't be, by name.

    `own_copies` would be, but have the names of copies from this very source.
    """

    pairs: Pairs = ()
    blocked: Mapping[str, Blocked] = field(default_factory=dict)
    own_copies: Sequence[str] = ()

    @property
    def topics(self) -> frozenset[str]:
        """Every topic that is selected, whether it can be mirrored or not."""
        return frozenset(topic for topic, _ in self.pairs) | self.blocked.keys()


NOTHING_SELECTED: Final = Selected()


def by_cause(blocked: Mapping[str, Blocked]) -> Mapping[Blocked, Sequence[str]]:
    """Group topics by what blocks them."""
    topics: dict[Blocked, list[str]] = {}
    for topic, cause in blocked.items():
        topics.setdefault(cause, []).append(topic)
    return topics


class Selection:
    """Selects the mirrored topics of a source that is listed repeatedly.

    The policy and the filter are asked once about each name: twenty thousand of them take a while.
    """

    def __init__(
        self,
        settings: MirrorSourceSettings,
        begun: Callable[[Collection[str]], Collection[str]] | None = None,
    ) -> None:
        """`begun` returns which of some topics have positions; it is asked of those with one remote name."""
        self._settings = settings
        self._begun = begun or (lambda _: ())
        self._known: dict[str, str | Blocked | Verdict] = {}
        self._first: dict[tuple[str, ...], str | None] = {}

    def select(self, source: Iterable[str]) -> Selected:
        """Select from the names of all topics of the source."""
        known = self._known
        self._known = {
            topic: known[topic] if topic in known else self._judged(topic) for topic in sorted(source)
        }
        named = {topic: remote for topic, remote in self._known.items() if isinstance(remote, str)}
        blocked = {topic: why for topic, why in self._known.items() if isinstance(why, Blocked)}
        blocked |= self._merged(named)
        returned = _own_copy(self._settings.flow.source)
        own = [topic for topic, refused in self._known.items() if refused == returned]
        return Selected([pair for pair in named.items() if pair[0] not in blocked], blocked, own)

    def _judged(self, topic: str) -> str | Blocked | Verdict:
        """Return the remote name, or the rule that leaves the topic out. A plug-in may fail for one name."""
        try:
            refused = refusal(self._settings, topic)
            if refused is not None:
                return refused
            remote = remote_topic(self._settings, topic)
        except PluginError as error:
            return Blocked(
                BlockKind.PLUGIN, str(error), "correct the plug-in, or add the topic to topics.exclude"
            )
        fault = _fault(remote)
        if fault is None:
            return remote
        why = f"its name on the target, {remote}, {fault}"
        return Blocked(BlockKind.NAME, why, "add the topic to topics.exclude")

    def _merged(self, named: Mapping[str, str]) -> dict[str, Blocked]:
        """Find topics that share a remote name. The only one of them that has positions is mirrored on."""
        sharing: dict[str, list[str]] = {}
        for topic, remote in named.items():
            sharing.setdefault(remote, []).append(topic)
        return {
            topic: Blocked(
                BlockKind.MERGED,
                f"the replication policy gives {' and '.join(topics)} one name, {remote}",
                "exclude all but one of them, or use a policy that tells them apart",
            )
            for remote, topics in sharing.items()
            if len(topics) > 1
            for topic in topics
            if topic != self._first_of(tuple(topics))
        }

    def _first_of(self, topics: tuple[str, ...]) -> str | None:
        if topics not in self._first:
            begun = self._begun(topics)
            self._first[topics] = next(iter(begun)) if len(begun) == 1 else None
        return self._first[topics]


def _fault(remote: str) -> str | None:
    """Return what is wrong with a topic's name, by Kafka's rules."""
    if len(remote) > _NAME_MAX:
        return f"has {len(remote)} characters and Kafka allows {_NAME_MAX}"
    if remote in ("", ".", ".."):
        return "is no name of a topic"
    if not _LEGAL.issuperset(remote):
        return "has characters other than letters, digits, '.', '_' and '-'"
    return None


def _filter(settings: MirrorSourceSettings, topic: str) -> Verdict:
    """Heartbeats need no filter's consent unless `heartbeats.replication.enabled` is false (KIP-1089)."""
    is_heartbeats = settings.policy.is_heartbeats_topic(topic)
    if is_heartbeats and settings.heartbeats_replication:
        return Verdict(
            "filter", passes=True, why="heartbeats need no filter's consent (heartbeats.replication.enabled)"
        )
    if settings.topic_filter.should_replicate(topic):
        return Verdict("filter", passes=True, why="the topic filter selects it")
    refused = settings.topic_filter.refused_by(topic) or "the topic filter"
    why = f"{refused} leaves it out" if "(" in refused else f"{refused} doesn't select it"
    if is_heartbeats:
        why += "; heartbeats.replication.enabled is false"
    return Verdict("filter", passes=False, why=why)


def _internal(settings: MirrorSourceSettings, topic: str) -> Verdict:
    """Refuse state topics by all their names, whatever the policy says: a copy of state makes new state."""
    policy = settings.policy
    if topic in settings.state_topics or any(map(is_state_topic, trail(policy, topic))):
        return Verdict("internal", passes=False, why="it holds the state of a mirror")
    if policy.is_internal_topic(topic):
        return Verdict(
            "internal", passes=False, why="by its name it is an internal topic, of Kafka or of MirrorMaker"
        )
    return Verdict("internal", passes=True, why="it is no internal topic")


def _cycle(settings: MirrorSourceSettings, topic: str) -> Verdict:
    source, target = settings.flow
    if is_cycle(settings.policy, topic, target):
        return Verdict("cycle", passes=False, why=f"by its name it came from {target}, the target")
    if _came_from(settings.policy, topic, source):
        return _own_copy(source)
    return Verdict("cycle", passes=True, why=f"by its name it did not come from {target}")


def _own_copy(source: Alias) -> Verdict:
    why = (
        f"it has the name of a copy from {source}, on {source} itself: another mirror uses the alias "
        f"{source} for a different cluster, or copies records back to where they came from"
    )
    return Verdict("cycle", passes=False, why=why)


def own_copies_text(topics: Sequence[str], source: Alias) -> str:
    """Say in one line why topics with the names of copies from their own cluster are left out."""
    return f"{some_of(topics)} on {source}: not mirrored: {_own_copy(source).why}"


def _came_from(policy: ReplicationPolicy, topic: str, alias: str) -> bool:
    """Return whether a name shows that its topic came from, or through, a cluster.

    Policies that keep names, such as Identity, call every topic a copy of itself: that shows nothing.
    """
    return any(policy.topic_source(copy) == alias for copy, _upstream in pairwise(trail(policy, topic)))


_RULES: Final[tuple[Callable[[MirrorSourceSettings, str], Verdict], ...]] = (_filter, _internal, _cycle)
