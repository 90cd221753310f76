import pytest

from sparkmirror.domain.connect import ConnectError
from sparkmirror.ui.actions import OnceTokens


def test_a_form_is_good_for_ten_minutes_and_the_oldest_of_many_go() -> None:
    now = 0.0
    tokens = OnceTokens(lambda: now)
    first, second, third = (tokens.make("stop") for _ in range(3))
    tokens.take(first, "stop")
    now = 601.0
    with pytest.raises(ConnectError, match="ask for it again"):
        tokens.take(second, "stop")
    now = 1.0
    for _ in range(1000):
        tokens.make("stop")
    with pytest.raises(ConnectError, match="ask for it again"):
        tokens.take(third, "stop")
