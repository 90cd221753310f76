"""Every command's exit codes are in its help and in docs/reference.md, and it ends with no other."""

import argparse

import pytest

from sparkmirror.cli.command_list import COMMANDS
from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.commands import clusters
from sparkmirror.cli.exit_codes import exit_codes
from sparkmirror.cli.main import main
from tests.support.reference_page import PAGE, rendered


def test_the_reference_is_generated_from_the_code() -> None:
    assert PAGE.read_text(encoding="utf-8") == rendered(), "run `python -m tests.support.reference_page`"


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command_names_its_exit_codes(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "-h"])
    shown = capsys.readouterr().out.partition("exit codes:\n")[2].splitlines()
    assert [line.split()[0] for line in shown if line.startswith("  ") and line.split()[0].isdigit()] == [
        str(code) for code in exit_codes(command)
    ]


def test_help_of_the_whole_program_has_none() -> None:
    assert "exit codes" not in build_parser([]).format_help()


def test_a_command_can_not_end_with_a_code_that_its_help_does_not_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        subparsers.add_parser("clusters").set_defaults(run=lambda _: 77)

    monkeypatch.setattr(clusters, "add_parser", add_parser)
    with pytest.raises(AssertionError, match="clusters ends with 77"):
        main(["clusters"])
