"""Derives the target's ACLs from the source's: rights to read, never rights to write (KIP-382). Pure."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType

ANY_NAME: Final = "*"
"""The name of a literal pattern that means every resource of the type."""

_PROBES: Final = ("x", "q.7", "-1_Z")
"""The characters that may follow a prefix in names."""


@dataclass(frozen=True, slots=True)
class Selection:
    """Selects the topics of the source whose ACLs are synced, by name and by prefix."""

    topic: Callable[[str], bool]
    prefix: Callable[[str], bool]


EVERYTHING: Final = Selection(lambda _: True, lambda _: True)


class TargetAcls(NamedTuple):
    """`bindings` in the source's order, each once; `inexpressible` are those of the source without a like."""

    bindings: tuple[AclBinding, ...]
    inexpressible: tuple[AclBinding, ...] = ()


def target_acls(
    source: Iterable[AclBinding], should_replicate: Callable[[str], bool], remote_topic: Callable[[str], str]
) -> tuple[AclBinding, ...]:
    """MM2's rules: the bindings to create on the target, each once, in the source's order.

    Only literal topic patterns are considered. ALLOW WRITE is left out and ALLOW ALL becomes ALLOW READ,
    because only the mirror writes to remote topics; denials stay as they are.
    """
    bindings = (
        replace(readable, resource_name=remote_topic(readable.resource_name))
        for readable in _of_literal_topics(source)
        if should_replicate(readable.resource_name)
    )
    return tuple(dict.fromkeys(bindings))


def all_target_acls(
    source: Iterable[AclBinding], selection: Selection, remote_topic: Callable[[str], str]
) -> TargetAcls:
    """MM2's rules for every topic pattern, and the ACLs of groups and transactional ids as they are.

    A prefix, also the empty one that `*` is, becomes what the policy puts in front of the names behind it.
    """
    found: dict[AclBinding, None] = {}
    inexpressible: list[AclBinding] = []
    for binding in source:
        if binding.resource_type in (ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID):
            found[binding] = None
            continue
        readable = _readable(binding)
        if readable is None or not _is_selected(readable, selection):
            continue
        named = _renamed(readable, remote_topic)
        if named is None:
            inexpressible.append(binding)
        else:
            found[named] = None
    return TargetAcls(tuple(found), tuple(inexpressible))


def remote_prefix(remote_topic: Callable[[str], str], prefix: str) -> str | None:
    """The prefix of the remote topics for a prefix at the source; None if there is not one."""
    probe = remote_topic(prefix + _PROBES[0])
    found = probe.removesuffix(_PROBES[0])
    is_kept = found != probe and all(remote_topic(prefix + rest) == found + rest for rest in _PROBES)
    return found if is_kept else None


def _of_literal_topics(source: Iterable[AclBinding]) -> Iterator[AclBinding]:
    for binding in source:
        readable = _readable(binding)
        if readable is not None and readable.pattern_type is PatternType.LITERAL:
            yield readable


def _readable(binding: AclBinding) -> AclBinding | None:
    """The binding for the copies of its topics."""
    if binding.resource_type is not ResourceType.TOPIC:
        return None
    if binding.permission is AclPermission.ALLOW:
        if binding.operation is AclOperation.WRITE:
            return None
        if binding.operation is AclOperation.ALL:
            return replace(binding, operation=AclOperation.READ)
    return binding


def _is_selected(binding: AclBinding, selection: Selection) -> bool:
    prefix = _prefix(binding)
    return selection.topic(binding.resource_name) if prefix is None else selection.prefix(prefix)


def _renamed(binding: AclBinding, remote_topic: Callable[[str], str]) -> AclBinding | None:
    prefix = _prefix(binding)
    if prefix is None:
        return replace(binding, resource_name=remote_topic(binding.resource_name))
    remote = remote_prefix(remote_topic, prefix)
    if remote is None:
        return None
    if remote == "":
        return replace(binding, pattern_type=PatternType.LITERAL, resource_name=ANY_NAME)
    return replace(binding, pattern_type=PatternType.PREFIXED, resource_name=remote)


def _prefix(binding: AclBinding) -> str | None:
    """Return the prefix of a pattern; None for one topic."""
    if binding.pattern_type is PatternType.PREFIXED:
        return binding.resource_name
    return "" if binding.resource_name == ANY_NAME else None
