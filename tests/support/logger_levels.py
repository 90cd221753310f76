"""Gives this process's loggers back the levels they had."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def levels_restored() -> Iterator[None]:
    """Around what sets levels in this process; loggers made meanwhile keep none of their own."""
    before = {logger: logger.level for logger in _loggers()}
    try:
        yield
    finally:
        for logger in _loggers():
            logger.setLevel(before.get(logger, logging.NOTSET))


def _loggers() -> list[logging.Logger]:
    known = [*logging.Logger.manager.loggerDict.values()]
    return [logging.getLogger(), *(logger for logger in known if isinstance(logger, logging.Logger))]
