import pytest

from sparkmirror.ui.numbers import UNKNOWN, ago, count, duration, latencies, rate, size


def test_unknown_is_never_written_as_a_number() -> None:
    assert [write(None) for write in (count, duration, rate, size)] == [UNKNOWN] * 4
    assert [write(0) for write in (count, duration, rate, size)] == ["0", "0 s", "0", "0 B"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (119.4, "119 s"),
        (119.6, "2 min 0 s"),
        (3599.6, "1 h 0 min"),
        (90_000, "1 d 1 h"),
        (float("inf"), UNKNOWN),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("age_s", "text"), [(None, UNKNOWN), (-90.0, "90 s in the future"), (-0.2, "0 s ago"), (12.0, "12 s ago")]
)
def test_ages(age_s: float | None, text: str) -> None:
    assert ago(age_s) == text


def test_sizes_and_rates() -> None:
    assert [size(number) for number in (999, 1000, 3_400_000, 123_456_789, 5e12)] == [
        "999 B",
        "1 KB",
        "3.4 MB",
        "123 MB",
        "5.0 TB",
    ]
    assert [rate(number) for number in (0.04, 0.4, 12_345.6)] == ["0.0", "0.4", "12,346"]


def test_without_records_there_are_no_latencies() -> None:
    assert latencies((None, None)) == "no records"
    assert latencies((0.72, 3100.0)) == "0.7 ms, 3.1 s"
