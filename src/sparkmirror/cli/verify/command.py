"""`sparkmirror verify`: its arguments, the course of one run, its exit codes."""

import argparse
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console

from sparkmirror.cli.arguments import positive
from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file, require_java, spark_log_file
from sparkmirror.cli.mirroring_flows import MirroringFlow, add_flow_argument, mirroring_flows
from sparkmirror.cli.narrator import Narrator
from sparkmirror.cli.signals import interrupt_on_signals
from sparkmirror.cli.verify.flows import FlowContents, flow_contents
from sparkmirror.cli.verify.report import PartitionReport, RangeReport, Report
from sparkmirror.cli.verify.verdict import (
    FlowVerdict,
    PartitionVerdict,
    State,
    print_table,
    to_json,
    to_junit,
)
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.spark.session import Session
from sparkmirror.verify.comparison import Comparison
from sparkmirror.verify.job import SETTINGS, RangeOutcome, verification_master, verify_ranges
from sparkmirror.verify.plan import plan_ranges

_EQUAL = 0
_DIFFERENT = 1
_NOT_VERIFIED = 2
_INTERRUPTED = 130

_SLOTS = 4
_SAVE_EVERY_S = 2.0

_EXAMPLES = """\
Reads both clusters and compares every mirrored record: count, order, key, value, headers, timestamp. A mirror
may run meanwhile: each partition is compared up to the position that its flow has stored.

examples:
  sparkmirror verify mm2.properties                                every flow of the file
  sparkmirror verify mm2.properties --flow 'us-west->us-east'      one flow
  sparkmirror verify mm2.properties --topics orders 'page-.*'      some topics, as the source names them
  sparkmirror verify mm2.properties --report proof.json            go on later, compare only what is new
  sparkmirror verify mm2.properties -o junit > verify.xml          a test case per partition

what is found:
  missing         the target lacks a record
  extra           the target has a second copy, or one of the mirror's that the source does not have
  order           the target has it in another place
  key, value, headers, timestamp        which parts of a record differ
  foreign         somebody else wrote to the target topic; counted, no difference
  not comparable  one side has lost it by retention or compaction; counted, no difference

exit codes: 0 equal, 1 different, 2 wrong usage, unreachable, or nothing to compare
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `verify` to the command line; its `run` takes the parsed arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "verify",
        help="prove that a mirror is exact, record by record",
        description="Prove that what an mm2.properties file mirrors is the same on both clusters.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="the mm2.properties file that the mirror runs with")
    add_flow_argument(parser)
    parser.add_argument(
        "--topics",
        nargs="+",
        metavar="REGEX",
        help="only source topics whose whole name one of these matches",
    )
    parser.add_argument(
        "-o",
        "--output",
        choices=["table", "json", "junit"],
        default="table",
        help="the result's form (table)",
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="keep what is compared in this file; with it, the next run compares only what is left or new",
    )
    parser.add_argument(
        "--slots", type=positive, metavar="N", help=f"ranges compared at the same time ({_SLOTS})"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    interrupt_on_signals()
    try:
        verdicts = _verify(arguments)
    except (SparkmirrorError, OSError) as error:
        return _fail(error, _NOT_VERIFIED)
    except KeyboardInterrupt:
        kept = f"; {arguments.report} holds what is finished" if arguments.report else ""
        return _fail(f"interrupted{kept}", _INTERRUPTED)
    match arguments.output:
        case "json":
            sys.stdout.write(to_json(verdicts) + "\n")
        case "junit":
            sys.stdout.write(to_junit(verdicts) + "\n")
        case _:
            print_table(Console(), verdicts)
    if all(verdict.is_equal for verdict in verdicts):
        return _EQUAL
    return _DIFFERENT if any(verdict.count(State.DIFFERENT) for verdict in verdicts) else _NOT_VERIFIED


def _verify(arguments: argparse.Namespace) -> list[FlowVerdict]:
    narrator = Narrator(Console(stderr=True))
    flows, spark = _read_flows(arguments.file, arguments.flow)
    topics = compile_list(arguments.topics, "--topics") if arguments.topics else None
    narrator.say(f"Asking both clusters of {', '.join(flow.name for flow in flows)} …")
    contents = {flow.name: flow_contents(flow.settings, flow.connector, topics) for flow in flows}
    _require_something(contents.values())
    report = Report(arguments.report, {name: content.sides for name, content in contents.items()})
    selected = {name: _plan(report, name, content) for name, content in contents.items()}
    report.save()
    if report.unfinished():
        master = verification_master(arguments.slots or _SLOTS)
        if not arguments.slots:
            master = spark.get("spark.master", master)
        require_java()
        narrator.say(f"Starting Spark on {master} …")
        settings = {**SETTINGS, **spark, "spark.master": master}
        with closing(Session.start(master, settings, spark_log_file("verify"))) as session:
            _compare(session, report, narrator)
    return [_flow_verdict(name, content, selected[name]) for name, content in contents.items()]


def _read_flows(file: Path, wanted: Sequence[str] | None) -> tuple[list[MirroringFlow], dict[str, str]]:
    read = read_mirror_maker_file(file)
    return mirroring_flows(file, read.flows, wanted), read.spark


def _require_something(contents: Collection[FlowContents]) -> None:
    if any(content.mirrored or content.empty for content in contents):
        return
    not_begun = [left for content in contents for left in content.not_begun]
    if not not_begun:
        raise SparkmirrorError("there is nothing to compare: no topic of the source is mirrored")
    raise SparkmirrorError(
        f"there is nothing to compare: the flow has not begun with any of {len(not_begun):,} partitions "
        f"({not_begun[0].plan.source}: {not_begun[0].why}). Does the mirror run with this file?"
    )


def _plan(report: Report, name: str, content: FlowContents) -> list[PartitionReport]:
    """What the report holds of each partition, and after it what has been mirrored since."""
    selected = [report.select(name, each.plan.source, each.plan.target) for each in content.mirrored]
    by_source = {partition.source: partition for partition in selected}
    mirrored = [each._replace(done=by_source[each.plan.source].end) for each in content.mirrored]
    for plan in plan_ranges(content.sides, mirrored):
        by_source[plan.source].ranges.append(RangeReport(plan))
    return selected


def _compare(session: Session, report: Report, narrator: Narrator) -> None:
    """Once, and again where ranges that touch differ: then the boundary may be what is wrong."""
    _compare_unfinished(session, report, narrator)
    if report.merge_differences():
        narrator.say("Comparing again in one piece where neighbouring ranges differ …")
        report.save()
        _compare_unfinished(session, report, narrator)


def _compare_unfinished(session: Session, report: Report, narrator: Narrator) -> None:
    ranges = report.unfinished()
    narrator.say(f"Comparing {len(ranges):,} ranges, {session.slots} at a time …")
    finished = records = 0
    saved_at = time.monotonic()

    def take(outcome: RangeOutcome, tell: Callable[[str], None]) -> None:
        nonlocal finished, records, saved_at
        done = ranges[outcome.number]
        done.comparison, done.error = outcome.comparison, outcome.error
        finished += 1
        records += outcome.comparison.equal if outcome.comparison else 0
        tell(f"{finished:,} of {len(ranges):,} ranges, {records:,} equal records")
        if time.monotonic() - saved_at > _SAVE_EVERY_S:
            report.save()
            saved_at = time.monotonic()

    with narrator.waiting() as tell:
        try:
            verify_ranges(session, [each.plan for each in ranges], lambda outcome: take(outcome, tell))
        finally:
            report.save()


def _flow_verdict(name: str, content: FlowContents, selected: Sequence[PartitionReport]) -> FlowVerdict:
    compared = [
        PartitionVerdict(found.source, found.target, found.comparison, found.end, tuple(found.errors))
        for found in selected
    ]
    empty = [PartitionVerdict(plan.source, plan.target, Comparison()) for plan in content.empty]
    not_begun = [
        PartitionVerdict(left.plan.source, left.plan.target, Comparison(), not_begun=left.why)
        for left in content.not_begun
    ]
    return FlowVerdict(name, sorted([*compared, *empty, *not_begun], key=lambda verdict: verdict.source))


def _fail(reason: object, code: int) -> int:
    sys.stderr.write(f"sparkmirror verify: {reason}\n")
    return code
