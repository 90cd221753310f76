"""Defines `sparkmirror lag`: how far a mirror is behind, for people and for scripts that wait for it."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Final, NamedTuple

from rich.console import Console

from sparkmirror.cli.arguments import not_empty, not_negative, positive
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE, of_all, of_word
from sparkmirror.cli.mirroring_flows import add_flow_argument
from sparkmirror.cli.mirrors import FlowAnswer, Mirror, mirror_of
from sparkmirror.cli.rest_access import add_login_arguments
from sparkmirror.cli.terminal import StatusLines, aligned
from sparkmirror.client.connect_rest import ConnectUnreachableError
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.printable import printable
from sparkmirror.domain.quantities import as_time, counted
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.status.flow_look import NEVER_RUN
from sparkmirror.storage.promotions import Promotions, promotions_json
from sparkmirror.view.values import PartitionView, State
from sparkmirror.view.words import Word

_LOOK_S: Final = 1.0
_SHOWN_MAX: Final = 20

_HELP: Final = """\
Prints how many records of each flow are not on its target yet. Changes nothing.

whom it asks:
  FILE  both clusters; the mirror, this one or Java's, may be running or not
  URL   the mirror that runs there: a worker, `run --http` or `watch`; as of the last second, without Kafka

The mirror stores a position once a second, Java's once a minute (offset.flush.interval.ms): of a FILE, what
it has copied since counts as missing. Topics that are promoted (sparkmirror promote) have no lag.

examples:
  sparkmirror lag mm2.properties
  sparkmirror lag mm2.properties --flow 'us-west->us-east' --topic 'orders.*' -o json
  sparkmirror lag mm2.properties --wait --max-records 100 --timeout 600 && echo caught up
  sparkmirror lag mm2.properties --max-seconds 0    # 1 while a single record is missing
  sparkmirror lag http://mirror-host:8080 --wait
  sparkmirror lag https://mirror-host:8080 --user ops --password-file ops.txt
