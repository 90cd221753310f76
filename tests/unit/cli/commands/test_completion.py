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
