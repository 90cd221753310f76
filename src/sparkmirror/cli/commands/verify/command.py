"""Defines `sparkmirror verify`: its arguments, the course of one run, its exit codes."""

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console

from sparkmirror.cli.arguments import mirror_file, positive
from sparkmirror.cli.commands.verify.table import print_table
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, INTERRUPTED, NOT_BEGUN, NOT_FINE
from sparkmirror.cli.mirroring_flows import add_flow_argument, mirroring_flows
from sparkmirror.cli.process import interrupt_on_signals
from sparkmirror.cli.reachability import reachable
from sparkmirror.cli.terminal import StatusLines
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.settings.configured import MirroringFlow
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.spark.log_files import spark_log_file
from sparkmirror.spark.required import require_spark
from sparkmirror.verify.range_comparison import RangeOutcome, RangePlan
from sparkmirror.verify.verdict import FlowVerdict, State, to_json, to_junit
from sparkmirror.verify.verification_run import NothingBegunError, Verification, keep_verdict

_SLOTS = 4

_EXAMPLES = """\
Reads both clusters and compares every mirrored record: count, order, key, value, headers, timestamp. A mirror
may be running: each partition is compared up to the position that its flow has stored.

examples:
  sparkmirror verify mm2.properties                              # every flow of the file
  sparkmirror verify mm2.properties --flow 'us-west->us-east'    # one flow
  sparkmirror verify mm2.properties --topic orders --topic 'page-.*'    # some topics
  sparkmirror verify mm2.properties --report proof.json          # continue later, compare only new records
  sparkmirror verify mm2.properties -o junit > verify.xml        # a test case per partition

results:
  missing         the target lacks a record
  extra           the target has a second copy, or a record of the mirror that the source does not have
  order           the target has it in another place
  key, value, headers, timestamp        which parts of a record differ
  foreign         another producer wrote to the target topic; counted, no difference
  not comparable  one side has lost it by retention or compaction; counted, no difference
Topics that are promoted (sparkmirror promote) are named, and not compared.

The result is kept in mm2-events.SOURCE.internal, if that exists and may be written: pages, events and metrics
of the mirror show it. Nothing else is changed on any cluster.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add `verify` to the command line; its `run` takes the parsed arguments and returns the exit code."""
    parser = subparsers.add_parser(
        "verify",
        description="Prove that what an mm2.properties file mirrors is the same on both clusters.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("file", type=mirror_file, metavar="FILE", help="the mirror's mm2.properties")
    add_flow_argument(parser)
    parser.add_argument(
        "--topic",
        action="append",
        dest="topics",
        metavar="REGEX",
        help="whole names of topics on the source; may be repeated (all)",
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
        help="keep the results in this file; the next run with it compares only what is left or new",
    )
    parser.add_argument(
        "--slots", type=positive, metavar="N", help=f"ranges compared at the same time ({_SLOTS})"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    interrupt_on_signals()
    try:
        verdicts, are_all = _verify(arguments)
    except NothingBegunError as error:
        return _fail(error, NOT_BEGUN)
    except (SparkmirrorError, OSError) as error:
        return _fail(error, CANNOT_TELL)
    except KeyboardInterrupt:
        kept = f"; {arguments.report} holds what is finished" if arguments.report else ""
        return _fail(f"interrupted{kept}", INTERRUPTED)
    match arguments.output:
        case "json":
            sys.stdout.write(to_json(verdicts) + "\n")
        case "junit":
            sys.stdout.write(to_junit(verdicts) + "\n")
        case _:
            print_table(Console(), verdicts)
    return exit_code(verdicts, are_all=are_all)


def exit_code(verdicts: Sequence[FlowVerdict], *, are_all: bool) -> int:
    """A difference counts more than what could not be compared, and that more than what is not begun."""
    if any(verdict.count(State.DIFFERENT) for verdict in verdicts):
        return NOT_FINE
    if not are_all or not all(verdict.is_equal for verdict in verdicts):
        return CANNOT_TELL
    return NOT_BEGUN if any(verdict.count(State.NOT_BEGUN) for verdict in verdicts) else FINE


def _verify(arguments: argparse.Namespace) -> tuple[list[FlowVerdict], bool]:
    """Return the verdicts, and whether they are of all flows."""
    status = StatusLines(Console(stderr=True))
    read = read_mirror_maker_file(arguments.file)
    flows = mirroring_flows(arguments.file, read.flows, arguments.flow)
    topics = compile_list(arguments.topics, "--topic") if arguments.topics else None
    left = reachable(flows, "verify")
    status.print(f"Reading both clusters of {', '.join(flow.name for flow in left)} …")
    verification = Verification(left, topics, arguments.report)
    if not verification.is_finished:
        _compare(verification, arguments.slots, read.spark, status)
    verdicts = verification.verdicts()
    _keep(left, verdicts, status)
    return verdicts, len(left) == len(flows)


def _compare(
    verification: Verification, slots: int | None, spark: Mapping[str, str], status: StatusLines
) -> None:
    require_spark()
    from sparkmirror.spark.session import Session  # noqa: PLC0415 - needs PySpark, the parser does not
    from sparkmirror.verify.spark_job import SETTINGS, verification_master, verify_ranges  # noqa: PLC0415 - likewise

    master = verification_master(slots or _SLOTS)
    if not slots:
        master = spark.get("spark.master", master)
    status.print(f"Starting Spark on {master} …")
    settings = {**SETTINGS, **spark, "spark.master": master}
    with closing(Session.start(master, settings, spark_log_file("verify"))) as session:

        def compare_ranges(plans: Sequence[RangePlan], on_outcome: Callable[[RangeOutcome], None]) -> None:
            status.print(f"Comparing {len(plans):,} ranges, {session.slots} at a time …")
            verify_ranges(session, plans, on_outcome)

        verification.compare(compare_ranges, status)


def _keep(flows: Sequence[MirroringFlow], verdicts: Sequence[FlowVerdict], status: StatusLines) -> None:
    """A mirror of Java's has no events, and who compares may have no right to write: neither is an error."""
    for flow, verdict in zip(flows, verdicts, strict=True):
        try:
            keep_verdict(flow.settings, flow.connector.name, verdict, time.time())
        except SparkmirrorError as error:
            status.print(f"The mirror's pages and metrics won't show this result: {error}")


def _fail(reason: object, code: int) -> int:
    sys.stderr.write(f"sparkmirror verify: {reason}\n")
    return code
