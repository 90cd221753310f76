"""Compares both clusters of a testbed by `sparkmirror verify`."""

import json
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.faults.testbed import TOPIC, DrillTestbed
from tests.support.broker_data import end_offsets
from tests.support.mirror import COMMAND

_TIMEOUT_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """`counts` are differences by kind, `problems` the first of them and everything else that is wrong."""

    exit_code: int
    equal: int
    counts: Mapping[str, int]
    problems: Sequence[str]

    @property
    def is_exact(self) -> bool:
        return self.exit_code == 0 and not self.problems

    @property
    def duplicates(self) -> int:
        return self.counts.get("extra", 0)

    @property
    def losses(self) -> int:
        return self.counts.get("missing", 0)

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.equal:,} records are the same on both clusters"
        return f"verify ended with {self.exit_code}:\n  " + "\n  ".join(self.problems)


def verify(testbed: DrillTestbed, *, to_the_end: bool) -> Verdict:
    """Compare what is mirrored so far. `to_the_end`, the mirror has stopped and nothing else may be there."""
    command = [COMMAND, "verify", str(testbed.properties_for_all), "--topics", TOPIC, "--slots", "2"]
    if not to_the_end:
        # What has been found equal isn't read again before the end.
        command += ["--report", str(testbed.folder / "report.json")]
    ended = subprocess.run(
        [*command, "-o", "json"], capture_output=True, check=False, text=True, timeout=_TIMEOUT_S
    )
    if not ended.stdout:
        return Verdict(ended.returncode, 0, {}, [ended.stderr.strip()])
    (flow,) = json.loads(ended.stdout)["flows"]
    partitions = flow["partitions"]
    problems = [problem for partition in partitions for problem in _problems(partition)]
    if to_the_end:
        problems += _left_out(testbed, partitions)
    return Verdict(
        ended.returncode,
        sum(partition["equal"] for partition in partitions),
        sum((Counter(partition["counts"]) for partition in partitions), Counter()),
        problems,
    )


def _problems(partition: Mapping[str, Any]) -> list[str]:
    name = partition["source"]
    problems = [f"{name}: {difference}" for difference in partition["differences"]]
    problems += [f"{name}: {error}" for error in partition["errors"]]
    # No other client writes there, and nothing is old enough for retention.
    problems += [
        f"{name}: {partition[kind]} {kind}" for kind in ("foreign", "not_comparable") if partition[kind]
    ]
    problems += [f"{name}: {partition[kind]}" for kind in ("gave_up", "not_begun") if partition[kind]]
    return problems


def _left_out(testbed: DrillTestbed, partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Where the comparison did not reach the end of both logs."""
    problems = []
    for side in testbed.sides:
        ends = end_offsets(side.cluster, [side.topic])
        compared = {
            int(partition["source"].rpartition("-")[2]): partition[f"upto_{side.name}_offset"]
            for partition in partitions
        }
        problems += [
            f"{partition} ends at {end} ({side.name}), compared up to {compared.get(partition.partition)}"
            for partition, end in ends.items()
            if compared.get(partition.partition) != end
        ]
    return problems
