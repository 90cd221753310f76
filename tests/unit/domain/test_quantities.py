import pytest

from sparkmirror.domain.quantities import as_size, as_time, counted


def test_counts() -> None:
    assert [counted(number, "task") for number in (0, 1, 1200)] == ["0 tasks", "1 task", "1,200 tasks"]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0 B"), (999, "999 B"), (1500, "1.5 KB"), (123_456_789, "123 MB"), (5e12, "5.0 TB")],
)
def test_sizes(number: float, text: str) -> None:
    assert as_size(number) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.1, "1 s"), (59, "59 s"), (600, "10 min"), (7200, "2.0 h"), (2e5, "2.3 days")]
)
def test_times(seconds: float, text: str) -> None:
    assert as_time(seconds) == text
