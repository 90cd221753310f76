"""Selects the source's topics by the rules of a mirror, in their order, and names their copies. Pure."""

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from sparkmirror.domain.explanation import Verdict
from sparkmirror.domain.state_topics import is_state_topic
from sparkmirror.policies.replication import ReplicationPolicy, is_cycle, trail
from sparkmirror.settings.source import MirrorSourceSettings


def should_replicate(settings: MirrorSourceSettings, topic: str) -> bool:
    """Return whether a topic of the source cluster is mirrored. Raises PluginError."""
    return refusal(settings, topic) is None


def refusal(settings: MirrorSourceSettings, topic: str) -> Verdict | None:
    """Return the first rule that keeps a topic from being mirrored, or None. Raises PluginError."""
    return next((verdict for verdict in _verdicts(settings, topic) if not verdict.passes), None)


def why_not(settings: MirrorSourceSettings, topic: str) -> str | None:
    """Return the reason why a topic is not mirrored; None if it is. Raises PluginError."""
    refused = refusal(settings, topic)
    return None if refused is None else refused.why


def verdicts(settings: MirrorSourceSettings, topic: str) -> list[Verdict]:
    """Return the verdicts of all rules, also those after a refusal. Raises PluginError."""
    return list(_verdicts(settings, topic))


def remote_topic(settings: MirrorSourceSettings, topic: str) -> str:
    """Return the name that a source topic has on the target. Raises PluginError."""
    return settings.policy.format_remote_topic(settings.flow.source, topic)


def _verdicts(settings: MirrorSourceSettings, topic: str) -> Iterator[Verdict]:
    return (rule(settings, topic) for rule in _RULES)


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
        why = (
            f"by its name it is a copy of a topic of {source}, on {source} itself: another mirror uses the "
            f"alias {source} for another cluster, or copies there what came from {source}"
        )
        return Verdict("cycle", passes=False, why=why)
    return Verdict("cycle", passes=True, why=f"by its name it did not come from {target}")


def _came_from(policy: ReplicationPolicy, topic: str, alias: str) -> bool:
    """Return whether a name shows that its topic came from, or through, a cluster.

    Policies that keep names, such as Identity, call every topic a copy of itself: that shows nothing.
    """
    return any(policy.topic_source(copy) == alias for copy, _upstream in pairwise(trail(policy, topic)))


_RULES: Final[tuple[Callable[[MirrorSourceSettings, str], Verdict], ...]] = (_filter, _internal, _cycle)
