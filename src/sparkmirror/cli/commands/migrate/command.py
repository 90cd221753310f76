"""Defines `sparkmirror migrate`: `consumers` and `producers`."""

import argparse
from collections.abc import Sequence

from sparkmirror.cli.arguments import not_empty
from sparkmirror.cli.commands.migrate.execution import MigrationKind, NotPossibleError, run_on_flow
from sparkmirror.cli.commands.migrate.options import (
    add_execution,
    add_file_and_flow,
    add_still_for,
    add_topics,
)
from sparkmirror.cli.commands.migrate.report import drain_rows, move_rows, rollback_rows
from sparkmirror.domain.ids import GroupId
from sparkmirror.migrate.moves.consumers import ConsumerMigration
from sparkmirror.migrate.moves.group_move_steps import GroupMove, GroupRollback, PartitionMove
from sparkmirror.migrate.moves.producers import ProducerMigration
from sparkmirror.migrate.moves.topic_drain_steps import PartitionDrain, TopicsDrain
from sparkmirror.migrate.steps import some_of
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.status.flow_access import FlowAccess

_ENDING = """\
An interrupted run can be repeated: it finds what is done already, and continues.
"""

_CONSUMERS_HELP = f"""\
Moves consumer groups to the target of a flow, so that they continue there exactly where they are.
Shows the plan; --execute carries it out:
  check    what the group has committed on the source, and its lag there
  wait     until its consumers on the source are stopped
  mirror   until the mirror has copied all that the group has read, and written offset syncs for it
  sync     write the translated offsets for the group on the target; it is never set back there
  verify   read them back, print the position of every partition
Then the consumers can be started on the target. --roll-back restores the offsets that were there before,
which are stored on the target.

examples:
  sparkmirror migrate consumers mm2.properties --group billing
  sparkmirror migrate consumers mm2.properties --group billing --group shipping --execute
  sparkmirror migrate consumers mm2.properties --group billing --execute --timeout 600 -o json
  sparkmirror migrate consumers mm2.properties --group billing --roll-back --execute

{_ENDING}"""

_PRODUCERS_HELP = f"""\
Tells when the producers of some topics can continue on the target of a flow.
Shows the plan; --execute waits for it:
  check      which partitions these are, and how many of their records are not mirrored yet
  stop       until nothing is written to them on the source any more: stop the producers
  drain      until all records are on the target
  heartbeat  the flow's last one there, which shows that its mirror still runs
  verify     compare the end offsets of both clusters, print which offset is which
Then the producers can be started on the target, and the records keep their order. Nothing is written.

examples:
  sparkmirror migrate producers mm2.properties --topic 'orders.*'
  sparkmirror migrate producers mm2.properties --topic orders --topic payments --execute --still-for 30

{_ENDING}"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "migrate",
        description="Move consumer groups and producers to the target of a flow, step by step.",
    )
    kinds = parser.add_subparsers(title="what moves", metavar="WHAT", required=True)
    _add_consumers(kinds)
    _add_producers(kinds)


def _add_consumers(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = kinds.add_parser(
        "consumers",
        help="consumer groups, exactly to where they are",
        description=_CONSUMERS_HELP,
    )
    add_file_and_flow(parser)
    parser.add_argument(
        "--group",
        required=True,
        action="append",
        dest="groups",
        type=not_empty,
        metavar="GROUP",
        help="may be repeated",
    )
    parser.add_argument(
        "--leave-untranslated",
        action="store_true",
        help="move a group although some of its offsets are older than every offset sync: there its "
        "consumers start as their auto.offset.reset says",
    )
    parser.add_argument(
        "--roll-back",
        action="store_true",
        help="restore the offsets that the groups had on the target, and remove those that they had not",
    )
    add_execution(parser)
    parser.set_defaults(run=_run_consumers, prog=parser.prog)


def _add_producers(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = kinds.add_parser(
        "producers",
        help="producers, once all that they wrote is on the target",
        description=_PRODUCERS_HELP,
    )
    add_file_and_flow(parser)
    add_topics(parser, "whole names of topics on the source; may be repeated", is_required=True)
    add_still_for(parser)
    add_execution(parser)
    parser.set_defaults(run=_run_producers, prog=parser.prog)


def _run_consumers(arguments: argparse.Namespace) -> int:
    return run_on_flow(arguments, _rollback if arguments.roll_back else _move)


def _migration(arguments: argparse.Namespace, access: FlowAccess) -> tuple[ConsumerMigration, list[GroupId]]:
    if access.checkpoint is None:
        raise NotPossibleError(
            f"{access.flow} emits no checkpoints or no offset syncs: its groups' offsets can't be translated"
        )
    migration = ConsumerMigration(access, access.checkpoint, leave_untranslated=arguments.leave_untranslated)
    return migration, list(dict.fromkeys(map(GroupId, arguments.groups)))


def _move(arguments: argparse.Namespace, access: FlowAccess) -> MigrationKind[GroupMove]:
    flow = access.flow
    migration, groups = _migration(arguments, access)
    return MigrationKind(
        access=access,
        title=f"{flow}: move consumers to {flow.target}",
        survey=lambda: migration.survey(groups),
        apply=migration.write,
        close=migration.close,
        name=lambda move: f"group {move.group}",
        rows=move_rows,
        done=lambda moves: (
            f"Done. The consumers can be started on {flow.target}"
            f"{under_other_names('read', [each for move in moves for each in move.partitions])}; "
            "--roll-back --execute undoes it."
        ),
    )


def _rollback(arguments: argparse.Namespace, access: FlowAccess) -> MigrationKind[GroupRollback]:
    flow = access.flow
    migration, groups = _migration(arguments, access)
    return MigrationKind(
        access=access,
        title=f"{flow}: undo what was written for these groups on {flow.target}",
        survey=lambda: migration.survey_rollback(groups),
        apply=migration.restore,
        close=migration.close,
        name=lambda rollback: f"group {rollback.group}",
        rows=rollback_rows,
        done=lambda _: f"Done. The consumers can be started on {flow.source}; nothing has changed there.",
    )


def _run_producers(arguments: argparse.Namespace) -> int:
    return run_on_flow(arguments, _drain)


def _drain(arguments: argparse.Namespace, access: FlowAccess) -> MigrationKind[TopicsDrain]:
    flow = access.flow
    topics = compile_list(arguments.topics, "--topic")
    migration = ProducerMigration(access, topics.fullmatch, arguments.still_for, arguments.topics)
    return MigrationKind(
        access=access,
        title=f"{flow}: move producers to {flow.target}",
        survey=lambda: [migration.survey()],
        apply=lambda _: {},
        close=migration.close,
        name=lambda _: f"topics {', '.join(arguments.topics)}",
        rows=drain_rows,
        done=lambda drains: (
            f"Done. The producers can be started on {flow.target}"
            f"{under_other_names('write', [each for drain in drains for each in drain.partitions])}."
        ),
    )


def under_other_names(use: str, partitions: Sequence[PartitionMove | PartitionDrain]) -> str:
    """Return the end of a sentence about topics with other names on the target, or an empty text."""
    names = {each.source.topic: each.target.topic for each in partitions}
    other = [f"{there} instead of {here}" for here, there in sorted(names.items()) if here != there]
    return f", where they {use} {some_of(other)}" if other else ""
