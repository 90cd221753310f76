"""`sparkmirror migrate producers`."""

import argparse
from contextlib import closing

from sparkmirror.cli.migrate.course import Subject, carry_out, fail
from sparkmirror.cli.migrate.flow_choice import choose_flow
from sparkmirror.cli.migrate.report import drain_rows
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow
from sparkmirror.migrate.producers import ProducerMigration
from sparkmirror.migrate.topic_drains import TopicsDrain
from sparkmirror.policies.java_regex import compile_list

_NOT_DONE = 1
_WRONG_USAGE = 2


def run(arguments: argparse.Namespace) -> int:
    try:
        access = choose_flow(arguments.file, arguments.flow)
        topics = compile_list(arguments.topics, "--topic")
    except SparkmirrorError as error:
        return fail(arguments, error, _WRONG_USAGE)
    try:
        with closing(ProducerMigration(access, topics, arguments.still_for)) as migration:
            return carry_out(arguments, _subject(access.flow, migration, arguments.topics))
    except SparkmirrorError as error:
        return fail(arguments, error, _NOT_DONE)


def _subject(flow: Flow, migration: ProducerMigration, topics: list[str]) -> Subject[TopicsDrain]:
    return Subject(
        flow=flow,
        title=f"{flow}: move producers to {flow.target}",
        look=lambda: [migration.look()],
        act=lambda _: {},
        name=lambda _: f"topics {', '.join(topics)}",
        rows=drain_rows,
        advice=f"Done. The producers can be started on {flow.target}.",
    )
