"""Finds what a flow's state comes from, to be told before its consequences. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.quantities import clock_time
from sparkmirror.metrics.looks import ClusterLook, ConnectorLook, SourceLook
from sparkmirror.view.topics import worst_state
from sparkmirror.view.values import State
from sparkmirror.view.words import Word, severity

AWAY_ADVICE: Final = "it is asked every 2 s; the mirror continues by itself when it answers"


def away(cluster: ClusterLook, at: float) -> State:
    """`at` is in epoch seconds."""
    return State(Word.UNKNOWN, cluster.away_for_s, away_text(cluster, at), AWAY_ADVICE)


def away_text(cluster: ClusterLook, at: float) -> str:
    since = "" if cluster.away_for_s is None else f" since {clock_time(at - cluster.away_for_s)}"
    silent = f"{cluster.alias} does not answer"
    error = (cluster.error or "").removeprefix(silent)
    return f"{silent}{since}{error}" if error != cluster.error else f"{silent}{since}{error and f': {error}'}"


def needed(flow: Flow, *, mirrors: bool) -> Sequence[Alias]:
    """The clusters without which the flow can't do its work: heartbeats alone need the target."""
    return [flow.source, flow.target] if mirrors else [flow.target]


def mirrors(looks: Sequence[ConnectorLook]) -> bool:
    """Whether a flow with these connectors does more than emit heartbeats."""
    return any(look.kind != "heartbeat" for look in looks)


def state_of(
    flow: Flow,
    looks: Sequence[ConnectorLook],
    states: Sequence[State],
    clusters: Mapping[Alias, ClusterLook],
    at: float,
) -> State:
    """The state of a flow by those of its parts: a cluster that is away comes first, then the worst."""
    worst = worst_state(sorted(states, key=lambda it: (it.error is None, not it.advice)))
    for alias in needed(flow, mirrors=mirrors(looks)):
        if clusters[alias].is_up is False:
            cause = away(clusters[alias], at)
            return cause._replace(word=min(cause.word, worst.word, key=severity))
    return next((state for look in looks if (state := not_running(look)) is not None), worst)


def not_running(look: ConnectorLook) -> State | None:
    """The state of a mirror that does not run, read from Kafka alone."""
    if not isinstance(look, SourceLook) or not look.is_observed or look.trouble is None:
        return None
    word = Word.STOPPED if look.is_stopped else Word.ACTION_REQUIRED
    return State(word, error=look.trouble, advice="start it: sparkmirror run FILE")
