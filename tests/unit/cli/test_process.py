import json
import signal
import subprocess
import sys

import pytest

STOPPING = """
import signal, sys
from sparkmirror.cli.process import interrupt_on_signals, stop_on_signals
signal.signal(signal.SIGHUP, signal.SIG_IGN if sys.argv[2:] == ["nohup"] else signal.SIG_DFL)
stop_on_signals(lambda: print("stop", flush=True))
for number in sys.argv[1].split():
    signal.raise_signal(signal.Signals[number])
print("ended by itself")
"""


def ended(signals: str, *arguments: str) -> tuple[int, list[str]]:
    command = [sys.executable, "-c", STOPPING, signals, *arguments]
    found = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    return found.returncode, found.stdout.splitlines()


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_the_first_signal_stops_in_order(number: str) -> None:
    assert ended(number) == (0, ["stop", "ended by itself"])


@pytest.mark.parametrize(
    ("signals", "code"), [("SIGINT SIGINT", 130), ("SIGINT SIGTERM", 143), ("SIGTERM SIGHUP", 129)]
)
def test_the_second_signal_ends_the_process_at_once(signals: str, code: int) -> None:
    assert ended(signals) == (code, ["stop"])


def test_nohup_keeps_sighup_ignored() -> None:
    assert ended("SIGHUP SIGHUP", "nohup") == (0, ["ended by itself"])


EARLY = """
import signal
from sparkmirror.cli.process import stop_on_signals, stoppable
with stoppable():
    signal.raise_signal(signal.SIGTERM)
    print("loading", flush=True)
    stop_on_signals(lambda: print("stop", flush=True))
    print("ended by itself", flush=True)
signal.raise_signal(signal.SIGTERM)
"""


def test_a_signal_while_the_command_is_loaded_stops_it_in_order_and_the_handlers_are_put_back() -> None:
    found = subprocess.run(
        [sys.executable, "-c", EARLY], capture_output=True, text=True, check=False, timeout=30
    )
    assert found.stdout.splitlines() == ["loading", "stop", "ended by itself"]
    assert found.returncode == -signal.SIGTERM


def test_other_commands_are_interrupted() -> None:
    code = (
        "import signal; from sparkmirror.cli.process import interrupt_on_signals;"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL);"
        "interrupt_on_signals(); signal.raise_signal(signal.SIGHUP)"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=30
    )
    assert "KeyboardInterrupt" in found.stderr


def test_json_stays_json_where_the_terminal_cannot_encode_it() -> None:
    code = (
        "import json, sys; from sparkmirror.cli.process import escape_unencodable;"
        "escape_unencodable(sys.stdout); print(json.dumps(['é', '🦊'], ensure_ascii=False))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONIOENCODING": "ascii"}, capture_output=True, check=True
    )
    assert json.loads(ended.stdout) == ["é", "🦊"]
