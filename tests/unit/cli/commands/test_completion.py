import os
import subprocess
import sys
from pathlib import Path

import pytest

from sparkmirror.cli.main import main

ASK = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sparkmirror
printf '%s\\n' "${COMPREPLY[@]}"
"""


def printed(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["conn"], ["connectors"]),
        (["connectors", "st"], ["status", "stop"]),
        (["connectors", "offsets", ""], ["show", "alter", "reset"]),
        (["connectors", "list", "-o", ""], ["table", "json", "yaml"]),
        (["connectors", "list", "--output", "=", "j"], ["json"]),
        (["connectors", "list", "--output", "="], ["table", "json", "yaml"]),
        (["connectors", "list", "--url", "status", "--e"], ["--every"]),
        (["deploy", "source-0", "--d"], ["--dry-run", "--dir"]),
        (["completion", ""], ["bash", "zsh"]),
        (["run", ""], [""]),  # nothing, so bash offers files
        (["-"], ["-h", "--help", "--version"]),
    ],
)
def test_bash_offers_what_may_follow(
    words: list[str], offered: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "completion"
    script.write_text(printed("bash", capsys), encoding="utf-8")
    command = ["bash", "-c", ASK, "bash", str(script), "sparkmirror", *words]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    assert found.stderr == ""
    assert found.stdout.splitlines() == offered


def test_zsh_gets_the_same_with_what_it_means(capsys: pytest.CaptureFixture[str]) -> None:
    said = printed("zsh", capsys)
    assert said.startswith("#compdef sparkmirror\n")
    assert '{-o,--output}"[the result\\\'s form (table)]:output:(table json yaml)"' in said
    assert "status:'states of connectors and their tasks'" in said
    assert "--every[how often (2)]" in said


def test_zsh_offers_files_where_nothing_else_is_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert ":log_file:_files" in printed("zsh", capsys)


def test_another_shell_is_wrong_usage() -> None:
    with pytest.raises(SystemExit) as caught:
        main(["completion", "cmd"])
    assert caught.value.code == 2


def test_bash_offers_the_contexts_that_are_defined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "completion"
    script.write_text(printed("bash", capsys), encoding="utf-8")
    file = tmp_path / "sparkmirror" / "contexts.yaml"
    file.parent.mkdir()
    file.write_text("current: prod\ncontexts:\n  prod: {url: 'http://a:1'}\n  test: {url: 'http://b:1'}\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    command = ["bash", "-c", ASK, "bash", str(script), "sparkmirror", "connectors", "list", "--context", ""]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.splitlines() == ["prod", "test"]
