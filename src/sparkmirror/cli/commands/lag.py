"""Defines `sparkmirror lag`: how far a mirror is behind, for people and for scripts that wait for it."""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol

from rich.console import Console

from sparkmirror.cli.arguments import not_empty, not_negative, positive
from sparkmirror.cli.mirror_api import MirrorApi, UrlLagReader, rest_of, wanted_flows
from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file
from sparkmirror.cli.mirroring_flows import add_flow_argument, mirroring_flows
from sparkmirror.cli.reachability import clusters_of, require_clusters
from sparkmirror.cli.rest_access import add_login_arguments, is_url
from sparkmirror.cli.terminal import StatusLines, aligned
from sparkmirror.client.connect_rest import ConnectUnreachableError
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.printable import printable
from sparkmirror.domain.quantities import as_time, counted
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.status.flow_access import FlowAccess
from sparkmirror.status.flow_lag import FlowLag, LagLimit, LagReader, PartitionLag
from sparkmirror.storage.promotions import Promotions, promotions_json
from sparkmirror.view.conditions import CURRENT_S

_CAUGHT_UP: Final = 0
_BEHIND: Final = 1
_UNKNOWN: Final = 2
_LOOK_S: Final = 1.0
_SHOWN_MAX: Final = 20

_HELP: Final = """\
Prints how many records of each flow are not on its target yet. Changes nothing.

Of a FILE, by the offsets of both clusters: of this mirror or Java's, which may be running or not. sparkmirror
stores a position once a second, Java once a minute (offset.flush.interval.ms): what it has copied since
counts as missing. Topics that are promoted (sparkmirror promote) have no lag, and are named.

Of a URL, as the mirror that runs there says it: a worker, `run --http` or `watch`. It needs no
access to Kafka, and is as of the last second.

examples:
  sparkmirror lag mm2.properties
  sparkmirror lag mm2.properties --flow 'us-west->us-east' --topic 'orders.*' -o json
  sparkmirror lag mm2.properties --wait --max-records 100 --timeout 600 && echo caught up
  sparkmirror lag mm2.properties --max-seconds 0            1 while a single record is missing
  sparkmirror lag http://mirror-host:8080 --wait
  sparkmirror lag https://mirror-host:8080 --user ops --password-file ops.txt
"""


class Reader(Protocol):
    """Reads the lag of one flow. Raises SparkmirrorError."""

    def read(self) -> FlowLag: ...


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
        default=CURRENT_S,
        metavar="S",
        help="so has one whose oldest record to copy is at most so old (5); 0: only records count",
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
        topics = compile_list(arguments.topics, "--topic").fullmatch if arguments.topics else _any
        with ExitStack() as opened:
            if is_url(arguments.of):
                readers = _of_url(opened, arguments, topics)
            else:
                readers = _of_file(opened, arguments, topics)
            found = _awaited(readers, arguments) if arguments.wait else _read(readers)
    except (SparkmirrorError, OSError) as error:
        sys.stderr.write(f"sparkmirror lag: {printable(str(error))}\n")
        return _UNKNOWN
    if arguments.output == "json":
        sys.stdout.write(json.dumps([_to_json(lag) for lag in found], indent=2) + "\n")
    else:
        for lag in found:
            _show(lag, _limit(arguments))
    return _exit_code(found, _limit(arguments))


def _of_file(
    opened: ExitStack, arguments: argparse.Namespace, is_wanted: Callable[[str], object]
) -> Sequence[Reader]:
    file = Path(arguments.of)
    flows = mirroring_flows(file, read_mirror_maker_file(file).flows, arguments.flow)
    if not arguments.wait:
        require_clusters(clusters_of(flow.settings for flow in flows))
    reads_ages = arguments.max_seconds > 0 or arguments.output == "json"
    return [
        opened.enter_context(
            closing(LagReader(FlowAccess.of(flow.settings, flow.connector), is_wanted, reads_ages=reads_ages))
        )
        for flow in flows
    ]


def _of_url(
    opened: ExitStack, arguments: argparse.Namespace, is_wanted: Callable[[str], object]
) -> Sequence[Reader]:
    rest = opened.enter_context(rest_of(arguments, arguments.of))
    api = MirrorApi(rest)
    flows = wanted_flows(api, rest.url, arguments.flow)
    return [UrlLagReader(api, flow, is_wanted) for flow in flows]


