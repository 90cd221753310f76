"""Sums up how well a group's offsets are translated, for its metrics."""

from collections.abc import Mapping

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.readings import GroupTranslation
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.settings.checkpoint import MirrorCheckpointSettings, is_followed


def translation_of(
    settings: MirrorCheckpointSettings,
    committed: Mapping[TopicPartition, tuple[int, str]],
    histories: Mapping[TopicPartition, SyncHistory],
    at: float,
) -> GroupTranslation:
    """By its partitions that the flow mirrors; `at` is in epoch seconds, `committed` are the source's."""
    exact = approximate = unknown = reread_max = 0
    for partition, (offset, _) in committed.items():
        if not is_followed(settings, partition.topic):
            continue
        history = histories.get(partition)
        place = None if history is None else history.place(offset)
        if place is None:
            unknown += 1
        elif place.behind_max == 0:
            exact += 1
        else:
            approximate += 1
            reread_max += place.behind_max or 0
    return GroupTranslation(at, exact, approximate, unknown, reread_max)
