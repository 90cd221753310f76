import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import pytest

from sparkmirror import __version__
from sparkmirror.cli.command_list import COMMANDS
from sparkmirror.cli.command_runner import build_parser
from sparkmirror.cli.main import main

HEAVY = ("numpy", "kafka", "pyspark")


def every_parser(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from every_parser(each)


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"sparkmirror {__version__}\n"


@pytest.mark.parametrize("words", [["-h"], ["--help"], []])
def test_help_and_no_command_list_every_command_in_80_columns(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == (0 if words else 2)
    shown = capsys.readouterr()
    lines = (shown.out if words else shown.err).splitlines()
    assert {line.split()[0] for line in lines if line.startswith("  ")} >= COMMANDS.keys()
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("rnu", "sparkmirror: no command 'rnu': did you mean run?\n"),
        ("verfy", "sparkmirror: no command 'verfy': did you mean verify?\n"),
        ("version", "sparkmirror: no command 'version': sparkmirror --version prints it\n"),
        ("42", "sparkmirror: no command '42': sparkmirror -h lists all\n"),
    ],
)
def test_a_typo_is_answered_with_the_command_that_was_meant(
    typed: str, answer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([typed, "mm2.properties"]) == 2
    assert capsys.readouterr().err == answer


def test_the_list_has_every_command_and_its_module() -> None:
    (commands,) = build_parser()._subparsers._group_actions  # type: ignore[union-attr]
    assert isinstance(commands, argparse._SubParsersAction)
    assert commands.choices.keys() == COMMANDS.keys()
    for command, (module, _) in COMMANDS.items():
        assert command in build_parser([module]).format_help()


def test_help_of_every_command_fits_into_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    long = [
        (parser.prog, line)
        for parser in every_parser(build_parser())
        for line in parser.format_help().splitlines()
        if len(line) > 80
    ]
    assert not long


@pytest.mark.parametrize("words", [["--version"], ["-h"], ["rnu"], ["clusters", "-h"]])
def test_what_needs_no_cluster_loads_no_large_library(words: list[str]) -> None:
    program = (
        "import sys\nfrom sparkmirror.cli.main import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        f"sys.exit(','.join(name for name in {HEAVY!r} if name in sys.modules) or None)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr


def test_little_is_loaded_before_ctrl_c_is_answered() -> None:
    """Only what `main` needs is loaded: the rest is loaded where an interrupt is one line."""
    program = (
        "import sys; before = {*sys.modules}; import sparkmirror.cli.main; print(*{*sys.modules} - before)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    ours = {"sparkmirror", "sparkmirror.cli", "sparkmirror.cli.main"}
    assert set(loaded.stdout.split()) - sys.stdlib_module_names >= ours
    assert not {"importlib.metadata", "zipfile", "argparse", "logging"} & {*loaded.stdout.split()}


def test_wrong_usage_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["clusters", "down"])
    assert caught.value.code == 2
    assert "one of the arguments NAME --all is required" in capsys.readouterr().err


def test_an_error_is_one_line_and_exit_code_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARKMIRROR_CACHE", str(tmp_path))
    assert main(["clusters", "down", "nobody"]) == 1
    assert capsys.readouterr().err == "sparkmirror: There is no cluster named nobody (known: none).\n"


def test_a_folder_that_cannot_be_used_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("SPARKMIRROR_CACHE", str(file))
    assert main(["clusters", "down", "nobody"]) == 1
    assert capsys.readouterr().err.startswith("sparkmirror: ")


@pytest.mark.parametrize("arguments", [[], ["mm2.properties", "--nonsense"]])
def test_a_command_may_have_an_exit_code_of_its_own_for_wrong_usage(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["run", *arguments])
    assert caught.value.code == 255


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["run", "--clusters", "B", "f"], "FILE comes before options that take several values"),
        (["status", "f", "--bootstrap-server", "a:1"], "the clusters are those of its mm2.properties"),
        (["groups", "list"], "kafka-consumer-groups.sh lists groups"),
        (["connectors", "ls"], "did you mean list?"),
        (["topics", "list"], "sparkmirror topics lists them without it"),
    ],
)
def test_wrong_usage_is_answered_with_what_to_write_instead(
    words: list[str], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(words)
    assert capsys.readouterr().err.endswith(f": {hint}\n")


@pytest.mark.parametrize(
    "words",
    [
        ["verify"],
        ["events"],
        ["watch"],
        ["promote"],
        ["migrate", "consumers", "--group", "g"],
        ["topics", "explain"],
        ["groups", "explain"],
        ["run"],
    ],
)
def test_commands_that_need_a_file_name_those_that_take_a_url(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([*words, "http://worker:8083", "name"])
    assert "status, lag and top take a URL, and plan takes --url" in capsys.readouterr().err


def test_plan_takes_a_url_by_its_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "http://worker:8083"]) == 2
    assert capsys.readouterr().err == "sparkmirror plan: http://worker:8083 is a URL: put --url before it\n"


def test_help_of_a_command_may_be_asked_for_by_the_word(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["help", "lag"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("usage: sparkmirror lag ")


def test_a_file_that_cannot_be_used_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["topics", "--bootstrap-server", "127.0.0.1:1", "--command-config", "nofile"]) == 2
    assert capsys.readouterr().err == "sparkmirror: nofile: No such file or directory\n"


def test_missing_java_is_one_line_and_exit_code_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SPARKMIRROR_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    assert main(["clusters", "up"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sparkmirror: No Java was found in JAVA_HOME and PATH. ")
    assert captured.err.count("\n") == 1


PROGRAM: Final = "import sys; from sparkmirror.cli.main import main; sys.exit(main(sys.argv[1:]))"
PLAIN: Final = str(Path(__file__).parent / "given_files" / "plain.properties")
WRITERS: Final = [
    ["--version"],
    ["-h"],
    ["help", "run"],
    ["lag", "-h"],
    ["completion", "bash"],
    ["convert", PLAIN, "--to", "json"],
    ["submit-file"],
]


def ended(words: Sequence[str], output: int) -> tuple[int, str]:
    """Run a command whose output goes to that file descriptor: exit code, and what was said."""
    command = [sys.executable, "-c", PROGRAM, *words]
    done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, text=True, check=False)
    os.close(output)
    return done.returncode, done.stderr


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: words[0])
def test_output_that_cannot_be_written_is_an_error(words: list[str]) -> None:
    code, said = ended(words, os.open("/dev/full", os.O_WRONLY))
    assert code == 1
    assert said.endswith("sparkmirror: the output can't be written: No space left on device\n")
    assert "Traceback" not in said
    assert said.count("can't be written") == 1


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: words[0])
def test_a_reader_that_has_seen_enough_is_no_error(words: list[str]) -> None:
    """The exit code is that of programs that SIGPIPE ends."""
    reading, writing = os.pipe()
    os.close(reading)
    code, said = ended(words, writing)
    assert code == 141
    assert "written" not in said
    assert "Traceback" not in said


def test_without_standard_output_a_command_runs_all_the_same() -> None:
    command = shlex.join([sys.executable, "-c", PROGRAM, "--version"])
    done = subprocess.run(["bash", "-c", f"{command} >&-"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
