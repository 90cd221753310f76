"""Does something in a thread for as long as a block lasts."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def in_background(work: Callable[[threading.Event], object]) -> Iterator[None]:
    """`work` ends soon after its event is set; the block's end waits for that."""
    enough = threading.Event()
    thread = threading.Thread(target=work, args=(enough,))
    thread.start()
    try:
        yield
    finally:
        enough.set()
        thread.join()
