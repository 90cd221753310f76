"""Defines `sparkmirror events`: what happened to a flow, and what happens to it now."""

import argparse
import json
import sys
from collections.abc import Iterable
from contextlib import ExitStack, closing
from datetime import UTC, datetime
from functools import partial
from typing import Final

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.cli.arguments import mirror_file
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE
from sparkmirror.cli.mirroring_flows import add_flow_argument, mirroring_flows
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.printable import printable
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.settings.configured import MirroringFlow
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.storage.events import Event, EventKind, parse_event

_READ_TIMEOUT_S: Final = 30.0
_POLL_S: Final = 0.5
_SETTINGS_MAX: Final = 200
_NEVER_RUN: Final = "no mirror of this file has run yet, or Java's, which writes no events"

_HELP: Final = """\
Prints what happened to each flow in the last 7 days: starts and stops, with
which settings and on which leader, partitions that failed, retried, stalled and
recovered, incidents, clusters that did not answer, what users asked for.
Times are UTC. The mirror writes it to mm2-events.SOURCE.internal on the target;
it may be running or not.

examples:
  sparkmirror events mm2.properties
  sparkmirror events mm2.properties --flow 'us-west->us-east' --follow
  sparkmirror events mm2.properties -o json | jq 'select(.kind == "failed")'
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "events",
        help="what happened to a mirror: starts, failures, incidents, outages",
        description=_HELP,
    )
    parser.add_argument("file", type=mirror_file, metavar="FILE", help="the mm2.properties of the mirror")
    add_flow_argument(parser)
    parser.add_argument("--follow", action="store_true", help="print new events until Ctrl-C")
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="json: an object a line (text)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    is_json = arguments.output == "json"
    try:
        flows = mirroring_flows(arguments.file, read_mirror_maker_file(arguments.file).flows, arguments.flow)
        with ExitStack() as opened:
            tails = [(flow, opened.enter_context(closing(_tail(flow)))) for flow in flows]
            found, errors = _past(tails)
            past = [(event, flow.name) for flow, events in found for event in events]
            for name, error in errors.items():
                sys.stderr.write(f"sparkmirror events: {name}: {printable(error)}\n")
            for event, name in sorted(past, key=lambda of: of[0].time):
                _show(event, name, is_json=is_json)
            while arguments.follow:
                for flow, tail in tails:
                    if flow.name in errors:
                        continue
                    for event in _events(tail.poll(_POLL_S)):
                        _show(event, flow.name, is_json=is_json)
    except KeyboardInterrupt:
        return 0
    except (SparkmirrorError, OSError) as error:
        sys.stderr.write(f"sparkmirror events: {printable(str(error))}\n")
        return CANNOT_TELL
    return CANNOT_TELL if errors else FINE


def _past(
    tails: Iterable[tuple[MirroringFlow, TopicTail]],
) -> tuple[list[tuple[MirroringFlow, list[Event]]], dict[str, str]]:
    """Read the events of each flow that can be told, and why others can't.

    Raises SparkmirrorError where none can.
    """
    found: list[tuple[MirroringFlow, list[Event]]] = []
    errors: dict[str, SparkmirrorError] = {}
    for flow, tail in tails:
        try:
            records = unless_missing(partial(_read, tail), None)
        except SparkmirrorError as error:
            errors[flow.name] = error
            continue
        if records is None:
            errors[flow.name] = SparkmirrorError(_NEVER_RUN)
        else:
            found.append((flow, _events(records)))
    if not found:
        raise SparkmirrorError("; ".join(dict.fromkeys(map(str, errors.values()))))
    return found, {name: str(error) for name, error in errors.items()}


def _read(tail: TopicTail) -> list[LogRecord]:
    return list(tail.read_to_end(_READ_TIMEOUT_S))


def _tail(flow: MirroringFlow) -> TopicTail:
    settings = flow.settings
    topic = StateTopic.EVENTS.of(settings.flow.source)
    return TopicTail(settings.worker_client, topic, may_be_missing=True)


def _events(records: Iterable[LogRecord]) -> list[Event]:
    return [event for record in records if (event := parse_event(record)) is not None]


def _show(event: Event, flow: str, *, is_json: bool) -> None:
    if is_json:
        line = json.dumps({"flow": flow, **event.to_json()})
    else:
        at = datetime.fromtimestamp(event.time, UTC).strftime("%Y-%m-%d %H:%M:%S")
        about = f"{event.about}: " if event.about else ""
        line = printable(f"{at}  {flow}  {event.kind.value:12}  {about}{_text(event)}")
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _text(event: Event) -> str:
    """Shorten the list of all settings with which a mirror begins."""
    text = event.text
    if event.kind is not EventKind.CONFIGURED or len(text) <= _SETTINGS_MAX:
        return text
    shown = text[:_SETTINGS_MAX].rpartition(", ")[0]
    return f"{shown} and {text.count(', ') - shown.count(', '):,} more; -o json has all"
