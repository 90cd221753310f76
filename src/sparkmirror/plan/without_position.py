"""Finds topics of the target that hold records although their mirror has no position: it would start over.

That is what a new connector name does, a changed alias, or Connect beside what was a dedicated mirror.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.findings import Finding
from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.quantities import some_of
from sparkmirror.kafka.data.partition_offsets import EARLIEST, LATEST, settled_offsets
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.plan.backlog import stored_positions
from sparkmirror.plan.plan_findings import strangers
from sparkmirror.settings.configured import ConfiguredSource, FlowWorker
from sparkmirror.settings.source import stops_behind_others
from sparkmirror.setup.topic_sync import Topics
from sparkmirror.storage.positions import connectors_with_positions


def started_over(on: FlowWorker, connector: ConfiguredSource, topics: Topics) -> Sequence[Finding]:
    """Find them for a flow that starts, before it has stored a position. Raises KafkaError."""
    stops = stops_behind_others(connector.settings)
    present = [pair for pair in topics.pairs if pair[1] in topics.target and not stops(pair[0])]
    partitions = [
        TopicPartition(topic, number)
        for topic, _ in present
        for number in range(topics.source[topic].partitions)
    ]
    if not partitions:
        return []
    begun = {partition.topic for partition in stored_positions(on, connector, partitions)}
    copied = {topic: found.partitions for topic, found in topics.source.items()}
    not_begun = [pair for pair in present if pair[0] not in begun]
    filled = filled_topics(connector, not_begun, copied, topics.target)
    found = [pair for pair in present if pair[0] not in begun and pair[1] in filled]
    return list(strangers(found, on.flow.target, predecessors(on, connector) if found else ()))


def starts_over(found: Sequence[Finding], target: Alias) -> str:
    """Write a line for the log, however many topics were found."""
    remote = some_of([finding.subject for finding in found])
    return (
        f"starts over: no position of this mirror is stored for what {remote} on {target} hold already, "
        f"so that it comes a second time. If that is not meant: {found[0].remedy}"
    )


def filled_topics(
    connector: ConfiguredSource,
    pairs: Sequence[tuple[str, str]],
    source_counts: Mapping[str, int],
    target_counts: Mapping[str, int],
) -> set[str]:
    """Return the names of the target topics that hold records in partitions to which records are copied.

    The target's own heartbeats are no copy, also where a policy gives the source's heartbeats their name.
    """
    own = connector.settings.policy.heartbeats_topic()
    partitions = [
        TopicPartition(remote, number)
        for topic, remote in pairs
        if remote != own
        for number in range(min(source_counts[topic], target_counts.get(remote, 0)))
    ]
    if not partitions:
        return set()
    consumer = replace(connector.consumer_of(0), connection=connector.target_admin)
    starts, ends = (settled_offsets(consumer, partitions, which) for which in (EARLIEST, LATEST))
    return {partition.topic for partition in partitions if _is_filled(starts[partition], ends[partition])}


def _is_filled(start: int | SparkmirrorError, end: int | SparkmirrorError) -> bool:
    """Whether a partition is known to hold records."""
    return not isinstance(start, SparkmirrorError) and not isinstance(end, SparkmirrorError) and start != end


def predecessors(on: FlowWorker, connector: ConfiguredSource) -> Collection[str]:
    """Other connectors that have stored positions of this source in the same topic."""
    where = on.worker_client, on.worker.offset_topic.name, on.flow.source
    found: set[str] = unless_missing(lambda: connectors_with_positions(*where), set())
    return found - {connector.name}
