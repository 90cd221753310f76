"""Gives one pair of clusters to all test processes of a run; it starts when the first of them asks for it.

xdist's controller owns the brokers. It outlives the processes that use them, and brokers end with the process
that started them, however that ends.
"""

import threading
from collections.abc import Mapping
from contextlib import ExitStack
from multiprocessing.connection import Client, Connection, Listener
from pathlib import Path
from typing import Final

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.errors import SparkmirrorError
from tests.support.cluster_pairs import cluster_pair_of


class SharedPair:
    """Waits in a thread for processes that want the clusters. `close` ends the clusters."""

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings: Final = settings
        self._listener: Final = Listener(family="AF_UNIX")
        self._running: Final = ExitStack()
        self._answer: tuple[bool, str] | None = None

    @property
    def address(self) -> str:
        return str(self._listener.address)

    def start(self) -> None:
        threading.Thread(target=self._serve, daemon=True, name="shared pair").start()

    def close(self) -> None:
        self._listener.close()
        self._running.close()

    def _serve(self) -> None:
        while True:
            try:
                with self._listener.accept() as client:
                    self._reply(client)
            except OSError:
                return  # closed

    def _reply(self, client: Connection) -> None:
        home = Path(client.recv())
        if self._answer is None:
            try:
                self._running.enter_context(cluster_pair_of(1, self._settings, home))
                self._answer = True, str(home)
            except SparkmirrorError as error:
                self._answer = False, str(error)
        client.send(self._answer)


def shared_pair(address: str, home: Path) -> tuple[LocalCluster, LocalCluster]:
    """Attach to the clusters of this run. They are started in `home` if nobody has asked before."""
    with Client(address) as server:
        server.send(str(home))
        started, answer = server.recv()
    if not started:
        raise RuntimeError(answer)
    source, target = (LocalCluster.attach(Path(answer) / name) for name in ("source", "target"))
    assert source is not None
    assert target is not None
    return source, target
