"""Measures the cost of exactly-once: a copy task with the defaults beside one without idempotence.

Runs of different minutes differ by more than the cost, so runs are short, alternate, and only the two of a
pair are compared. A partition that is not idempotent can have one batch under way only, or a resent one could
come behind its successor. So in most pairs both have one request under way: what is left between them is what
exactly-once itself takes, its sequences and the headers of its position records.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from bench.bed import Bed
from bench.dataset import Dataset
from bench.one_task import TaskRun, copy
from bench.results import Pairing, PairRun
from bench.sides import TARGET_ALIAS, Side, properties
from bench.workloads import PARTITIONS
from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.mirror.copy_jobs import Announced, task_plans
from sparkmirror.settings.configured import ConfiguredFlow
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.settings.source import preserves_offsets

_PRODUCER = f"{TARGET_ALIAS}.producer"
AT_LEAST_ONCE = {f"{_PRODUCER}.enable.idempotence": "false"}
ADDED = {
    Pairing.ONE_REQUEST: {f"{_PRODUCER}.max.in.flight.requests.per.connection": "1"},
    Pairing.AS_THEY_ARE: {},
}
"""To the settings of both."""


def measure(bed: Bed, data: Dataset, pairing: Pairing, number: int) -> PairRun:
    """One run of each; who comes first changes from pair to pair."""
    both = ADDED[pairing]
    kinds = [("default", both), ("atleastonce", both | AT_LEAST_ONCE)]
    if number % 2 == 0:
        kinds.reverse()
    alias = f"{data.workload}{number}{pairing.name}".lower().replace("_", "")
    runs = {name: run(bed, data, f"{alias}{name}", settings) for name, settings in kinds}
    default, without = runs["default"], runs["atleastonce"]
    return PairRun(
        workload=data.workload,
        pairing=pairing,
        number=number,
        default_records_per_s=default.records_per_s,
        default_cpu_s_per_million=_cpu(default),
        at_least_once_records_per_s=without.records_per_s,
        at_least_once_cpu_s_per_million=_cpu(without),
    )


def _cpu(run: TaskRun) -> float:
    return run.cpu_s * 1e6 / run.records


def run(bed: Bed, data: Dataset, alias: str, settings: Mapping[str, str]) -> TaskRun:
    """One copy task into a new topic; `settings` are added to those of its mirror."""
    with planned(bed, data.topic, alias, settings) as plan:
        return copy(plan, bed.target.topics, data.records)


@contextmanager
def planned(
    bed: Bed, topic: str, alias: str, settings: Mapping[str, str], partitions: int = PARTITIONS
) -> Iterator[TaskPlan]:
    """A task's plan into a new topic, which is deleted at the end."""
    mirroring = bed.mirroring(alias.replace("-", ""), topic, tasks_max=1)
    file = bed.folder / f"{mirroring.source_alias}.properties"
    file.write_text(properties(mirroring, Side.OURS, settings))
    (flow,) = (flow for flow in read_mirror_maker_file(file).flows if flow.source is not None)
    target_topic = mirroring.target_topic(topic)
    try:
        source = flow.flow.source
        for state in (
            flow.worker.offset_topic.name,
            StateTopic.PROGRESS.of(source),
            StateTopic.ATTEMPTS.of(source),
        ):
            bed.target.topics.create(state, 1, {"cleanup.policy": "compact"})
        bed.target.topics.create(target_topic, partitions)
        yield _plan(flow, topic, target_topic, partitions)
    finally:
        bed.clean()


def _plan(flow: ConfiguredFlow, topic: str, target_topic: str, partitions: int) -> TaskPlan:
    """Plan a task without offset syncs: their topic is a connector's to create, and there is none here."""
    assert flow.source is not None
    preserves = preserves_offsets(flow.source.settings)(topic)
    copied = [
        CopyPartition(TopicPartition(topic, number), target_topic, preserves_offsets=preserves)
        for number in range(partitions)
    ]
    (plan,) = task_plans(flow, flow.source, Announced(0, 0), copied, slots=1)
    return replace(plan, offset_syncs=None)
