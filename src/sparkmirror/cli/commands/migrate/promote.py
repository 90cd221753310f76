"""Defines `sparkmirror promote`: the copies of a flow become the originals."""

import argparse

from sparkmirror.cli.commands.migrate.execution import MigrationKind, run_on_flow
from sparkmirror.cli.commands.migrate.options import (
    add_execution,
    add_file_and_flow,
    add_still_for,
    add_topics,
)
from sparkmirror.migrate.promote.promotion import TopicPromotion, Wanted
from sparkmirror.migrate.promote.promotion_steps import PromotionRollback, TopicsPromotion, rows_of
from sparkmirror.status.flow_access import FlowAccess

_HELP = """\
Makes the copies of a flow the originals, where their offsets are preserved (offsets.preserve): applications
write them on the target, and the flow never does again. Shows the plan; --execute carries it out:
  check   which topics and partitions these are, and how many of their records are not mirrored yet
  start   until each log on the target begins with its source's records
  stop    until nothing is written to them on the source any more: stop the producers
  drain   until all records are on the target
  switch  stop the flow for them, bring them to their source's end, fence the flow
  groups  copy the offsets of consumer groups, as they are
  verify  compare the end offsets of both clusters
Then producers and consumers can be started on the target. Until the switch, --roll-back lets the flow copy
the topics again; behind it only if they were deleted on the target.

examples:
  sparkmirror promote mm2.properties --flow 'A->B'
  sparkmirror promote mm2.properties --flow 'A->B' --execute --timeout 600
  sparkmirror promote mm2.properties --flow 'A->B' --topic 'orders.*' --execute --stop-at-now
  sparkmirror promote mm2.properties --flow 'A->B' --execute --source-is-gone
  sparkmirror promote mm2.properties --flow 'A->B' --topic 'orders.*' --roll-back --execute

An interrupted run can be repeated: it finds what is done already, and continues.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("promote", description=_HELP)
    add_file_and_flow(parser)
    add_topics(
        parser, "whole names of topics on the source; may be repeated (all whose offsets are preserved)"
    )
    parser.add_argument(
        "--stop-at-now",
        action="store_true",
        help="don't wait until nothing is written on the source: what is written later may stay there alone",
    )
    parser.add_argument(
        "--source-is-gone",
        action="store_true",
        help="ask the source for nothing: what the mirror has copied becomes the original",
    )
    add_still_for(parser)
    parser.add_argument("--roll-back", action="store_true", help="let the flow copy the topics again")
    add_execution(parser)
    parser.set_defaults(run=run, prog=parser.prog)


def run(arguments: argparse.Namespace) -> int:
    return run_on_flow(arguments, _rollback if arguments.roll_back else _promotion)


def _promotion(arguments: argparse.Namespace, access: FlowAccess) -> MigrationKind[TopicsPromotion]:
    flow, promotion = access.flow, _of(arguments, access)
    return MigrationKind(
        access=access,
        title=f"{flow}: make {flow.target} the original",
        survey=lambda: [promotion.survey()],
        apply=promotion.apply,
        close=promotion.close,
        name=lambda _: f"topics {', '.join(arguments.topics or ['.*'])}",
        rows=rows_of,
        done=lambda _: (
            f"Done. {flow} does not write these topics any more: producers and consumers can be started on "
            f"{flow.target}, and none may write them on {flow.source}. sparkmirror failback "
            f"{arguments.file} --flow '{flow}' lets {flow.source} follow."
        ),
        asks_source=not arguments.source_is_gone,
    )


def _rollback(arguments: argparse.Namespace, access: FlowAccess) -> MigrationKind[PromotionRollback]:
    flow, promotion = access.flow, _of(arguments, access)
    return MigrationKind(
        access=access,
        title=f"{flow}: copy to {flow.target} again",
        survey=lambda: [promotion.survey_rollback()],
        apply=promotion.undo,
        close=promotion.close,
        name=lambda _: f"topics {', '.join(arguments.topics or ['.*'])}",
        rows=lambda _: [],
        done=lambda _: f"Done. {flow} copies these topics, as before.",
        asks_source=not arguments.source_is_gone,
    )


def _of(arguments: argparse.Namespace, access: FlowAccess) -> TopicPromotion:
    return TopicPromotion(
        access,
        Wanted.of(arguments.topics or [".*"], "--topic"),
        arguments.still_for,
        stops_at_now=arguments.stop_at_now,
        is_source_gone=arguments.source_is_gone,
    )
