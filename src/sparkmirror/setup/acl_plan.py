"""Plans the ACLs to create on the target, and those of the mirror to remove because the source has no more.

Kafka does not record which client made an ACL. So the mirror claims each ACL: before it is made, and again
when it exists. Only ACLs that are claimed as made are removed.

Pure.
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from sparkmirror.domain.acls import AclBinding, Claim, SyncAcls
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.settings.topic_selection import remote_topic, should_replicate
from sparkmirror.setup.acl_rules import EVERYTHING, Selection, TargetAcls, all_target_acls, target_acls


@dataclass(frozen=True, slots=True)
class AclPlan:
    """The changes to the target. `warnings` are for operators.

    `unavailable` is the error of a cluster without an authorizer, where there is nothing to sync.
    """

    creates: tuple[AclBinding, ...] = ()
    deletes: tuple[AclBinding, ...] = ()
    claims: Mapping[AclBinding, Claim | None] = field(default_factory=dict)
    """The claims to store before the changes; None removes a claim."""
    warnings: tuple[str, ...] = ()
    unavailable: str | None = None


@dataclass(frozen=True, slots=True)
class SourceAcls:
    """`topics` are the source's; their names matter only to patterns of several topics."""

    bindings: tuple[AclBinding, ...]
    topics: Collection[str] = ()


def plan_acls(
    settings: MirrorSourceSettings,
    source: SourceAcls,
    target: Collection[AclBinding],
    claims: Mapping[AclBinding, Claim] | None = None,
) -> AclPlan:
    """Differences only. `claims` is None where nothing is ever removed, and so nothing remembered.

    ACLs that the source has no more are removed; those that the settings no longer select stay.
    """
    wanted = _wanted(settings, source)
    creates = tuple(binding for binding in wanted.bindings if binding not in target)
    warnings = tuple(_inexpressible(binding) for binding in wanted.inexpressible)
    if claims is None:
        return AclPlan(creates, warnings=warnings)
    explained = _explained(settings, source.bindings)
    deletes = [
        binding
        for binding, claim in claims.items()
        if claim is Claim.MADE and binding in target and binding not in explained
    ]
    changes: dict[AclBinding, Claim | None] = {}
    doubtful: list[str] = []
    for binding, claim in claims.items():
        if binding not in target:
            changes[binding] = None
        elif claim is Claim.INTENDED:
            is_ours = binding in explained
            changes[binding] = Claim.MADE if is_ours else None
            doubtful += [] if is_ours else [_doubtful(binding)]
    changes |= dict.fromkeys(creates, Claim.INTENDED)
    changes = {binding: claim for binding, claim in changes.items() if claims.get(binding) is not claim}
    return AclPlan(creates, tuple(deletes), changes, (*warnings, *doubtful))


def _wanted(settings: MirrorSourceSettings, source: SourceAcls) -> TargetAcls:
    def is_mirrored(topic: str) -> bool:
        return should_replicate(settings, topic)

    def remote(topic: str) -> str:
        return remote_topic(settings, topic)

    if settings.sync_acls is SyncAcls.TOPIC:
        return TargetAcls(target_acls(source.bindings, is_mirrored, remote))
    mirrored = sorted(filter(is_mirrored, source.topics))

    def some_mirrored(prefix: str) -> bool:
        at = bisect_left(mirrored, prefix)
        return at < len(mirrored) and mirrored[at].startswith(prefix)

    return all_target_acls(source.bindings, Selection(is_mirrored, some_mirrored), remote)


def _explained(settings: MirrorSourceSettings, source: Iterable[AclBinding]) -> set[AclBinding]:
    """Return all ACLs that the source's call for, under any settings of what to sync."""

    def remote(topic: str) -> str:
        return remote_topic(settings, topic)

    bindings = tuple(source)
    literal = target_acls(bindings, EVERYTHING.topic, remote)
    return {*literal, *all_target_acls(bindings, EVERYTHING, remote).bindings}


def _inexpressible(binding: AclBinding) -> str:
    return (
        f"ACL {binding} can't be synced: it is for a name prefix, and the names that the replication policy "
        "gives these topics on the target have no common prefix"
    )


def _doubtful(binding: AclBinding) -> str:
    return (
        f"ACL {binding} stays on the target although the source no longer has it: the mirror may have "
        "created it, but ended before it recorded that; remove it by hand if it is not needed"
    )
