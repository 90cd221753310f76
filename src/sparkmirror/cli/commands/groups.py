"""Defines `sparkmirror groups`: explains the offsets of a consumer group on the target."""

import argparse
from typing import Final

from sparkmirror.cli.explanations import Columns, Explained, add_explain_arguments, explain_flows
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.printable import printable
from sparkmirror.groups.group_explanation import GroupFacts, explain
from sparkmirror.groups.group_facts import group_facts

COLUMNS: Final = Columns(
    {"source_offset": "committed", "source_lag": "lag"},
    {
        "translated_offset": "translated",
        "checkpoint_offset": "checkpoint",
        "target_offset": "committed",
        "target_lag": "lag",
        "next_sync_writes": "next sync writes",
    },
)

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
  sparkmirror groups explain mm2.properties billing
  sparkmirror groups explain mm2.properties billing --flow 'us-west->us-east' -o json
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
    add_explain_arguments(explaining)
    explaining.add_argument("group", metavar="GROUP", help="a consumer group's id")
    explaining.set_defaults(run=run_explain)


def run_explain(arguments: argparse.Namespace) -> int:
    group = GroupId(arguments.group)
    return explain_flows(
        arguments, "groups explain", COLUMNS, lambda flow: explained(group_facts(flow.settings, group))
    )


def explained(facts: GroupFacts) -> Explained:
    found = explain(facts)
    title = f"{printable(facts.group)}  {facts.flow}"
    return Explained(found, title, {"group": facts.group, "follows": found.is_fine})
