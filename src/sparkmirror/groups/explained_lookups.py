"""Looks up one group's offsets in the records as the mirror does, and explains the results."""

from collections.abc import Collection, Mapping
from contextlib import closing
from typing import Final

from sparkmirror.batches.cycles import names_show_origin
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.groups.offset_resolver import OffsetResolver, Wanted
from sparkmirror.offsets.checkpoints import OfGroup
from sparkmirror.offsets.resolution import ResolveOffsets
from sparkmirror.offsets.wire_records import Checkpoint
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.configured import ConfiguredCheckpoint

_LOOKS_MAX: Final = 16
"""The most searches for one offset, each in up to 4 MiB of either log."""


def looked_up(
    connector: ConfiguredCheckpoint, wanted: Collection[Wanted], checkpoints: OfGroup
) -> Mapping[TopicPartition, str]:
    """Let the histories learn. The result of each offset that syncs alone don't translate exactly."""
    settings = connector.settings
    if settings.resolve is ResolveOffsets.OFF:
        return {}
    resolver = OffsetResolver(
        connector.records_consumer,
        ConsumerSettings(connector.target_admin),
        flow_log(__name__, settings.flow),
        names_show_origin=names_show_origin(settings.policy, settings.flow.source),
    )
    results = {}
    with closing(resolver):
        for each in wanted:
            if not settings.topic_filter.should_replicate(each.source.topic):
                continue
            if each.history.gap_at(each.upstream) is None:
                continue
            last = checkpoints.get(each.target)
            if settings.resolve is ResolveOffsets.ACTIVE and _is_at(last, each):
                results[each.source] = "translation.resolve=active looks up only groups that move"
            else:
                results[each.source] = _result(resolver, each, last)
    return results


def _result(resolver: OffsetResolver, wanted: Wanted, last: Checkpoint | None) -> str:
    try:
        is_learning = True
        for _ in range(_LOOKS_MAX):
            is_learning = resolver.look_up(wanted)
            if not is_learning:
                break
    except SparkmirrorError as error:
        return f"not looked up in the records: {error}"
    if wanted.history.gap_at(wanted.upstream) is not None:
        return "not looked up further in the records" if is_learning else "not found in the records"
    if _is_at(last, wanted):
        return "found in the records"
    return (
        "found in the records, where the mirror has yet to look within translation.resolve.bytes.max "
        "for each interval"
    )


def _is_at(last: Checkpoint | None, wanted: Wanted) -> bool:
    """Whether the group's last checkpoint is the translation, as far as the history knows it."""
    translated = wanted.history.translate(wanted.upstream)
    return last is not None and (last.upstream_offset, last.downstream_offset) == (
        wanted.upstream,
        translated,
    )
