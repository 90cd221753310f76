"""Defines `sparkmirror groups`: explains the offsets of a consumer group on the target, as tables or JSON."""

import argparse
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE
from sparkmirror.cli.mirroring_flows import add_explain_arguments, explained
from sparkmirror.cli.terminal import aligned
from sparkmirror.domain.ids import Flow, GroupId
from sparkmirror.domain.printable import printable
from sparkmirror.groups.group_explanation import GroupExplanation, PartitionExplanation, explain
from sparkmirror.groups.group_facts import group_facts

_NUMBERS: Final = (1, 2, 4, 5, 6, 7, 8)

_EXPLAIN_HELP = """\
Explains for every partition of a consumer group its offset on the target of a flow, by the current state of
both clusters and of the flow's offset syncs and checkpoints. Changes nothing; the mirror, Java's or this one,
may be running.

why the offsets of a group, or of one of its partitions, are not synced:
  filtered                    a filter excludes the group or the topic; the setting is named
  no sync yet                 the mirror has written no offset sync for the partition
  older than the first sync   the offset is too old to be translated
  active on the target        the group has members there; they are named
  share, streams group        such groups commit no offsets that can be translated
  unreadable                  a right is missing, or the topic

an offset is translated:
  exactly                     no record is read again or skipped; found by offset syncs, or in the records
  approximately               no record is skipped; at most so many records are read again

examples:
  sparkmirror groups explain billing mm2.properties
  sparkmirror groups explain billing mm2.properties --flow 'us-west->us-east' -o json
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "groups",
        description="Explain what a mirror does with consumer groups.",
    )
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    explaining = verbs.add_parser(
        "explain",
        help="a group's offsets on a target, partition by partition",
        description=_EXPLAIN_HELP,
    )
    explaining.add_argument("group", metavar="GROUP", help="a consumer group's id")
    add_explain_arguments(explaining)
    explaining.set_defaults(run=run_explain)


def run_explain(arguments: argparse.Namespace) -> int:
    group = GroupId(arguments.group)
    found = explained(
        arguments,
        "groups explain",
        lambda flow: explain(group_facts(flow.settings, group)),
        show,
        to_json,
    )
    if found is None:
        return CANNOT_TELL
    return FINE if all(each.is_following for each in found) else NOT_FINE


def show(console: Console, found: GroupExplanation) -> None:
    console.print(Text.assemble((printable(found.group), "bold"), f"  {found.flow}"))
    for line in found.obstacles:
        console.print(f"  ✗ {printable(line)}", highlight=False, markup=False, soft_wrap=True)
    for line in found.notes:
        console.print(f"  {printable(line)}", highlight=False, markup=False, soft_wrap=True)
    if found.partitions:
        rows = [_row(each) for each in found.partitions]
        table = aligned([_headings(found.flow), *rows], right=_NUMBERS)
        for line in ("", *table, ""):
            console.print(f"  {line}".rstrip(), highlight=False, markup=False, soft_wrap=True)
    for partition in found.partitions:
        mark = "✓" if partition.is_following else "✗"
        console.print(
            f"  {mark} {partition.source}: {partition.why}", highlight=False, markup=False, soft_wrap=True
        )


def _headings(flow: Flow) -> tuple[str, ...]:
    here, there = f"on {flow.source}", f"on {flow.target}"
    return here, "committed", "lag", there, "translated", "checkpoint", "committed", "lag", "next sync writes"


def _row(each: PartitionExplanation) -> tuple[str, ...]:
    translated = None if each.place is None else each.place.offset
    return (
        str(each.source),
        _number(each.committed),
        _number(each.lag),
        str(each.target),
        _number(translated),
        _number(each.checkpoint),
        _number(each.target_committed),
        _number(each.target_lag),
        _number(each.next_write),
    )


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def to_json(found: GroupExplanation) -> dict[str, Any]:
    return {
        "flow": str(found.flow),
        "group": found.group,
        "follows": found.is_following,
        "obstacles": list(found.obstacles),
        "notes": list(found.notes),
        "partitions": [_partition_to_json(partition) for partition in found.partitions],
    }


def _partition_to_json(partition: PartitionExplanation) -> dict[str, Any]:
    place = partition.place
    return {
        "source": str(partition.source),
        "target": str(partition.target),
        "translation": partition.translation,
        "why": partition.why,
        "source_offset": partition.committed,
        "source_lag": partition.lag,
        "translated_offset": None if place is None else place.offset,
        "read_again_max": None if place is None else place.behind_max,
        "checkpoint_offset": partition.checkpoint,
        "target_offset": partition.target_committed,
        "target_lag": partition.target_lag,
        "next_sync_writes": partition.next_write,
    }
