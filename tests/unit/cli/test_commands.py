from pathlib import Path

import pytest

from sparkmirror import __version__
from sparkmirror.cli.commands import _MODULE_BY_COMMAND, build_parser
from sparkmirror.cli.main import main


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"sparkmirror {__version__}\n"


@pytest.mark.parametrize("command", ["demo", "run", "clusters"])
def test_help_names_every_command(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert f"  sparkmirror {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", _MODULE_BY_COMMAND)
def test_a_command_whose_module_is_imported_alone_is_the_same(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    helps = []
    for parser in (build_parser(), build_parser([_MODULE_BY_COMMAND[command]])):
        with pytest.raises(SystemExit) as caught:
            parser.parse_args([command, "--help"])
        assert caught.value.code == 0
        helps.append(capsys.readouterr().out)
    assert helps[0] == helps[1]


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
