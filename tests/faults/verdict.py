"""Compares both clusters of a testbed by `sparkmirror verify`."""

import json
import os
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from sparkmirror.domain.ids import TopicPartition
from tests.faults.numbered_verdict import judge_numbered
from tests.faults.testbed import ALIAS, PINGS, PYTHON_PATH, TOPIC, DrillTestbed, remote
from tests.support.broker_data import end_offsets
from tests.support.mirror import COMMAND
from tests.support.topic_reader import TopicReader

_TIMEOUT_S: Final = 300.0

Ends = Mapping[str, Mapping[int, int]]
"""The ends of logs by side and partition."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`counts` are differences by kind, `problems` the first of them and everything else that is wrong.

    `repeated` are records that are there twice where brokers had forgotten who wrote them. `wrong_words` are
    what tools said of the mirror that was not so.
    """

    exit_code: int
    equal: int
    counts: Mapping[str, int]
    problems: Sequence[str]
    repeated: int = 0
    wrong_words: Sequence[str] = ()

    @property
    def has_same_records(self) -> bool:
        return self.exit_code == 0 and not self.problems

    @property
    def is_exact(self) -> bool:
        return self.has_same_records and not self.wrong_words

    @property
    def duplicates(self) -> int:
        return self.counts.get("extra", 0)

    @property
    def losses(self) -> int:
        return self.counts.get("missing", 0)

    def __str__(self) -> str:
        if self.is_exact:
            return f"{self.equal:,} records are the same on both clusters"
        return f"verify ended with {self.exit_code}:\n  " + "\n  ".join((*self.problems, *self.wrong_words))


def verify(testbed: DrillTestbed, *, to_the_end: bool) -> Verdict:
    """Compare what is mirrored so far. `to_the_end`, the mirror has stopped and nothing else may be there."""
    command = [COMMAND, "verify", str(testbed.properties_for_all), "--topic", TOPIC, "--slots", "2"]
    if not to_the_end or testbed.expired:
        # What has been found equal isn't read again before the end, nor can be once it has expired.
        command += ["--report", str(testbed.folder / "report.json")]
    ended = subprocess.run(
        [*command, "-o", "json"],
        capture_output=True,
        check=False,
        text=True,
        timeout=_TIMEOUT_S,
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
    )
    if not ended.stdout:
        return Verdict(ended.returncode, 0, {}, [ended.stderr.strip()])
    verdict = judge(ended.returncode, ended.stdout, _ends(testbed) if to_the_end else {}, testbed.expired)
    others, repeated = (_miscounted_pings(testbed) if to_the_end else []), 0
    if to_the_end and testbed.has_numbered:
        sides = testbed.source.cluster, testbed.target.cluster
        late = testbed.were_delayed
        numbered, repeated = judge_numbered(*sides, ALIAS, testbed.elections, were_delayed=late)
        others += numbered
    return replace(verdict, problems=[*verdict.problems, *others], repeated=repeated)


def judge(exit_code: int, output: str, ends: Ends, expired_max: int = 0) -> Verdict:
    """Check the output of `verify -o json` for one flow. The comparison must have reached the ends.

    At most `expired_max` offsets may have expired before they were compared.
    """
    (flow,) = json.loads(output)["flows"]
    partitions = flow["partitions"]
    return Verdict(
        exit_code,
        sum(partition["equal"] for partition in partitions),
        sum((Counter(partition["counts"]) for partition in partitions), Counter()),
        [
            *(problem for partition in partitions for problem in _problems(partition)),
            *_left_out(ends, partitions),
            *_expired(expired_max, partitions),
        ],
    )


def _problems(partition: Mapping[str, Any]) -> list[str]:
    name = partition["source"]
    problems = [f"{name}: {difference}" for difference in partition["differences"]]
    problems += [f"{name}: {error}" for error in partition["errors"]]
    if partition["foreign"]:  # no other client writes there
        problems.append(f"{name}: {partition['foreign']} foreign")
    problems += [f"{name}: {partition[kind]}" for kind in ("gave_up", "not_begun") if partition[kind]]
    return problems


def _expired(expired_max: int, partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    count = sum(partition["not_comparable"] for partition in partitions)
    return [f"{count} not_comparable, and {expired_max} expired"] if count > expired_max else []


def _miscounted_pings(testbed: DrillTestbed) -> list[str]:
    """Records that are all the same can't be compared. The source's have consecutive offsets."""
    ends = end_offsets(testbed.source.cluster, [PINGS])
    problems = []
    with TopicReader(testbed.target.cluster.bootstrap_servers, remote(PINGS)) as reader:
        for number, (source, target) in testbed.pings.items():
            expected = ends[TopicPartition(PINGS, number)] - source
            found = sum(1 for _ in reader.read(number, target))
            if found != expected:
                problems.append(f"{PINGS}-{number} has {found} records from {target} on, not {expected}")
    return problems


def _ends(testbed: DrillTestbed) -> Ends:
    return {
        side.name: {
            partition.partition: end for partition, end in end_offsets(side.cluster, [side.topic]).items()
        }
        for side in testbed.sides
    }


def _left_out(ends: Ends, partitions: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the partitions in which the comparison did not reach the end of both logs."""
    compared = {int(partition["source"].rpartition("-")[2]): partition for partition in partitions}
    return [
        f"partition {number} ends at {end} ({side}), compared up to {upto}"
        for side, of_side in ends.items()
        for number, end in of_side.items()
        if (upto := compared.get(number, {}).get(f"upto_{side}_offset")) != end
    ]
