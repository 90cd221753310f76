"""What goes on beside a block of code, in a thread."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def beside(action: Callable[[threading.Event], None]) -> Iterator[None]:
    """The action is told by its event that the block has ended; what it raises is raised behind the block."""
    enough = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        acting = pool.submit(action, enough)
        try:
            yield
        finally:
            enough.set()
    acting.result()
