"""Runs an action in a thread while a block of code runs."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def in_background(action: Callable[[threading.Event], None]) -> Iterator[None]:
    """The event signals that the block has ended; an exception of the action is raised after the block."""
    enough = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(action, enough)
        try:
            yield
        finally:
            enough.set()
    acting.result()
