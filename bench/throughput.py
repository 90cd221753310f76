"""One throughput run: start a side, watch the target's end offsets until everything has arrived, stop it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bench.bed import Bed
from bench.errors import BenchError
from bench.log_content import content_of
from bench.measures import Sample, copying, first_with, second_half, without_markers
from bench.process_tree import machine_cpu_s
from bench.replay import Log
from bench.results import ThroughputRun
from bench.side_process import Ended, SideProcess
from bench.sides import (
    Mirroring,
    Side,
    ceiling_command,
    mm2_command,
    our_command,
    properties,
    relay_command,
)
from bench.workloads import PARTITIONS

POLL_INTERVAL_S = 0.05
_STALL_S = 60.0
_START_S = 180.0


@dataclass(frozen=True, slots=True)
class Job:
    """The work of one run: `records` of `topic`, counted under `workload`. `alias` is used once only.

    `settings` are added to a mirror's mm2.properties. `in_transactions` tells whether they make the mirrors
    write transactions, whose markers take offsets on the target.
    """

    workload: str
    run: int
    alias: str
    topic: str
    records: int
    settings: Mapping[str, str] = field(default_factory=dict)
    in_transactions: bool = False
    tls: bool = False
    """Whether the mirrors reach both clusters over TLS."""
    options: Sequence[str] = ()
    """Options of our command, beside its file."""


def command(bed: Bed, side: Side, mirroring: Mirroring, job: Job) -> list[str]:
    """Write the side's mm2.properties where it needs one; its command line."""
    if side.is_ceiling:
        return ceiling_command(side, mirroring, job.topic, job.records)
    if side is Side.RELAY:
        return relay_command(mirroring, job.topic)
    file = bed.folder / f"{job.alias}.properties"
    file.write_text(properties(mirroring, side, job.settings))
    return mm2_command(bed.java, bed.mm2_jars, file) if side.is_java else [*our_command(file), *job.options]


def measure(bed: Bed, side: Side, job: Job, tasks_max: int | None = None) -> ThroughputRun:
    """Create the target topic, run the side, take everything down again except the source's data."""
    mirroring = bed.mirroring(job.alias, job.topic, tasks_max, tls=job.tls)
    target_topic = mirroring.target_topic(job.topic)
    bed.target.topics.create(target_topic, PARTITIONS)
    try:
        with SideProcess.start(
            command(bed, side, mirroring, job), bed.folder / f"{job.alias}.log"
        ) as process:
            samples = _watch(bed, process, target_topic, job.records)
            ended = process.wait(_STALL_S) if side.is_ceiling else process.stop()
        if job.in_transactions:
            samples = without_markers(samples, content_of(Log(bed.target.bootstrap, target_topic)).share)
    finally:
        bed.clean()
    return _result(side, job, samples, process, ended)


def _watch(bed: Bed, process: SideProcess, topic: str, records: int) -> list[Sample]:
    """Samples about every POLL_INTERVAL_S until `records` have arrived."""
    samples = [Sample(0.0, 0, 0.0)]
    moved_at_s = 0.0
    while samples[-1].records < records:
        time.sleep(max(0.0, samples[-1].at_s + POLL_INTERVAL_S - process.age_s))
        has_ended = process.has_ended()
        samples.append(_sample(bed, process, topic, samples[-1].records, records))
        if samples[-1].records > samples[-2].records:
            moved_at_s = samples[-1].at_s
        elif has_ended or samples[-1].at_s - moved_at_s > (_STALL_S if moved_at_s else _START_S):
            raise BenchError(f"stopped at {samples[-1].records} of {records} records: {process.log_tail()}")
    process.observe()
    return samples


def _sample(bed: Bed, process: SideProcess, topic: str, before: int, wanted: int) -> Sample:
    """Take a sample; at a window's begin and end the processes are counted again, so that none is missing."""
    records, at_s = bed.target.topics.end_offsets(topic, PARTITIONS), process.age_s
    if records and (not before or records >= wanted):
        process.tree.refresh()
    cpu_s = process.cpu_s()
    return Sample(at_s, records, cpu_s, bed.source.cpu_s(), bed.target.cpu_s(), machine_cpu_s())


def _result(side: Side, job: Job, samples: list[Sample], process: SideProcess, ended: Ended) -> ThroughputRun:
    first = first_with(samples, 1)
    return ThroughputRun(
        workload=job.workload,
        side=side,
        run=job.run,
        start_s=first.at_s,
        start_cpu_s=first.cpu_s,
        copying=copying(samples),
        second_half=second_half(samples),
        stop_s=ended.stop_s,
        total_cpu_s=ended.total_cpu_s,
        peak_pss_mb=process.peak_pss_mb,
        peak_worker_pss_mb=process.peak_worker_pss_mb,
        killed=ended.killed,
    )
