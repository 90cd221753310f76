"""Defines `sparkmirror migrate`: the arguments of `consumers` and `producers`, and the flow they name."""

import argparse
from contextlib import closing
from pathlib import Path

from sparkmirror.cli.arguments import not_empty, positive
from sparkmirror.cli.commands.migrate.execution import MigrationKind, carry_out, fail
from sparkmirror.cli.commands.migrate.report import drain_rows, move_rows, rollback_rows
from sparkmirror.cli.exit_codes import CANNOT_TELL, NOT_FINE
from sparkmirror.cli.mirror_maker_file import read_mirror_maker_file
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.cli.reachability import silent_clusters
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow, GroupId
from sparkmirror.migrate.moves.consumers import ConsumerMigration
from sparkmirror.migrate.moves.group_move_steps import GroupMove, GroupRollback
from sparkmirror.migrate.moves.producers import ProducerMigration
from sparkmirror.migrate.moves.topic_drain_steps import TopicsDrain
from sparkmirror.policies.java_regex import compile_list
from sparkmirror.status.flow_access import FlowAccess

_ENDING = """\
An interrupted run can be repeated: it finds what is done already, and continues.
"""

_CONSUMERS_HELP = f"""\
Moves consumer groups to the target of a flow, so that they continue there exactly where they are:
  check    what the group has committed on the source, and its lag there
  wait     until its consumers on the source are stopped
  mirror   until the mirror has copied all that the group has read, and written offset syncs for it
  sync     write the translated offsets for the group on the target; it is never set back there
  verify   read them back, print the position of every partition
Then the consumers can be started on the target. --roll-back restores the offsets that were there before,
which are stored on the target.

examples:
  sparkmirror migrate consumers --group billing --dry-run mm2.properties
  sparkmirror migrate consumers --group billing --group shipping mm2.properties
  sparkmirror migrate consumers --group billing --yes --timeout 600 -o json mm2.properties
  sparkmirror migrate consumers --group billing --roll-back mm2.properties

{_ENDING}"""

