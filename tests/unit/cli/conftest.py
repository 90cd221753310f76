import logging
from collections.abc import Iterator

import pytest

from tests.support.logger_levels import levels_restored


@pytest.fixture(autouse=True)
def _loggers_as_before() -> Iterator[None]:
    """Commands set up the process's logging; give the next test back what it had."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    with levels_restored():
        yield
    root.handlers[:] = handlers
