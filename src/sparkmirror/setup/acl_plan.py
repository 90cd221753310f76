"""Plans the ACLs to create on the target, by MM2's rules: rights to read, never rights to write (KIP-382).

Nothing is removed: Kafka does not record which client made an ACL. Pure.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.settings.topic_selection import remote_topic, should_replicate


@dataclass(frozen=True, slots=True)
class AclPlan:
    """The changes to the target.

    `unavailable` is the error of a cluster without an authorizer, where there is nothing to sync.
    """

    creates: tuple[AclBinding, ...] = ()
    unavailable: str | None = None


def plan_acls(
    settings: MirrorSourceSettings, source: Iterable[AclBinding], target: Collection[AclBinding]
) -> AclPlan:
    """Plan what the target lacks, in the source's order, each binding once."""
    return AclPlan(tuple(binding for binding in target_acls(settings, source) if binding not in target))


def target_acls(settings: MirrorSourceSettings, source: Iterable[AclBinding]) -> Iterable[AclBinding]:
    """The bindings that the source's call for on the target.

    Only literal topic patterns are considered. ALLOW WRITE is left out and ALLOW ALL becomes ALLOW READ,
    because only the mirror writes to remote topics; denials stay as they are.
    """
    bindings = (
        replace(readable, resource_name=remote_topic(settings, readable.resource_name))
        for readable in _readable(source)
        if should_replicate(settings, readable.resource_name)
    )
    return dict.fromkeys(bindings)


def _readable(source: Iterable[AclBinding]) -> Iterator[AclBinding]:
    """The bindings of literal topic patterns, as they are for the copies of their topics."""
    for binding in source:
        is_topic = binding.resource_type is ResourceType.TOPIC
        if not is_topic or binding.pattern_type is not PatternType.LITERAL:
            continue
        allows = binding.permission is AclPermission.ALLOW
        if allows and binding.operation is AclOperation.ALL:
            yield replace(binding, operation=AclOperation.READ)
        elif not (allows and binding.operation is AclOperation.WRITE):
            yield binding
