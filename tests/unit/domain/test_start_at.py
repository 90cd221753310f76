"""Parsing of `start.at`, which says where a flow begins."""

import pytest

from sparkmirror.domain.client_settings import OffsetReset, StartTime
from sparkmirror.domain.start_at import StartAt, parse_start_at

NOW_MS = 1_769_860_800_000


@pytest.mark.parametrize(
    ("text", "place"), [("earliest", OffsetReset.EARLIEST), ("latest", OffsetReset.LATEST)]
)
def test_places(text: str, place: OffsetReset) -> None:
    assert parse_start_at(text) == StartAt(place)


@pytest.mark.parametrize(
    ("text", "expected_ms"),
    [
        ("2026-01-31T12:00:00Z", NOW_MS),
        ("2026-01-31T13:00:00+01:00", NOW_MS),
        ("2026-01-31T12:00:00", NOW_MS),
        ("1960-01-01T00:00:00Z", 0),
        ("P7D", NOW_MS - 7 * 86_400_000),
        ("PT6H", NOW_MS - 6 * 3_600_000),
        ("P1DT2H3M4S", NOW_MS - 93_784_000),
        ("PT0S", NOW_MS),
        ("P99999999D", 0),
    ],
)
def test_times_and_durations(text: str, expected_ms: int) -> None:
    found = parse_start_at(text)
    assert found.reset is OffsetReset.TIME
    assert found.time is not None
    assert found.time.ms(NOW_MS) == expected_ms


@pytest.mark.parametrize(
    "text", ["", "none", "7d", "P", "PT", "P7", "P1DT", "-P1D", "yesterday", "2026-13-01", "time"]
)
def test_what_is_nothing_of_these_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be earliest, latest, a time"):
        parse_start_at(text)


def test_a_time_is_the_same_whenever_it_is_asked() -> None:
    assert StartTime(at_ms=5).ms(10) == StartTime(at_ms=5).ms(20) == 5
