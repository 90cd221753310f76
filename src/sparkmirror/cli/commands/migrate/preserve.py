"""Defines `sparkmirror offsets preserve`: topics that are mirrored already get their source's offsets."""

import argparse

from sparkmirror.cli.arguments import not_empty
from sparkmirror.cli.commands.migrate.execution import MigrationKind, run_on_flow
from sparkmirror.cli.commands.migrate.options import (
    add_execution,
    add_file_and_flow,
)
from sparkmirror.migrate.promote.promotion import Wanted
from sparkmirror.migrate.remake.remake import Accepted, TopicRemaking
from sparkmirror.migrate.remake.remake_steps import TopicRemake, rows_of
from sparkmirror.status.flow_access import FlowAccess

_HELP = """\
Gives topics that a flow mirrors already the offsets of their source (offsets.preserve). Kafka can't rename
a topic, nor move a log: the topic is deleted on the target and copied again.
Shows the plan; --execute carries it out:
  check   which partitions have other offsets, what is copied again, and what would be lost
  stop    until no group that has read the topic on the target has members there
  switch  remember where the groups are, as offsets of the source; delete the topic, recreate it with the
          partitions and configs that it had
  copy    until the flow has copied what the source had at the switch
  groups  write their offsets on the target
  verify  compare the end offsets of both clusters
First set offsets.preserve=true in the file and restart the mirror with it: until then nothing else happens
than that the partitions stop, or continue as before (offsets.on.mismatch). Consumers without a group must be
stopped by hand.
--recreate does the same for topics with the offsets of their source, where that begins behind the copy's
end by now: instead of control markers for the offsets between (offsets.gap).

examples:
  sparkmirror offsets preserve mm2.properties orders
  sparkmirror offsets preserve mm2.properties orders payments --flow 'A->B' --execute --timeout 3600

An interrupted run can be repeated: it finds what is done already, and continues.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("offsets", description="Offsets on the target of a flow.")
    kinds = parser.add_subparsers(title="what to do", metavar="WHAT", required=True)
    preserve = kinds.add_parser(
        "preserve", help="give mirrored topics the offsets of their source", description=_HELP
    )
    add_file_and_flow(preserve)
    preserve.add_argument(
        "topics", nargs="+", type=not_empty, metavar="TOPIC", help="whole names on the source, as regexes"
    )
    preserve.add_argument(
        "--delete",
        action="store_true",
        help="accept that records are lost which only the target has; the plan counts them",
    )
    preserve.add_argument(
        "--leave-untranslated",
        action="store_true",
        help="continue although some offsets of groups are older than every offset sync: their consumers "
        "start as their auto.offset.reset says",
    )
    preserve.add_argument(
        "--recreate",
        action="store_true",
        help="also recreate topics that end before their source begins, instead of filling the gap",
    )
    add_execution(preserve)
    preserve.set_defaults(run=run, prog=preserve.prog)


def run(arguments: argparse.Namespace) -> int:
    return run_on_flow(arguments, _remaking)


def _remaking(arguments: argparse.Namespace, access: FlowAccess) -> MigrationKind[TopicRemake]:
    flow = access.flow
    accepted = Accepted(arguments.delete, arguments.leave_untranslated, arguments.recreate)
    remaking = TopicRemaking(access, Wanted.of(arguments.topics, "TOPIC"), accepted)
    return MigrationKind(
        access=access,
        title=f"{flow}: give topics on {flow.target} the offsets of {flow.source}",
        survey=remaking.survey,
        apply=remaking.apply,
        close=remaking.close,
        name=lambda remake: f"topic {remake.topic}",
        rows=rows_of,
        done=lambda _: f"Done. Consumers can be started on {flow.target}.",
    )
