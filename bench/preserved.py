"""Measures what preserved offsets cost: `python -m bench.preserved`.

Offsets of a beginning and control markers a second with the broker's CPU. What copying and starts cost where
no offset is missing is measured by `python -m bench.versions --preserved`.
"""

import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Final

from bench.bed import Bed, opened
from bench.errors import BenchError
from bench.sides import TARGET_ALIAS
from sparkmirror.batches.producer import ProducerId
from sparkmirror.copy.preserve.preserved_start import Beginning, PreservedStarts
from sparkmirror.domain.client_settings import ConnectionSettings, ProducerSettings
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.kafka.transactions.control_markers import ControlMarkers, Gap
from sparkmirror.kafka.transactions.fencing import Fencing

_BEGINNINGS: Final = ((1, 100_000_000), (4, 20_000_000))
"""Partitions, and the offsets of each."""
_GAPS: Final = ((1, 200), (4, 100), (40, 20), (40_000, 5))
"""Lengths of gaps, and how many of each; filled directly after the first marker."""


def _settings(bed: Bed) -> ConnectionSettings:
    host, port = bed.target.bootstrap.split(":")
    return ConnectionSettings(((host, int(port)),), alias=TARGET_ALIAS)


def _claimed(bed: Bed, name: str) -> ProducerId:
    with closing(Fencing(_settings(bed))) as fencing:
        found = fencing.claim([name])[name]
    if not isinstance(found, ProducerId):
        raise BenchError(str(found))
    return found


def _beginnings(bed: Bed, partitions: int, each: int) -> str:
    topic = f"beginning-{partitions}"
    bed.target.topics.create(topic, partitions)
    own = _claimed(bed, topic)
    starts = PreservedStarts(ProducerSettings(_settings(bed)), 3600.0)
    began, cpu_s = time.monotonic(), bed.target.cpu_s()
    found = starts.fill({TopicPartition(topic, at): Beginning(own.id, 0, each) for at in range(partitions)})
    seconds, cpu_s = time.monotonic() - began, bed.target.cpu_s() - cpu_s
    if any(found.values()):
        raise BenchError(str(found))
    offsets = partitions * each
    return (
        f"a beginning of {each:,} in {partitions} partitions: {seconds:.1f} s, "
        f"{offsets / seconds:,.0f} offsets/s, "
        f"{cpu_s * 1e9 / offsets:,.0f} s of broker CPU for a thousand million"
    )


def _markers(bed: Bed, length: int, rounds: int) -> str:
    """The first of each kind warms the coordinator up, and is not counted."""
    topic = f"markers-{length}"
    bed.target.topics.create(topic, 1)
    own, partition = _claimed(bed, topic), TopicPartition(topic, 0)
    end, seconds, cpu_s = 0, 0.0, 0.0
    with closing(ControlMarkers(_settings(bed))) as markers:
        for number in range(rounds + 1):
            began, cpu_began, wanted = time.monotonic(), bed.target.cpu_s(), end + length
            while end < wanted:
                filled = markers.fill([Gap(topic, own, partition, end, wanted, is_fenced=end > 0)])[partition]
                if not isinstance(filled, int):
                    raise BenchError(str(filled))
                end = filled
            if number:
                seconds += time.monotonic() - began
                cpu_s += bed.target.cpu_s() - cpu_began
    count = length * rounds
    return (
        f"gaps of {length:,} in one partition: {count / seconds:,.0f} markers/s, "
        f"{cpu_s * 1e6 / count:,.0f} µs of broker CPU each"
    )


def main() -> int:
    with tempfile.TemporaryDirectory() as folder, opened(Path(folder), 1, _say) as bed:
        for partitions, each in _BEGINNINGS:
            _say(_beginnings(bed, partitions, each))
        for length, rounds in _GAPS:
            _say(_markers(bed, length, rounds))
    return 0


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
