"""Defines `sparkmirror promote`: the copies of a flow become the originals."""

import argparse
from contextlib import closing
from pathlib import Path

from sparkmirror.cli.commands.migrate.command import (
    add_output,
    add_still_for,
    add_timeout,
    add_topics_and_execute,
    choose_flow,
    silent,
)
from sparkmirror.cli.commands.migrate.execution import MigrationKind, carry_out, fail
from sparkmirror.cli.exit_codes import CANNOT_TELL, NOT_FINE
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow
from sparkmirror.migrate.promote.promotion import TopicPromotion, Wanted
from sparkmirror.migrate.promote.promotion_steps import PromotionRollback, TopicsPromotion, rows_of

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
  sparkmirror promote mm2.properties 'A->B'
  sparkmirror promote mm2.properties 'A->B' --execute --timeout 600
  sparkmirror promote mm2.properties 'A->B' --topics 'orders.*' --execute --stop-at-now
  sparkmirror promote mm2.properties 'A->B' --execute --source-is-gone
  sparkmirror promote mm2.properties 'A->B' --topics 'orders.*' --roll-back --execute

An interrupted run can be repeated: it finds what is done already, and continues.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("promote", description=_HELP)
    parser.add_argument("file", type=Path, metavar="FILE", help="the mirror's mm2.properties")
    parser.add_argument(
        "flow", nargs="?", metavar="SOURCE->TARGET", help="a flow of the file, if it has several"
    )
    add_topics_and_execute(
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
    add_timeout(parser)
    parser.add_argument("--roll-back", action="store_true", help="let the flow copy the topics again")
    add_output(parser)
    parser.set_defaults(run=run, prog=parser.prog)


def run(arguments: argparse.Namespace) -> int:
    patterns = arguments.topics or [".*"]
    try:
        access = choose_flow(arguments.file, arguments.flow)
        wanted = Wanted.of(patterns, "--topics")
    except SparkmirrorError as error:
        return fail(arguments, error, CANNOT_TELL)
    if (unreachable := silent(access, with_source=not arguments.source_is_gone)) is not None:
        return fail(arguments, unreachable, CANNOT_TELL)
    promotion = TopicPromotion(
        access,
        wanted,
        arguments.still_for,
        stops_at_now=arguments.stop_at_now,
        is_source_gone=arguments.source_is_gone,
    )
    try:
        with closing(promotion):
            if arguments.roll_back:
                return carry_out(arguments, _rollback(access.flow, promotion, patterns))
            return carry_out(arguments, _promotion(access.flow, promotion, patterns))
    except SparkmirrorError as error:
        return fail(arguments, error, NOT_FINE)


def _promotion(flow: Flow, promotion: TopicPromotion, patterns: list[str]) -> MigrationKind[TopicsPromotion]:
    return MigrationKind(
        flow=flow,
        title=f"{flow}: make {flow.target} the original",
        survey=lambda: [promotion.survey()],
        apply=promotion.apply,
        name=lambda _: f"topics {', '.join(patterns)}",
        rows=rows_of,
        done=f"Done. {flow} does not write these topics any more: producers and consumers can be started on "
        f"{flow.target}, and none may write them on {flow.source}.",
    )


def _rollback(flow: Flow, promotion: TopicPromotion, patterns: list[str]) -> MigrationKind[PromotionRollback]:
    return MigrationKind(
        flow=flow,
        title=f"{flow}: copy to {flow.target} again",
        survey=lambda: [promotion.survey_rollback()],
        apply=promotion.undo,
        name=lambda _: f"topics {', '.join(patterns)}",
        rows=lambda _: [],
        done=f"Done. {flow} copies these topics, as before.",
    )
