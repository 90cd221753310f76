"""Defines `sparkmirror failback`: the old source of a promoted flow follows its target."""

import argparse
from pathlib import Path

from sparkmirror.cli.arguments import not_empty
from sparkmirror.cli.commands.migrate.execution import MigrationKind, choose_flow, run_on_flow
from sparkmirror.cli.commands.migrate.options import (
    add_execution,
    add_file_and_flow,
    add_still_for,
    add_topics,
)
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow
from sparkmirror.migrate.promote.failback import Losses, TopicFailback
from sparkmirror.migrate.promote.failback_steps import FailbackRollback, TopicsFailback, rows_of
from sparkmirror.migrate.promote.promotion import Wanted
from sparkmirror.status.flow_access import FlowAccess

_HELP = """\
After sparkmirror promote of A->B: lets B->A, of the same file and with offsets.preserve, continue where both
logs part, so that A follows B with equal offsets. Shows the plan; --execute carries it out:
  check    which topics and partitions these are, and whether B->A copies them
  compare  what A has behind the parting that B does not have
  stop     until nothing is written to them on A any more: stop the producers
  keep     copy what A alone has to a topic (--keep-aside)
  switch   record that B->A continues at A's end; delete topics that can't follow (--delete)
  verify   how far A is behind B
When A has caught up, promote of B->A makes it the original again, and failback of B->A lets A->B continue.
Until that promotion, --roll-back stops B->A; B stays the original.

examples:
  sparkmirror failback mm2.properties --flow 'A->B'
  sparkmirror failback mm2.properties --flow 'A->B' --topic 'orders.*' --execute
  sparkmirror failback mm2.properties --flow 'A->B' --execute --keep-aside orders.of.a --delete
  sparkmirror failback mm2.properties --flow 'A->B' --roll-back --execute

An interrupted run can be repeated: it finds what is done already, and continues.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("failback", description=_HELP)
    add_file_and_flow(parser, "the mm2.properties with both flows", "the flow that was promoted")
    add_topics(parser, "whole names of topics on the flow's source; may be repeated (all that are promoted)")
    parser.add_argument(
        "--keep-aside",
        type=not_empty,
        metavar="TOPIC",
        help="copy records that only the old source has to this topic there, with a header that says where "
        "they were",
    )
    parser.add_argument(
        "--delete",
        action="store_true",
        help="delete topics on the old source that can't follow, since they have records of their own: they "
        "are recreated",
    )
    add_still_for(parser)
    parser.add_argument("--roll-back", action="store_true", help="stop the opposite flow for these topics")
    add_execution(parser)
    parser.set_defaults(run=run, prog=parser.prog)


def run(arguments: argparse.Namespace) -> int:
    return run_on_flow(arguments, _rollback if arguments.roll_back else _failback)


def _failback(arguments: argparse.Namespace, promoted: FlowAccess) -> MigrationKind[TopicsFailback]:
    failback = _of(arguments, promoted)
    flow = failback.opposite.flow
    return MigrationKind(
        access=failback.opposite,
        title=f"{flow}: let {flow.target} follow {flow.source}",
        survey=lambda: [failback.survey()],
        apply=failback.apply,
        name=lambda _: f"topics {', '.join(failback.wanted.patterns)}",
        rows=rows_of,
        done=lambda _: (
            f"Done. {flow} copies these topics, where it runs; producers stay on {flow.source}. sparkmirror "
            f"promote {arguments.file} --flow '{flow}' makes {flow.target} the original again."
        ),
    )


def _rollback(arguments: argparse.Namespace, promoted: FlowAccess) -> MigrationKind[FailbackRollback]:
    failback = _of(arguments, promoted)
    flow = failback.opposite.flow
    return MigrationKind(
        access=failback.opposite,
        title=f"{flow}: stop what a failback has begun",
        survey=lambda: [failback.survey_rollback()],
        apply=failback.undo,
        name=lambda _: f"topics {', '.join(failback.wanted.patterns)}",
        rows=lambda _: [],
        done=lambda _: (
            f"Done. {flow} does not copy these topics any more; their original is on {flow.source}."
        ),
    )


def _of(arguments: argparse.Namespace, promoted: FlowAccess) -> TopicFailback:
    if arguments.keep_aside is not None and not arguments.delete:
        raise SparkmirrorError("--keep-aside needs --delete, for which records are kept")
    return TopicFailback(
        promoted,
        _opposite(arguments.file, promoted.flow),
        Wanted.of(arguments.topics or [".*"], "--topic"),
        arguments.still_for,
        Losses(deletes=arguments.delete, aside=arguments.keep_aside),
    )


def _opposite(file: Path, promoted: Flow) -> FlowAccess:
    name = f"{promoted.target}->{promoted.source}"
    try:
        return choose_flow(file, name)
    except SparkmirrorError as error:
        raise SparkmirrorError(
            f"{error}. Add {name}.enabled=true, {name}.topics and {name}.offsets.preserve=true: that flow "
            f"brings {promoted.source} what was written on {promoted.target}"
        ) from error
