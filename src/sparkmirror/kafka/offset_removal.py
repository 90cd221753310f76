"""Removes offsets that a group has committed (OffsetDelete, KIP-496)."""

from collections.abc import Collection, Mapping
from contextlib import closing

from kafka.structs import TopicPartition as LibraryPartition

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import GroupId, TopicPartition
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.clients import LibraryAdmin
from sparkmirror.kafka.error_codes import NONE, Needed, error_for


def remove_offsets(
    settings: ConnectionSettings, cluster: str, group: GroupId, partitions: Collection[TopicPartition]
) -> Mapping[TopicPartition, KafkaError]:
    """What was refused, by partition; a topic that members of the group read is. Raises KafkaError.

    `cluster` names it in errors: an alias.
    """
    action, right = f"remove offsets of group {group}", Need.DELETE_GROUP.of(group)
    with closing(LibraryAdmin(settings, cluster)) as client:
        wanted = [LibraryPartition(*partition) for partition in partitions]
        answers = client.call(
            action, "delete_group_offsets", group, wanted, needed=Needed(settings, (right,))
        )
    errors = {TopicPartition(*partition): answer.errno for partition, answer in answers.items()}
    return {
        partition: error_for(
            code,
            f"{action} for {partition} on {cluster}",
            needed=Needed(settings, (right, Need.READ_TOPIC.of(partition.topic))),
        )
        for partition, code in errors.items()
        if code != NONE
    }
