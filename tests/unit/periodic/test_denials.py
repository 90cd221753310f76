"""Actions that lack a right: how often they are tried, and what is logged."""

import pytest

from sparkmirror.domain.errors import AuthorizationError, DisconnectedError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.periodic.denials import Denials
from sparkmirror.periodic.flow_log import flow_log

HOUR_S = 3600


class Bench:
    """An action that is attempted each second, and denied while `is_denied`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.requests = 0
        self.is_denied = True
        log = flow_log(__name__, Flow(Alias("B"), Alias("A")))
        self.denials = Denials(log, "emit heartbeat", "; or switch it off", lambda: self.now)

    def _act(self) -> None:
        self.requests += 1
        if self.is_denied:
            raise AuthorizationError("write to heartbeats on A: TOPIC_AUTHORIZATION_FAILED", 29)

    def seconds(self, count: int) -> int:
        """The requests of this time."""
        before = self.requests
        for _ in range(count):
            self.now += 1
            self.denials.attempt(self._act)
        return self.requests - before


@pytest.fixture
def bench(caplog: pytest.LogCaptureFixture) -> Bench:
    caplog.set_level("INFO")
    return Bench()


def test_a_denied_request_is_repeated_less_and_less_often(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    assert bench.seconds(29) == 1
    assert bench.seconds(HOUR_S) <= 7
    assert bench.seconds(24 * HOUR_S) <= 25
    text = "write to heartbeats on A: TOPIC_AUTHORIZATION_FAILED; or switch it off"
    assert caplog.messages == [f"emit heartbeat failed, and is tried again later: {text}"]
    assert bench.denials.now == text


def test_its_end_is_told_and_the_action_runs_each_time_again(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.seconds(10)
    bench.is_denied = False
    assert bench.seconds(60) > 30
    assert bench.denials.now is None
    assert caplog.messages[1:] == ["emit heartbeat works again"]
    bench.is_denied = True
    assert bench.seconds(29) == 1


def test_other_errors_are_the_owners(bench: Bench) -> None:
    def broken() -> None:
        raise DisconnectedError("a:9092 does not answer")

    for _ in range(2):
        with pytest.raises(DisconnectedError):
            bench.denials.attempt(broken)
    assert bench.denials.now is None