"""


class LagLimit(NamedTuple):
    """A partition is as good as caught up when it keeps one of them; `seconds` is None for no such limit.

    `by_word`: or when its state says so, as `status` shows it. Where the mirror reports an error, nothing
    tells that its records are on their way: only `records` count.
    """

    records: int = 0
    seconds: float | None = None
    by_word: bool = False

    def is_kept(self, it: PartitionView) -> bool:
        """Whether a partition, whose lag is known, keeps within the limits."""
        if it.lag.records is not None and it.lag.records <= self.records:
            return True
        if self.by_word and it.state.word is Word.CAUGHT_UP and it.state.error is None:
            return True
        if self.seconds is None or it.lag.seconds is None or it.state.error is not None:
            return False
        return it.lag.seconds <= self.seconds


class FlowLag(NamedTuple):
    """The lag of those topics of a flow that are wanted."""

    answer: FlowAnswer
    limit: LagLimit
    partitions: Sequence[PartitionView]
    promoted: Promotions

    @property
    def records(self) -> int:
        """Add up the records of the partitions whose lag is known."""
        return sum(it.lag.records or 0 for it in self.partitions)

    @property
    def unknown(self) -> list[PartitionView]:
        return [it for it in self.partitions if it.lag.records is None]

    @property
    def behind(self) -> list[PartitionView]:
        """The partitions beyond the limit, the worst first."""
        found = [it for it in self.partitions if it.lag.records is not None and not self.limit.is_kept(it)]
        return sorted(found, key=lambda it: (-(it.lag.records or 0), it.source))

    @property
    def exit_code(self) -> int:
        if self.behind or (self.partitions and self.answer.state.error == NEVER_RUN):
            return NOT_FINE
        if not (self.answer.partitions or self.answer.promoted):
            return FINE if self.answer.only_heartbeats else of_word(self.answer.state.word)
        return CANNOT_TELL if self.unknown or not (self.partitions or self.promoted) else FINE


def lag_of(answer: FlowAnswer, is_wanted: Callable[[str], object], limit: LagLimit) -> FlowLag:
    """`is_wanted` gets the names of topics on the source."""
    partitions = sorted(
        (it for it in answer.partitions if is_wanted(it.source.topic)), key=attrgetter("source")
    )
    if answer.is_running is False:
        limit = LagLimit(limit.records)  # nothing is on its way
    promoted = {topic: each for topic, each in answer.promoted.items() if is_wanted(topic)}
    return FlowLag(answer, limit, partitions, promoted)


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
    parser.add_argument("--wait", action="store_true", help="wait until every partition has caught up")
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
    return of_all(lag.exit_code for lag in found)


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
                if is_over or of_all(lag.exit_code for lag in found) == FINE:
                    return found
                update(_waiting(found))
            time.sleep(min(_LOOK_S, max(0.0, deadline - time.monotonic())))


def _waiting(found: Sequence[FlowLag]) -> str:
    """Describe the wait, with the first error that needs action, since the wait may be in vain."""
    behind = sum(len(lag.behind) for lag in found)
    unknown = sum(len(lag.unknown) for lag in found)
    text = f"{counted(sum(lag.records for lag in found), 'record')} to copy"
    text += f", {counted(behind, 'partition')} behind" + (f", {unknown:,} unknown" if unknown else "")
    failing = [it for lag in found for it in lag.partitions if it.state.word is Word.ACTION_REQUIRED]
    causes = [_told(it.answer.state) for it in found if it.exit_code != FINE and it.answer.state.error]
    causes = causes or [f"{it.source}: {it.state.word}: {it.state.error}" for it in failing]
    return text + "".join(f"; {cause}" for cause in causes[:1])


def _show(lag: FlowLag) -> None:
    """A line for the flow, and a table of the partitions that are behind or unknown, the worst first."""
    _write(f"{lag.answer.flow}: {_summary(lag)}")
    _show_promoted(lag.promoted)
    listed = [*lag.unknown, *lag.behind]
    if not listed:
        return
    rows = [("  partition", "end", "mirrored to", "lag", "age", ""), *map(_row, listed[:_SHOWN_MAX])]
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
        if lag.promoted:
            return "nothing is left to copy"
        if lag.answer.only_heartbeats:
            return "only heartbeats"
        is_other = lag.answer.partitions or lag.answer.promoted
        return "no topic that it mirrors has such a name" if is_other else _told(lag.answer.state)
    behind, unknown, all_of_them = len(lag.behind), len(lag.unknown), len(lag.partitions)
    if not behind and not unknown:
        on_their_way = f", {counted(lag.records, 'record')} on the way" if lag.records else ""
        caught_up = f"caught up, {counted(all_of_them, 'partition')}{on_their_way}"
        if lag.answer.is_running is not False:
            return caught_up
        told = _told(lag.answer.state)
        return told if lag.answer.state.error == NEVER_RUN else f"{caught_up}; {told}"
    of = f"of {counted(all_of_them, 'partition')}"
    parts = [f"{counted(lag.records, 'record')} behind, in {behind:,} {of}"] if behind else []
    parts += [f"{unknown:,} {of} unknown"] if unknown else []
    state = lag.answer.state
    is_why = state.error is not None and state.word is Word.UNKNOWN
    return "; ".join(parts) + (f" ({state.error})" if is_why else "")


def _row(it: PartitionView) -> tuple[str, ...]:
    return (
        f"  {it.source}",
        _number(it.source_end),
        _number(it.position),
        "?" if it.lag.records is None else f"{it.lag.records:,}",
        "" if it.lag.seconds is None else as_time(it.lag.seconds),
        _why(it) or "",
    )


def _why(it: PartitionView) -> str | None:
    return it.state.error or (_told(it.state) if it.lag.records is None else None)


def _told(state: State) -> str:
    said = state.error or state.advice
    return f"{state.word}: {said}" if said else state.word


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _to_json(lag: FlowLag) -> dict[str, Any]:
    return {
        "flow": str(lag.answer.flow),
        "state": lag.answer.state.word.value,
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