_PRODUCERS_HELP = f"""\
Reports when the producers of some topics can continue on the target of a flow:
  check      which partitions these are, and how many of their records are not mirrored yet
  stop       until nothing is written to them on the source any more: stop the producers
  drain      until all records are on the target
  heartbeat  the flow's last one there, which shows that its mirror still runs
  verify     compare the end offsets of both clusters, print which offset is which
Then the producers can be started on the target, and the records keep their order. Nothing is written.

examples:
  sparkmirror migrate producers --topic 'orders.*' --dry-run mm2.properties
  sparkmirror migrate producers --topic orders --topic payments --still-for 30 mm2.properties

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
    parser.add_argument(
        "--group",
        required=True,
        action="append",
        dest="groups",
        type=not_empty,
        metavar="GROUP",
        help="may be repeated",
    )
    _add_common(parser)
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
    parser.set_defaults(run=_run_consumers, prog=parser.prog)


def _add_producers(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = kinds.add_parser(
        "producers",
        help="producers, once all that they wrote is on the target",
        description=_PRODUCERS_HELP,
    )
    parser.add_argument(
        "--topic",
        required=True,
        action="append",
        dest="topics",
        type=not_empty,
        metavar="REGEX",
        help="whole names of topics on the source; may be repeated",
    )
    _add_common(parser)
    add_still_for(parser)
    parser.set_defaults(run=_run_producers, prog=parser.prog)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the mirror's mm2.properties")
    parser.add_argument("--flow", metavar="SOURCE->TARGET", help="a flow of the file, if it has several")
    parser.add_argument("--dry-run", action="store_true", help="show the plan, change nothing")
    parser.add_argument("--yes", action="store_true", help="start without asking for confirmation")
    add_timeout(parser)
    add_output(parser)


def add_still_for(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--still-for",
        type=positive,
        default=10,
        metavar="SECONDS",
        help="how long end offsets must not change until the producers count as stopped (%(default)s)",
    )


def add_timeout(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=positive,
        default=300,
        metavar="SECONDS",
        help="for all the waiting together (%(default)s)",
    )


def add_topics_and_execute(parser: argparse.ArgumentParser, topics: str) -> None:
    """`topics` says which those are."""
    parser.add_argument("--topics", action="append", type=not_empty, metavar="REGEX", help=topics)
    add_execute(parser)


def add_execute(parser: argparse.ArgumentParser) -> None:
    """Add `--execute` to a command that only plans without it, and asks nothing with it."""
    parser.add_argument("--execute", dest="dry_run", action="store_false", help="carry the plan out")
    parser.set_defaults(yes=True)


def add_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="the result's form (text)"
    )


def choose_flow(file: Path, wanted: str | None) -> FlowAccess:
    """The only flow of a file that mirrors topics, or the one that is named. Raises SparkmirrorError."""
    flows = read_mirror_maker_file(file).flows
    found = mirroring_flows(file, flows, None if wanted is None else [wanted])
    if len(found) > 1:
        names = ", ".join(flow.name for flow in found)
        raise SparkmirrorError(f"{file} has several flows ({names}): name one with --flow")
    return FlowAccess.of(found[0].settings, found[0].connector)


def _run_consumers(arguments: argparse.Namespace) -> int:
    try:
        access = choose_flow(arguments.file, arguments.flow)
    except SparkmirrorError as error:
        return fail(arguments, error, CANNOT_TELL)
    flow, checkpoint = access.flow, access.checkpoint
    if checkpoint is None:
        why = f"{flow} emits no checkpoints or no offset syncs: its groups' offsets can't be translated"
        return fail(arguments, why, NOT_FINE)
    groups = list(dict.fromkeys(map(GroupId, arguments.groups)))
    if (unreachable := silent(access)) is not None:
        return fail(arguments, unreachable, CANNOT_TELL)
    try:
        migration = ConsumerMigration(access, checkpoint, leave_untranslated=arguments.leave_untranslated)
        with closing(migration):
            if arguments.roll_back:
                return carry_out(arguments, _rollback(flow, migration, groups))
            return carry_out(arguments, _move(flow, migration, groups))
    except SparkmirrorError as error:
        return fail(arguments, error, NOT_FINE)


def silent(access: FlowAccess, *, with_source: bool = True) -> str | None:
    """The clusters that do not answer; None when all do."""
    asked = [access.source_admin, access.target_admin] if with_source else [access.target_admin]
    return "; ".join(silent_clusters(asked).values()) or None


def _move(flow: Flow, migration: ConsumerMigration, groups: list[GroupId]) -> MigrationKind[GroupMove]:
    return MigrationKind(
        flow=flow,
        title=f"{flow}: move consumers to {flow.target}",
        survey=lambda: migration.survey(groups),
        apply=migration.write,
        name=lambda move: f"group {move.group}",
        rows=move_rows,
        done=f"Done. The consumers can be started on {flow.target}; --roll-back undoes it.",
    )


def _rollback(
    flow: Flow, migration: ConsumerMigration, groups: list[GroupId]
) -> MigrationKind[GroupRollback]:
    return MigrationKind(
        flow=flow,
        title=f"{flow}: undo what was written for these groups on {flow.target}",
        survey=lambda: migration.survey_rollback(groups),
        apply=migration.restore,
        name=lambda rollback: f"group {rollback.group}",
        rows=rollback_rows,
        done=f"Done. The consumers can be started on {flow.source}; nothing has changed there.",
    )


def _run_producers(arguments: argparse.Namespace) -> int:
    try:
        access = choose_flow(arguments.file, arguments.flow)
        topics = compile_list(arguments.topics, "--topic")
    except SparkmirrorError as error:
        return fail(arguments, error, CANNOT_TELL)
    if (unreachable := silent(access)) is not None:
        return fail(arguments, unreachable, CANNOT_TELL)
    try:
        migration = ProducerMigration(access, topics.fullmatch, arguments.still_for, arguments.topics)
        with closing(migration):
            return carry_out(arguments, _drain(access.flow, migration, arguments.topics))
    except SparkmirrorError as error:
        return fail(arguments, error, NOT_FINE)


def _drain(flow: Flow, migration: ProducerMigration, topics: list[str]) -> MigrationKind[TopicsDrain]:
    return MigrationKind(
        flow=flow,
        title=f"{flow}: move producers to {flow.target}",
        survey=lambda: [migration.survey()],
        apply=lambda _: {},
        name=lambda _: f"topics {', '.join(topics)}",
        rows=drain_rows,
        done=f"Done. The producers can be started on {flow.target}.",
    )
