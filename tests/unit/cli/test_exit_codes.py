"""Every command's exit codes are in its help and in docs/reference.md, and it ends with no other."""

import argparse

import pytest

from sparkmirror.cli.command_list import COMMANDS
from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.commands import clusters
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE, exit_codes, of_all, of_word
from sparkmirror.cli.main import main
from sparkmirror.view.words import Word
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


def test_every_word_has_one_code() -> None:
    codes = {word: of_word(word) for word in Word}
    assert {word for word, code in codes.items() if code == FINE} == {
        Word.CAUGHT_UP,
        Word.CATCHING_UP,
        Word.THROTTLED,
        Word.FALLING_BEHIND,
        Word.STANDBY,
        Word.PROMOTED,
    }
    assert [word for word, code in codes.items() if code == CANNOT_TELL] == [
        Word.UNKNOWN,
        Word.STARTING,
    ]


@pytest.mark.parametrize(
    ("codes", "code"),
    [
        ([], FINE),
        ([FINE, FINE], FINE),
        ([FINE, CANNOT_TELL], CANNOT_TELL),
        ([CANNOT_TELL, NOT_FINE, FINE], NOT_FINE),
    ],
)
def test_what_is_known_to_be_bad_counts_more_than_what_is_not_known(codes: list[int], code: int) -> None:
    assert of_all(codes) == code
