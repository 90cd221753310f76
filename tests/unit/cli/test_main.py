import subprocess
import sys

import pytest

INTERRUPTED_IMPORT = """
import signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
sys.meta_path.insert(0, Interrupting())
from sparkmirror.cli.main import main
raise SystemExit(main(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    "module",
    ["sparkmirror.cli.command_runner", "sparkmirror.cli.logging", "sparkmirror.cli.commands.run", "kafka"],
)
def test_ctrl_c_while_modules_are_imported_ends_with_one_line(module: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED_IMPORT, module, "run", "nowhere.properties"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stderr) == (130, "sparkmirror: interrupted\n")


def test_output_that_the_terminal_cannot_encode_is_escaped() -> None:
    ended = run_in_ascii("worker", "--help")  # its examples hold an ellipsis, which ASCII lacks
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "listeners, \\u2026;" in ended.stdout


def run_in_ascii(*arguments: str) -> "subprocess.CompletedProcess[str]":
    code = "import sys; from sparkmirror.cli.main import main; raise SystemExit(main(sys.argv[1:]))"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={"PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
