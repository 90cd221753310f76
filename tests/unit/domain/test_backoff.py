from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.backoff import Backoff

RANDOM = st.floats(0, 1, exclude_max=True)


def test_it_doubles_up_to_its_limit() -> None:
    backoff = Backoff(0.1, 1.0)
    delays = [round(backoff.delay_s(failures, 0.5), 3) for failures in range(1, 7)]
    assert delays == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(failures=st.integers(1, 10**9), randomness=RANDOM)
def test_it_is_bounded_however_often_it_fails(failures: int, randomness: float) -> None:
    assert 0 < Backoff(0.1, 30.0).delay_s(failures, randomness) <= 30.0


@given(failures=st.integers(1, 8), randomness=RANDOM)
def test_its_jitter_is_a_fifth(failures: int, randomness: float) -> None:
    exact = 0.1 * 2 ** (failures - 1)
    delay = Backoff(0.1, 1000.0).delay_s(failures, randomness)
    assert 0.8 * exact <= delay * 1.000001
    assert delay <= 1.2 * exact * 1.000001
