"""`sparkmirror migrate consumers`: there, and back with `--roll-back`."""

import argparse
from contextlib import closing

from sparkmirror.cli.migrate.course import Subject, carry_out, fail
from sparkmirror.cli.migrate.flow_choice import choose_flow
from sparkmirror.cli.migrate.report import back_rows, move_rows
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow, GroupId
from sparkmirror.migrate.consumers import ConsumerMigration
from sparkmirror.migrate.group_moves import GroupBack, GroupMove

_NOT_DONE = 1
_WRONG_USAGE = 2


def run(arguments: argparse.Namespace) -> int:
    try:
        access = choose_flow(arguments.file, arguments.flow)
    except SparkmirrorError as error:
        return fail(arguments, error, _WRONG_USAGE)
    flow, checkpoint = access.flow, access.checkpoint
    if checkpoint is None:
        why = f"{flow} emits no checkpoints or no offset syncs: nobody can tell where its groups go on"
        return fail(arguments, why, _NOT_DONE)
    groups = list(dict.fromkeys(map(GroupId, arguments.groups)))
    try:
        migration = ConsumerMigration(access, checkpoint, leave_unknown=arguments.leave_untranslated)
        with closing(migration):
            if arguments.roll_back:
                return carry_out(arguments, _back(flow, migration, groups))
            return carry_out(arguments, _there(flow, migration, groups))
    except SparkmirrorError as error:
        return fail(arguments, error, _NOT_DONE)


def _there(flow: Flow, migration: ConsumerMigration, groups: list[GroupId]) -> Subject[GroupMove]:
    return Subject(
        flow=flow,
        title=f"{flow}: move consumers to {flow.target}",
        look=lambda: migration.look(groups),
        act=migration.write,
        name=lambda move: f"group {move.group}",
        rows=move_rows,
        advice=f"Done. The consumers can be started on {flow.target}; --roll-back takes it back.",
    )


def _back(flow: Flow, migration: ConsumerMigration, groups: list[GroupId]) -> Subject[GroupBack]:
    return Subject(
        flow=flow,
        title=f"{flow}: take back what was written for these groups on {flow.target}",
        look=lambda: migration.look_back(groups),
        act=migration.restore,
        name=lambda back: f"group {back.group}",
        rows=back_rows,
        advice=f"Done. The consumers can be started on {flow.source}; nothing has changed there.",
    )
