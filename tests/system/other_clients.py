"""Measures how long other clients of a worker wait while one sends it the worst."""

import http.client
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import Final
from urllib.parse import urlsplit

PAUSE_S: Final = 0.003
LOOKS_MIN: Final = 100


def waits(url: str, attack: Callable[[], object] | None = None) -> list[float]:
    """Seconds for each answer to `GET /` on an open connection while `attack` runs, in order of size."""
    at = urlsplit(url)
    found: list[float] = []
    with closing(http.client.HTTPConnection(str(at.hostname), at.port, timeout=60)) as connection:
        attacker = threading.Thread(target=attack)
        attacker.start()
        while attacker.is_alive() or not found or (attack is None and len(found) < LOOKS_MIN):
            before = time.perf_counter()
            connection.request("GET", "/")
            answer = connection.getresponse()
            answer.read()
            found.append(time.perf_counter() - before)
            assert answer.status == 200
            time.sleep(PAUSE_S)
        attacker.join()
    return sorted(found)


def share(found: list[float], part: float) -> float:
    """The seconds within which this part of the answers came."""
    return found[min(len(found) - 1, int(len(found) * part))]
