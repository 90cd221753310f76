"""Asks the clusters of a command whether they answer, before it begins: side by side, and not for long.

What does not answer is named by its alias, its setting and its addresses.
"""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Final

from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import DisconnectedError, SparkmirrorError
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.printable import printable
from sparkmirror.domain.quantities import some_of
from sparkmirror.kafka.cluster import Cluster
from sparkmirror.settings.configured import ConfiguredFlow, MirroringFlow

_TIMEOUT_S: Final = 4.0
LOOK_TIMEOUT_S: Final = 2.0
"""The time-out of commands that report flow by flow, also without a cluster: within 3 s in all."""
_CAUSES_MAX: Final = 2
_SIGN_OF_LIFE_AFTER_S: Final = 1.0

Ask = Callable[[ConnectionSettings], object]
"""Raises SparkmirrorError when the cluster does not answer."""


def reachable(flows: Sequence[MirroringFlow], command: str, ask: Ask | None = None) -> list[MirroringFlow]:
    """Return the flows whose clusters answer, and tell on standard error why the others are left out.

    Raises DisconnectedError where none is left.
    """
    silent = silent_clusters(clusters_of(flow.settings for flow in flows), ask, timeout_s=LOOK_TIMEOUT_S)
    left = [flow for flow in flows if not silent.keys() & set(flow.settings.flow)]
    if not left:
        raise DisconnectedError("; ".join(silent.values()))
    for flow in flows:
        why = [error for alias, error in silent.items() if alias in flow.settings.flow]
        if why:
            sys.stderr.write(f"sparkmirror {command}: {flow.name}: unknown: {printable('; '.join(why))}\n")
    return left


def silent_clusters(
    clusters: Iterable[ConnectionSettings],
    ask: Ask | None = None,
    tell: Callable[[str], object] | None = None,
    timeout_s: float = _TIMEOUT_S,
) -> Mapping[Alias, str]:
    """The error of each cluster that does not answer, by its alias. `tell` shows that it is waited for."""
    ask = ask or partial(_brokers, timeout_s=timeout_s)
    asked = {settings.cluster: settings for settings in clusters}
    if not asked:
        return {}
    with ThreadPoolExecutor(len(asked)) as threads:
        answers = {alias: threads.submit(_error, settings, ask) for alias, settings in asked.items()}
        late = wait(answers.values(), _SIGN_OF_LIFE_AFTER_S).not_done
        if late:
            slow = [f"{alias} ({asked[alias].servers})" for alias, each in answers.items() if each in late]
            (tell or sys.stderr.write)(f"waiting for {' and '.join(slow)} …\n")
        found = {alias: each.result() for alias, each in answers.items()}
    return {Alias(alias): error for alias, error in found.items() if error is not None}


def clusters_of(flows: Iterable[ConfiguredFlow]) -> Iterator[ConnectionSettings]:
    """A flow that only emits heartbeats writes to its target, and reads nothing."""
    for flow in flows:
        if flow.source is None:
            yield flow.heartbeat.target_admin
        else:
            yield from (flow.source.source_admin, flow.source.target_admin)


def _brokers(settings: ConnectionSettings, timeout_s: float) -> None:
    """Ask all bootstrap servers at once: one answer is enough."""
    soon = replace(
        settings,
        request_timeout_s=min(timeout_s, settings.request_timeout_s),
        connect_timeout_s=min(timeout_s, settings.connect_timeout_s),
    )
    servers = [replace(soon, bootstrap_servers=(server,)) for server in settings.bootstrap_servers]
    threads = ThreadPoolExecutor(len(servers))
    try:
        causes = []
        for asked in as_completed([threads.submit(_server, each) for each in servers]):
            try:
                return asked.result()
            except DisconnectedError as error:
                causes.append(_cause(error))
        raise DisconnectedError(some_of(causes, _CAUSES_MAX))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _server(settings: ConnectionSettings) -> None:
    with closing(Cluster(settings)) as client:
        client.brokers("ask for the brokers")


def _error(settings: ConnectionSettings, ask: Ask) -> str | None:
    try:
        ask(settings)
    except DisconnectedError as error:
        # Other errors are answers: of a login, or of a certificate, they name their remedy.
        setting = f" ({settings.alias}.bootstrap.servers = {settings.servers})" if settings.alias else ""
        return f"{settings.cluster} does not answer{setting}: {_cause(error)}"
    except SparkmirrorError as error:
        return str(error)
    return None


def _cause(error: DisconnectedError) -> str:
    """Return the cause alone: the sentence around it names the request and the cluster."""
    return str(error.__cause__ or error)
