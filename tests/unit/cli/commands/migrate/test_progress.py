import io

from rich.console import Console

from sparkmirror.cli.commands.migrate.execution import StepProgress, plan_lines
from sparkmirror.cli.terminal import StatusLines
from sparkmirror.migrate.steps import Step, StepState


def test_a_step_is_a_line_when_its_state_changes_and_what_is_waited_for_is_one_line_that_is_updated() -> None:
    text, updates, now = io.StringIO(), list[str](), 0.0
    progress = StepProgress(StatusLines(Console(file=text, width=200)), lambda: now)
    progress.begin(updates.append, 300)
    for second in range(3):
        now = float(second)
        check = Step("check", StepState.DONE, f"1 partition, {second} records not mirrored yet")
        progress.report([("topics orders", [check, Step("stop", StepState.WAITING, "stop the producers")])])
    lines = [line.split("s  ", 1)[1] for line in text.getvalue().splitlines()]
    assert lines == [
        "topics orders: ✓ check: 1 partition, 0 records not mirrored yet",
        "topics orders: … stop: stop the producers",
    ]
    assert updates == [f"topics orders: stop the producers ({left} s left)" for left in (300, 299, 298)]


def test_a_groups_name_can_not_write_into_the_terminal() -> None:
    steps = [Step("check", StepState.TO_DO, "members: \x1b[2J")]
    lines = plan_lines("a->b", [("group \x1b]0;x\x07\n\u202e", steps)])
    assert all(line.isprintable() for line in lines)
    assert "group \\x1b]0;x\\x07\\n\\u202e" in lines
