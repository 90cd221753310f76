"""Which ACLs of the source the target lacks."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from sparkmirror.connectors.source import MirrorSourceSettings, remote_topic, should_replicate
from sparkmirror.domain.acls import AclBinding, target_acls


@dataclass(frozen=True, slots=True)
class AclPlan:
    """`unavailable` says why there is nothing to sync: a cluster without an authorizer."""

    creates: tuple[AclBinding, ...] = ()
    unavailable: str | None = None


def plan_acls(
    settings: MirrorSourceSettings, source: Iterable[AclBinding], target: Collection[AclBinding]
) -> AclPlan:
    wanted = target_acls(
        source,
        lambda topic: should_replicate(settings, topic),
        lambda topic: remote_topic(settings, topic),
    )
    return AclPlan(tuple(binding for binding in wanted if binding not in target))
