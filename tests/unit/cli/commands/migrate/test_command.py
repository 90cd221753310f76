import argparse
from pathlib import Path

import pytest

from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.commands.migrate.command import under_other_names
from sparkmirror.cli.main import main
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.migrate.moves.topic_drain_steps import PartitionDrain

FILE = """\
clusters = A, B
A.bootstrap.servers = 127.0.0.1:1
B.bootstrap.servers = 127.0.0.1:1
A->B.enabled = true
"""
CONSUMERS = ["migrate", "consumers", "--group", "billing"]
PRODUCERS = ["migrate", "producers", "--topic", "orders"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def parsed(*arguments: str) -> argparse.Namespace:
    return build_parser().parse_args(["migrate", *arguments])


@pytest.mark.parametrize(("what", "step"), [("consumers", "sync"), ("producers", "drain")])
def test_help_names_steps_examples_and_exit_codes(
    what: str, step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["migrate", what, "--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    assert f"\n  {step} " in text
    assert f"  sparkmirror migrate {what} " in text
    assert "exit codes:\n  0    done" in text


def test_groups_and_topics_may_be_repeated() -> None:
    assert parsed("consumers", "--group", "a", "--group", "b", "f").groups == ["a", "b"]
    arguments = parsed("producers", "--topic", "a", "--topic", "b.*", "f")
    assert (arguments.topics, arguments.timeout, arguments.still_for) == (["a", "b.*"], 300, 10)


@pytest.mark.parametrize(
    "arguments",
    [
        ["migrate"],
        ["migrate", "consumers", "f"],
        ["migrate", "producers", "f"],
        CONSUMERS,
        [*CONSUMERS, "f", "--timeout", "0"],
        [*PRODUCERS, "f", "--still-for", "0"],
        [*PRODUCERS, "f", "--roll-back"],
        [*PRODUCERS, "f", "-o", "xml"],
        [*CONSUMERS, "f", "--yes"],
        ["promote", "f", "A->B"],
    ],
)
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2


@pytest.mark.parametrize("command", [CONSUMERS, PRODUCERS])
def test_a_missing_file_ends_with_2(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.startswith(f"sparkmirror migrate {command[1]}: ")


def test_a_file_with_several_flows_needs_one_named(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(FILE + "B->A.enabled = true\n")
    assert main([*CONSUMERS, str(file)]) == 2
    assert "has several flows (A->B, B->A): name one with --flow" in capsys.readouterr().err


def test_an_unknown_flow_names_those_there_are(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PRODUCERS, str(file), "--flow", "B->A"]) == 2
    assert "has no flow B->A that mirrors topics (it has: A->B)" in capsys.readouterr().err


def test_a_pattern_that_java_refuses_ends_with_2(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["migrate", "producers", "--topic", "(", str(file)]) == 2
    assert "--topic" in capsys.readouterr().err


def test_a_flow_without_checkpoints_moves_no_group(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(FILE + "A->B.emit.checkpoints.enabled = false\n")
    assert main([*CONSUMERS, str(file)]) == 1
    assert "A->B emits no checkpoints or no offset syncs" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command", [CONSUMERS, PRODUCERS, ["promote"], ["failback"], ["offsets", "preserve"]]
)
def test_every_command_that_moves_something_only_shows_without_execute(command: list[str]) -> None:
    file = ["mm2.properties", *(["orders"] if command[0] == "offsets" else [])]
    given = build_parser().parse_args([*command, *file, "--flow", "A->B"])
    assert (given.execute, given.flow) == (False, "A->B")
    assert build_parser().parse_args([*command, *file, "--execute"]).execute


def test_applications_are_told_the_names_on_the_target() -> None:
    moved = [
        PartitionDrain(
            TopicPartition(topic, at),
            TopicPartition(there, at),
            9,
            9,
            is_drained=True,
            target_next=9,
            target_end=9,
        )
        for topic, there in (("orders", "A.orders"), ("kept", "kept"))
        for at in range(2)
    ]
    assert under_other_names("write", moved) == ", where they write A.orders instead of orders"
    assert under_other_names("write", moved[2:]) == ""