def _any(_topic: str) -> bool:
    return True


def _limit(arguments: argparse.Namespace) -> LagLimit:
    return LagLimit(arguments.max_records, arguments.max_seconds or None)


def _read(readers: Sequence[Reader]) -> list[FlowLag]:
    return [reader.read() for reader in readers]


def _awaited(readers: Sequence[Reader], arguments: argparse.Namespace) -> list[FlowLag]:
    """Until all have caught up, or the time is over. Raises the last error if nothing could be read then."""
    deadline = time.monotonic() + arguments.timeout
    lines = StatusLines(Console(stderr=True))
    with lines.updates() as update:
        while True:
            is_over = time.monotonic() >= deadline
            try:
                found = _read(readers)
            except SparkmirrorError as error:
                # Whoever has been asked at a URL may start again: that it was there is known by then.
                if is_over or not (error.retriable or isinstance(error, ConnectUnreachableError)):
                    raise
                update(str(error))
            else:
                if is_over or _exit_code(found, _limit(arguments)) == _CAUGHT_UP:
                    return found
                update(_waiting(found, _limit(arguments)))
            time.sleep(min(_LOOK_S, max(0.0, deadline - time.monotonic())))


def _waiting(found: Sequence[FlowLag], limit: LagLimit) -> str:
    behind = sum(len(lag.beyond(limit)) for lag in found)
    unknown = sum(len(lag.unknown) for lag in found)
    records = sum(lag.records for lag in found)
    text = f"{counted(records, 'record')} to copy, {counted(behind, 'partition')} behind"
    return text + (f", {counted(unknown, 'partition')} unknown" if unknown else "")


def _exit_code(found: Sequence[FlowLag], limit: LagLimit) -> int:
    if any(lag.beyond(limit) for lag in found):
        return _BEHIND
    is_known = all(not lag.unknown and (lag.partitions or lag.promoted) for lag in found)
    return _CAUGHT_UP if is_known else _UNKNOWN


def _show(lag: FlowLag, limit: LagLimit) -> None:
    """A line for the flow, and a table of the partitions that are behind or unknown, the worst first."""
    _write(f"{lag.flow}: {_summary(lag, limit)}")
    _show_promoted(lag.promoted)
    listed = [*lag.unknown, *lag.beyond(limit)]
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


def _summary(lag: FlowLag, limit: LagLimit) -> str:
    if not lag.partitions:
        if lag.promoted:
            return "nothing is left to copy"
        return lag.why or "no topic that it mirrors has such a name"
    behind, unknown, all_of_them = len(lag.beyond(limit)), len(lag.unknown), len(lag.partitions)
    if not behind and not unknown:
        on_their_way = f", {counted(lag.records, 'record')} on the way" if lag.records else ""
        return f"caught up, {counted(all_of_them, 'partition')}{on_their_way}"
    of = f"of {counted(all_of_them, 'partition')}"
    parts = [f"{counted(lag.records, 'record')} behind, in {behind:,} {of}"] if behind else []
    parts += [f"{unknown:,} {of} unknown"] if unknown else []
    return "; ".join(parts)


def _row(each: PartitionLag) -> tuple[str, ...]:
    return (
        f"  {each.source}",
        _number(each.end),
        _number(each.mirrored_to),
        "?" if each.records is None else f"{each.records:,}",
        "" if each.seconds is None else as_time(each.seconds),
        each.why or "",
    )


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _to_json(lag: FlowLag) -> dict[str, Any]:
    return {
        "flow": str(lag.flow),
        "records": lag.records,
        "unknown_partitions": len(lag.unknown),
        "partitions": [
            {
                "topic": each.source.topic,
                "partition": each.source.partition,
                "end_offset": each.end,
                "mirrored_to": each.mirrored_to,
                "records": each.records,
                "seconds": None if each.seconds is None else round(each.seconds, 1),
                "why": each.why,
            }
            for each in lag.partitions
        ],
        "promoted": promotions_json(lag.promoted),
    }


def _write(line: str) -> None:
    sys.stdout.write(f"{printable(line)}\n")
