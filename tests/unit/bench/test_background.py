"""An action that runs in a thread during a block."""

import threading

import pytest

from bench.background import in_background


def test_action_runs_until_the_block_ends() -> None:
    ended = threading.Event()

    def action(enough: threading.Event) -> None:
        enough.wait()
        ended.set()

    with in_background(action):
        assert not ended.is_set()
    assert ended.is_set()


def test_error_of_the_action_is_raised_after_the_block() -> None:
    def action(_enough: threading.Event) -> None:
        raise ValueError("broken")

    with pytest.raises(ValueError, match="broken"), in_background(action):
        pass
