import logging
from collections.abc import Iterator

import pytest

from sparkmirror.connect.logger_levels import LoggerLevel, LogLevels
from sparkmirror.domain.connect import ConnectError
from tests.support.logger_levels import levels_restored

TOP = "test_log_levels"


@pytest.fixture
def levels() -> Iterator[LogLevels]:
    """Levels of three loggers of this test's own, on which nobody has set a level yet."""
    with levels_restored():
        for name in (TOP, f"{TOP}.a", f"{TOP}.a.b", f"{TOP}x"):
            logging.getLogger(name).setLevel(logging.NOTSET)
        yield LogLevels(now=lambda: 12.5)


def test_a_level_applies_to_the_logger_and_those_below(levels: LogLevels) -> None:
    assert levels.set(f"{TOP}.a", "trace") == [f"{TOP}.a", f"{TOP}.a.b"]
    assert levels.level(f"{TOP}.a.b") == LoggerLevel("TRACE", 12500)
    assert levels.level(f"{TOP}x") == LoggerLevel(levels.all()["root"].level, None)
    assert logging.getLogger(f"{TOP}.a.b").isEnabledFor(5)


def test_setting_the_same_level_changes_nothing(levels: LogLevels) -> None:
    levels.set(TOP, "OFF")
    assert levels.set(TOP, "off") == []
    assert levels.level(TOP) == LoggerLevel("OFF", 12500)
    assert not logging.getLogger(TOP).isEnabledFor(logging.CRITICAL)


def test_reading_a_level_creates_no_logger(levels: LogLevels) -> None:
    assert levels.level(f"{TOP}.nobody") is None
    assert f"{TOP}.nobody" not in levels.all()
    assert f"{TOP}.nobody" not in logging.Logger.manager.loggerDict


def test_the_root_covers_all_loggers(levels: LogLevels) -> None:
    assert TOP in levels.set("ROOT", "ERROR")
    assert {level.level for level in levels.all().values()} == {"ERROR"}
    assert levels.level("root") == LoggerLevel("ERROR", 12500)


def test_an_unknown_level_is_refused(levels: LogLevels) -> None:
    with pytest.raises(KeyError):
        levels.set(TOP, "LOUD")


def test_strangers_cant_fill_the_memory_with_names(levels: LogLevels) -> None:
    bounded = LogLevels(made_max=3)
    made = [f"{TOP}-made-{number}" for number in range(4)]
    for name in (*made[:3], made[0], TOP):  # one that exists takes no place
        bounded.set(name, "WARN")
    before = len(logging.Logger.manager.loggerDict)
    for name in (made[3], "a." * 200):
        with pytest.raises(ConnectError):
            bounded.set(name, "WARN")
    assert len(logging.Logger.manager.loggerDict) == before
    assert bounded.set(TOP, "INFO") == levels.set(TOP, "WARN")
