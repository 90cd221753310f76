"""Applies the rules by which a source topic is mirrored or not, in their order. Pure."""

from sparkmirror.domain.explanation import Verdict
from sparkmirror.policies.replication import is_cycle
from sparkmirror.settings.source import MirrorSourceSettings


def verdicts(settings: MirrorSourceSettings, topic: str) -> list[Verdict]:
    """The verdicts of all rules, also after a refusal. `should_replicate` wants all of them to pass."""
    return [_filter(settings, topic), _internal(settings, topic), _cycle(settings, topic)]


def first_refusal(settings: MirrorSourceSettings, topic: str) -> Verdict | None:
    """The rule that keeps the topic from being mirrored; None if it is mirrored."""
    return next((verdict for verdict in verdicts(settings, topic) if not verdict.passes), None)


def _filter(settings: MirrorSourceSettings, topic: str) -> Verdict:
    is_heartbeats = settings.policy.is_heartbeats_topic(topic)
    if is_heartbeats and settings.heartbeats_replication:
        return Verdict(
            "filter", passes=True, why="heartbeats need no filter's consent (heartbeats.replication.enabled)"
        )
    refused = settings.topic_filter.refused_by(topic)
    if refused is None:
        return Verdict("filter", passes=True, why="the topic filter selects it")
    why = f"{refused} leaves it out" if "(" in refused else f"{refused} doesn't select it"
    if is_heartbeats:
        why += "; heartbeats.replication.enabled is false"
    return Verdict("filter", passes=False, why=why)


def _internal(settings: MirrorSourceSettings, topic: str) -> Verdict:
    if settings.policy.is_internal_topic(topic):
        return Verdict(
            "internal", passes=False, why="by its name it is an internal topic, of Kafka or of MirrorMaker"
        )
    return Verdict("internal", passes=True, why="it is no internal topic")


def _cycle(settings: MirrorSourceSettings, topic: str) -> Verdict:
    target = settings.flow.target
    if is_cycle(settings.policy, topic, target):
        return Verdict("cycle", passes=False, why=f"by its name it came from {target}, the target")
    return Verdict("cycle", passes=True, why=f"by its name it did not come from {target}")
