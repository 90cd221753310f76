"""One migration command: the plan, the question, the steps, the report, the exit code."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from sparkmirror.cli.migrate.conversation import Commentary, Told, agreed, plan_lines
from sparkmirror.cli.migrate.report import Reported, Row, table_lines, to_json
from sparkmirror.domain.errors import KafkaError, SparkmirrorError
from sparkmirror.domain.ids import Flow, TopicPartition
from sparkmirror.migrate.run import Course, Ending, Migration
from sparkmirror.migrate.steps import StepState, are_done

_DONE = 0
_NOT_DONE = 1
_WRONG_USAGE = 2

M = TypeVar("M", bound=Migration)


@dataclass(frozen=True, slots=True)
class Subject(Generic[M]):
    """What a command moves, and how it is called; `advice` is what people do when it's done."""

    flow: Flow
    title: str
    look: Callable[[], Sequence[M]]
    act: Callable[[M], Mapping[TopicPartition, KafkaError]]
    name: Callable[[M], str]
    rows: Callable[[M], Sequence[Row]]
    advice: str

    def told(self, found: Sequence[M]) -> Told:
        return [(self.name(each), each.steps()) for each in found]


def carry_out(arguments: argparse.Namespace, subject: Subject[M]) -> int:
    """The exit code. Raises KafkaError when nobody answers."""
    commentary = Commentary()
    course = Course(
        look=subject.look,
        act=subject.act,
        tell=lambda found: commentary.tell(subject.told(found)),
        tell_trouble=commentary.say,
    )
    found = course.first()
    if arguments.dry_run:
        return _show_plan(arguments, subject, found)
    sys.stderr.write("\n".join(plan_lines(subject.title, subject.told(found))) + "\n\n")
    if not all(are_done(each.steps()) for each in found):
        try:
            is_agreed = agreed(is_sure=arguments.yes)
        except SparkmirrorError as error:
            return fail(arguments, error, _WRONG_USAGE)
        if not is_agreed:
            return fail(arguments, "nothing was done", _NOT_DONE)
    return _report(arguments, subject, course.run(arguments.timeout))


def fail(arguments: argparse.Namespace, reason: object, code: int) -> int:
    sys.stderr.write(f"{arguments.prog}: {reason}\n")
    return code


def _show_plan(arguments: argparse.Namespace, subject: Subject[M], found: Sequence[M]) -> int:
    reported = [Reported(subject.name(each), each.steps(), subject.rows(each)) for each in found]
    if arguments.output == "json":
        sys.stdout.write(to_json(subject.flow, reported, is_dry_run=True) + "\n")
    else:
        sys.stdout.write("\n".join(plan_lines(subject.title, subject.told(found))) + "\n\n")
        _print_tables(subject.flow, reported)
    steps = [step for each in reported for step in each.steps]
    return _NOT_DONE if any(step.state is StepState.IMPOSSIBLE for step in steps) else _DONE


def _report(arguments: argparse.Namespace, subject: Subject[M], endings: Sequence[Ending[M]]) -> int:
    reported = [
        Reported(subject.name(each.found), each.found.steps(), subject.rows(each.found), each.failure)
        for each in endings
    ]
    if arguments.output == "json":
        sys.stdout.write(to_json(subject.flow, reported, is_dry_run=False) + "\n")
    else:
        _print_tables(subject.flow, reported)
    failed = [each for each in reported if each.failure is not None]
    for each in failed:
        fail(arguments, f"{each.name}: {each.failure}", _NOT_DONE)
    if not failed:
        sys.stderr.write(f"{subject.advice}\n")
    return _NOT_DONE if failed else _DONE


def _print_tables(flow: Flow, reported: Sequence[Reported]) -> None:
    for each in reported:
        sys.stdout.writelines(f"{line}\n" for line in table_lines(flow, each))
