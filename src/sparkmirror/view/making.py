"""Makes the view of a mirror from one look at its connectors."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, NamedTuple

from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.troubles import worst_first
from sparkmirror.metrics.flow_history import HistoryPoint
from sparkmirror.metrics.looks import ClusterLook, ConnectorLook, GroupsLook, HeartbeatLook, SourceLook
from sparkmirror.view.causes import mirrors, state_of
from sparkmirror.view.connectors import connector_state
from sparkmirror.view.flows import FlowView, MirrorView
from sparkmirror.view.group_index import GroupIndex
from sparkmirror.view.topics import Topics, worst_state
from sparkmirror.view.values import ConnectorView, Lag
from sparkmirror.view.words import Word

_LATENCY_KEPT_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class Node:
    """The process that is looked at; `nodes` are all of its group."""

    name: str
    version: str
    nodes: Sequence[str] = ()


def view_of(
    node: Node, connectors: Iterable[ConnectorLook], at: float, before: MirrorView | None = None
) -> MirrorView:
    """`at` is in epoch seconds. What has not changed since `before`, the last view, is taken from it."""
    by_flow: dict[Flow, list[ConnectorLook]] = defaultdict(list)
    for connector in connectors:
        by_flow[connector.flow].append(connector)
    known = {} if before is None else {flow.flow: flow for flow in before.flows}
    clusters = _clusters(by_flow)
    flows = [
        _flow(flow, looks, known.get(flow), _Around(clusters, at)) for flow, looks in sorted(by_flow.items())
    ]
    return MirrorView(
        at,
        node.version,
        node.name,
        node.nodes,
        [clusters[alias] for alias in sorted(clusters)],
        flows,
        worst_state([it.state for it in flows]),
    )


def _clusters(by_flow: Mapping[Flow, Sequence[ConnectorLook]]) -> Mapping[Alias, ClusterLook]:
    """A cluster of several flows is away if one of them gets no answer."""
    found = {alias: ClusterLook(alias, None) for flow in by_flow for alias in flow}
    for looks in by_flow.values():
        for look in looks:
            for cluster in look.clusters if isinstance(look, SourceLook) else ():
                if found[cluster.alias].is_up is not False and cluster.is_up is not None:
                    found[cluster.alias] = cluster
    return found


class _Around(NamedTuple):
    """The clusters and other values that flows share, and the time in epoch seconds."""

    clusters: Mapping[Alias, ClusterLook]
    at: float


class _Parts(NamedTuple):
    """The connectors of a flow that run."""

    sources: Sequence[SourceLook]
    checkpoints: Sequence[GroupsLook]
    heartbeats: Sequence[HeartbeatLook]


def _flow(flow: Flow, looks: Sequence[ConnectorLook], before: FlowView | None, around: _Around) -> FlowView:
    parts = _Parts(
        [look for look in looks if isinstance(look, SourceLook)],
        [look for look in looks if isinstance(look, GroupsLook)],
        [look for look in looks if isinstance(look, HeartbeatLook)],
    )
    topics = Topics(parts.sources, None if before is None else before.topics, around.at)
    whole = topics.whole
    connectors = [
        ConnectorView(it.connector, it.kind, connector_state(it, whole.state, around.at), it.settings)
        for it in looks
    ]
    states = [it.state for it in connectors if _counts(it, topics)]
    state = state_of(flow, looks, [whole.state, *states] if topics else states, around.clusters, around.at)
    has_nothing = not topics and state.word is Word.CAUGHT_UP
    now = max((look.now for look in parts.sources), default=0.0)
    is_kept = before is not None and 0 <= now - before.latency_at < _LATENCY_KEPT_S
    return FlowView(
        flow,
        now,
        state,
        topics,
        Lag(0, 0.0) if has_nothing else whole.lag,
        whole.left_s,
        whole.speed,
        before.latency_ms if before is not None and is_kept else topics.latency(),
        whole.words,
        connectors,
        _history(parts.sources),
        _added(look.incidents for look in parts.sources),
        sum(look.lost for look in parts.sources),
        next(iter(parts.checkpoints), None),
        min((beat.age_s for beat in parts.heartbeats if beat.age_s is not None), default=None),
        max((_age(look) for look in parts.sources), default=None),
        any(look.is_observed for look in parts.sources),
        _is_running(parts.sources),
        next((look.driver for look in parts.sources if look.driver is not None), None),
        min((it.position_age_s for it in parts.sources if it.position_age_s is not None), default=None),
        next((look.events for look in parts.sources if look.events is not None), None),
        next((look.slots for look in parts.sources if look.slots is not None), None),
        before.latency_at if before is not None and is_kept else now,
        next((look.verify for look in parts.sources if look.verify is not None), None),
        next((look.migrations for look in parts.sources if look.migrations is not None), None),
        _group_index(next(iter(parts.checkpoints), None), before),
        worst_first(trouble for look in looks for trouble in look.troubles),
        mirrors(looks),
    )


def _group_index(look: GroupsLook | None, before: FlowView | None) -> GroupIndex:
    partitions = None if look is None else look.partitions
    is_same = before is not None and before.group_index.partitions is partitions
    return before.group_index if before is not None and is_same else GroupIndex(partitions)


def _counts(connector: ConnectorView, topics: Topics) -> bool:
    """Return whether the flow's word depends on the connector's beside that of its topics."""
    return connector.kind == "source" or connector.state.word is not Word.CAUGHT_UP or not topics


def _history(looks: Sequence[SourceLook]) -> Sequence[HistoryPoint]:
    """Return the longest history: several connectors share a flow only on a worker."""
    return max((look.history for look in looks), key=len, default=())


def _added(counts: Iterable[Mapping[str, int]]) -> Mapping[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def _is_running(looks: Sequence[SourceLook]) -> bool | None:
    """Return whether one of them runs; None where that can't be told of any."""
    running = {look.is_running for look in looks}
    return True in running or (None if None in running else False)


def _age(look: SourceLook) -> float:
    return inf if look.report_age_s is None else look.report_age_s
