"""Defines `sparkmirror lag`: how far a mirror is behind, for people and for scripts that wait for it."""

import argparse
import json
import sys
import time
from collections.abc import Callable
from itertools import islice
from typing import Any, Final

from rich.console import Console

from sparkmirror.cli.arguments import not_empty, not_negative, positive
from sparkmirror.cli.exit_codes import CANNOT_TELL, of_all, of_answer
from sparkmirror.cli.mirroring_flows import add_flow_argument
from sparkmirror.cli.mirrors import Mirror, mirror_of
from sparkmirror.cli.rest_access import add_login_arguments
from sparkmirror.cli.terminal import StatusLines, aligned
from sparkmirror.client.connect_rest import ConnectUnreachableError
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.printable import printable
from sparkmirror.domain.quantities import as_time, counted
from sparkmirror.domain.troubles import NEVER_RUN
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.status.caught_up import FlowLag, LagLimit, lag_of, told, waits_for
from sparkmirror.storage.promotions import Promotions, promotions_json
from sparkmirror.view.values import PartitionView
from sparkmirror.view.words import Word

_LOOK_S: Final = 1.0
_SHOWN_MAX: Final = 20

_HELP: Final = """\
Prints how many records of each flow are not on its target yet. Changes nothing.

whom it asks:
  FILE  both clusters; the mirror, this one or Java's, may be running or not
  URL   the mirror that runs there: a worker, `run --http` or `watch`; as of the last second, without Kafka

The mirror stores a position once a second, Java's once a minute (offset.flush.interval.ms): of a FILE, what
it has copied since counts as missing. Topics that are promoted (sparkmirror promote) have no lag,
nor partitions that stand by until a failback.

--wait also waits for a mirror that does not run yet, was refused, or needs an operator, since that may be
mended meanwhile: stderr shows what is missing, and after the timeout the exit code is 1, or 2 where it can't
be told.

examples:
  sparkmirror lag mm2.properties
  sparkmirror lag mm2.properties --flow 'us-west->us-east' --topic 'orders.*' -o json
  sparkmirror lag mm2.properties --wait --max-records 100 --timeout 600 && echo caught up
  sparkmirror lag mm2.properties --max-seconds 0    # 1 while a single record is missing
  sparkmirror lag http://mirror-host:8080 --wait
  sparkmirror lag https://mirror-host:8080 --user ops --password-file ops.txt
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "lag",
        description=_HELP,
    )
    parser.add_argument(
        "of", type=not_empty, metavar="FILE | URL", help="the mirror's mm2.properties, or its URL"
    )
    add_login_arguments(parser)
    add_flow_argument(parser)
    parser.add_argument(
        "--topic",
        action="append",
        dest="topics",
        metavar="REGEX",
        help="whole names of topics on the source; may be repeated (all)",
    )
    parser.add_argument(
        "--max-records",
        type=not_negative,
        default=0,
        metavar="N",
        help="a partition with at most so many records to copy has caught up (0)",
    )
    parser.add_argument(
        "--max-seconds",
        type=not_negative,
        metavar="S",
        help="so has one whose oldest record to copy is at most so old; 0: only records count (as status "
        "says it: 5, of Java's mirror 65)",
    )
    parser.add_argument(
        "--wait",
        action="store_true",
        help="wait until every partition has caught up, whatever is in the way until the timeout",
    )
    parser.add_argument(
        "--timeout", type=positive, default=600, metavar="S", help="how long to wait, in seconds (600)"
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="the result's form (text)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        with mirror_of(arguments, arguments.of, shows_groups=False) as mirror:
            read = _reader(mirror, arguments)
            found = _awaited(read, arguments.timeout) if arguments.wait else read()
    except (SparkmirrorError, OSError) as error:
        sys.stderr.write(f"sparkmirror lag: {printable(str(error))}\n")
        return CANNOT_TELL
    if arguments.output == "json":
        sys.stdout.write(json.dumps([_to_json(lag) for lag in found], indent=2) + "\n")
    else:
        for lag in found:
            _show(lag)
    return of_all(of_answer(answer=lag.is_caught_up) for lag in found)


def _reader(mirror: Mirror, arguments: argparse.Namespace) -> Callable[[], list[FlowLag]]:
    is_wanted = compile_list(arguments.topics, "--topic").fullmatch if arguments.topics else bool
    seconds = arguments.max_seconds
    limit = LagLimit(arguments.max_records, seconds or None, by_word=seconds is None)
    return lambda: [lag_of(flow, is_wanted, limit) for flow in mirror.flows()]


def _awaited(read: Callable[[], list[FlowLag]], timeout_s: float) -> list[FlowLag]:
    """Wait until all have caught up or the time is over.

    Raises the last error if nothing could be read then.
    """
    deadline = time.monotonic() + timeout_s
    lines = StatusLines(Console(stderr=True))
    with lines.updates() as update:
        while True:
            is_over = time.monotonic() >= deadline
            try:
                found = read()
            except SparkmirrorError as error:
                # A mirror that has answered at a URL may be restarting.
                if is_over or not (error.retriable or isinstance(error, ConnectUnreachableError)):
                    raise
                update(str(error))
            else:
                waited_for = waits_for(found)
                if is_over or waited_for is None:
                    return found
                update(waited_for)
            time.sleep(min(_LOOK_S, max(0.0, deadline - time.monotonic())))


def _show(lag: FlowLag) -> None:
    """A line for the flow, and a table of the partitions that are behind or unknown, the worst first."""
    _write(f"{lag.flow}: {_summary(lag)}")
    _show_promoted(lag.promoted)
    if lag.standby:
        verb = "stands" if lag.standby == 1 else "stand"
        _write(f"  {counted(lag.standby, 'partition')} {verb} by: the opposite flow copies them")
    listed = [*lag.unknown, *lag.behind]
    if not listed:
        return
    is_told = lag.state.error is not None
    cells = (_row(it, is_told=is_told) for it in listed[:_SHOWN_MAX])
    rows = [("  partition", "end", "mirrored to", "lag", "age", ""), *cells]
    for line in aligned(rows, right=(1, 2, 3, 4)):
        sys.stdout.write(f"{line.rstrip()}\n")
    if len(listed) > _SHOWN_MAX:
        _write(f"  and {len(listed) - _SHOWN_MAX:,} more; -o json has all")


def _show_promoted(promoted: Promotions) -> None:
    for topic, each in islice(sorted(promoted.items()), _SHOWN_MAX):
        _write(f"  {topic}: {each}")
    if len(promoted) > _SHOWN_MAX:
        _write(f"  and {len(promoted) - _SHOWN_MAX:,} more that are promoted; -o json has all")


def _summary(lag: FlowLag) -> str:
    if not lag.partitions:
        return _nothing_to_copy(lag)
    state = lag.state
    if lag.is_caught_up is False and not lag.behind and state.error == NEVER_RUN:
        return told(state)
    said = [_figures(lag)]
    if lag.is_running is False:
        said.append(told(state))
    elif lag.unknown and state.error is not None and state.word is Word.UNKNOWN:
        return f"{said[0]} ({state.error})"
    return "; ".join(said)


def _nothing_to_copy(lag: FlowLag) -> str:
    if lag.promoted or lag.standby:
        return "nothing is left to copy"
    if lag.only_heartbeats:
        return "only heartbeats"
    return "no topic that it mirrors has such a name" if lag.has_topics else told(lag.state)


def _figures(lag: FlowLag) -> str:
    behind, unknown, everything = len(lag.behind), len(lag.unknown), counted(len(lag.partitions), "partition")
    if not behind and not unknown:
        on_their_way = f", {counted(lag.records, 'record')} on the way" if lag.records else ""
        return f"caught up, {everything}{on_their_way}"
    parts = [f"{counted(lag.records, 'record')} behind, in {behind:,} of {everything}"] if behind else []
    parts += [f"{unknown:,} of {everything} unknown"] if unknown else []
    return "; ".join(parts)


def _row(it: PartitionView, *, is_told: bool) -> tuple[str, ...]:
    """`is_told`: the flow has an error, of which the words of its partitions may be consequences."""
    return (
        f"  {it.source}",
        _number(it.source_end),
        _number(it.position),
        "?" if it.lag.records is None else f"{it.lag.records:,}",
        "" if it.lag.seconds is None else as_time(it.lag.seconds),
        (it.state.error if is_told else _why(it)) or "",
    )


def _why(it: PartitionView) -> str | None:
    return it.state.error or (told(it.state) if it.lag.records is None else None)


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _to_json(lag: FlowLag) -> dict[str, Any]:
    return {
        "flow": str(lag.flow),
        "state": lag.state.word.value,
        "records": None if lag.unknown and len(lag.unknown) == len(lag.partitions) else lag.records,
        "unknown_partitions": len(lag.unknown),
        "partitions": [
            {
                "topic": it.source.topic,
                "partition": it.source.partition,
                "end_offset": it.source_end,
                "mirrored_to": it.position,
                "records": it.lag.records,
                "seconds": None if it.lag.seconds is None else round(it.lag.seconds, 1),
                "why": _why(it),
            }
            for it in lag.partitions
        ],
        "promoted": promotions_json(lag.promoted),
    }


def _write(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
