"""Reads `GET /mirror` of a worker, of `run --http` or of `watch`: what a running mirror says of itself."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sparkmirror.cli.rest_access import access_of
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectRest, ConnectUnreachableError
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.status.flow_lag import FlowLag, PartitionLag
from sparkmirror.storage.promotions import Parting, Promotion, Promotions, Stage
from sparkmirror.view.view_json import SIZE_MAX
from sparkmirror.view.words import Word

Json = Mapping[str, Any]
_TRIES: Final = 3
_NOT_FOUND: Final = 404


class SeenState(NamedTuple):
    """As `view.values.State`."""

    word: Word
    error: str | None
    advice: str | None


class SeenPartition(NamedTuple):
    """As `view.values.PartitionView`; None is unknown."""

    source: TopicPartition
    state: SeenState
    position: int | None
    source_end: int | None
    lag_records: int | None
    lag_s: float | None


class SeenFlow(NamedTuple):
    """As `view.values.FlowView`; `partitions` come worst first, without those of `promoted` topics."""

    flow: Flow
    state: SeenState
    partitions: Sequence[SeenPartition]
    heartbeat_age_s: float | None
    report_age_s: float | None
    node: str
    promoted: Promotions = MappingProxyType({})


class MirrorApi:
    """Every method raises ConnectRefusedError and ConnectUnreachableError."""

    def __init__(self, rest: ConnectRest) -> None:
        self._rest = rest

    def flows(self) -> list[str]:
        """Their names, `A->B`."""
        return [str(_flow_name(it)) for it in self.asked({})["flows"]]

    def flow(self, name: str) -> SeenFlow:
        """With all its partitions, however many answers they take."""
        for _ in range(_TRIES):
            found = self._parsed(name, 1)
            pages, total = found.pages, found.total
            partitions = {it.source: it for it in found.flow.partitions}
            for page in range(2, pages + 1):
                partitions |= {it.source: it for it in self._parsed(name, page).flow.partitions}
            if len(partitions) == total:
                return _parted(found.flow._replace(partitions=list(partitions.values())))
        raise ConnectUnreachableError(
            f"{self._rest.url}: partitions of {name} come and go while they are read"
        )

    def _parsed(self, name: str, page: int) -> "_Answer":
        parameters = {"flow": name, "partitions": "true", "size": str(SIZE_MAX), "page": str(page)}
        return self._shaped(lambda: _answer(self.asked(parameters)))

    def asked(self, parameters: Mapping[str, str]) -> Json:
        """The answer as it is, of a mirror."""
        try:
            found = self._rest.mirror(parameters)
        except ConnectRefusedError as error:
            if error.status != _NOT_FOUND or "no flow" in str(error):
                raise
            raise self._no_mirror("no /mirror") from error
        if not isinstance(found.get("flows"), list):
            raise self._no_mirror("JSON without flows")
        return found

    def _shaped(self, parse: Callable[[], "_Answer"]) -> "_Answer":
        try:
            return parse()
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise self._no_mirror("JSON of another shape") from error

    def _no_mirror(self, what: str) -> ConnectUnreachableError:
        return ConnectUnreachableError(
            f"{self._rest.url} answers with {what}: is it a sparkmirror of this version, and no other worker?"
        )


class UrlLagReader:
    """The lag of one flow as the mirror itself tells it; `status.flow_lag.LagReader` reads it from Kafka."""

    def __init__(self, api: MirrorApi, flow: str, is_wanted: Callable[[str], object]) -> None:
        self._api = api
        self._flow = flow
        self._is_wanted = is_wanted

    def read(self) -> FlowLag:
        seen = self._api.flow(self._flow)
        partitions = [_lag(it) for it in seen.partitions if self._is_wanted(it.source.topic)]
        why = None if seen.partitions else _said(seen.state)
        promoted = {topic: each for topic, each in seen.promoted.items() if self._is_wanted(topic)}
        return FlowLag(seen.flow, sorted(partitions), why=why, promoted=promoted)


def wanted_flows(api: MirrorApi, url: str, wanted: Sequence[str] | None) -> list[str]:
    """Raises SparkmirrorError if there is none, or one of those that are wanted is unknown."""
    found = api.flows()
    unknown = sorted(set(wanted or ()) - set(found))
    if unknown or not found:
        missing = f"no flow {', '.join(unknown)}" if unknown else "no flow now"
        raise SparkmirrorError(f"{url} has {missing} (it has: {', '.join(found) or 'none'})")
    return [name for name in found if wanted is None or name in wanted]


def rest_of(arguments: argparse.Namespace, url: str | None) -> "closing[ConnectRest]":
    """A client of that URL, with the credentials that were given. Raises ConfigError."""
    return closing(ConnectRest(access_of(arguments, url)))


class _Answer(NamedTuple):
    flow: SeenFlow
    pages: int
    total: int


def _answer(content: Json) -> _Answer:
    (flow,) = content["flows"]
    page = flow["partitions"]
    seen = SeenFlow(
        _flow_name(flow),
        _state(flow["state"]),
        [_partition(it) for it in page["items"]],
        flow["heartbeat_age_seconds"],
        flow["report_age_seconds"],
        str(content["node"]),
    )
    return _Answer(seen, int(page["pages"]), int(page["total"]))


def _parted(flow: SeenFlow) -> SeenFlow:
    """Promoted topics apart from the others."""
    partings: dict[str, dict[int, Parting]] = {}
    for it in flow.partitions:
        if it.state.word is Word.PROMOTED:
            partings.setdefault(it.source.topic, {})[it.source.partition] = Parting(it.position or 0, None)
    promoted = {topic: Promotion(Stage.PROMOTED, 0, b"", each) for topic, each in partings.items()}
    left = [it for it in flow.partitions if it.state.word is not Word.PROMOTED]
    return flow._replace(partitions=left, promoted=promoted)


def _flow_name(flow: Json) -> Flow:
    return Flow(Alias(str(flow["source"])), Alias(str(flow["target"])))


def _partition(it: Json) -> SeenPartition:
    source = TopicPartition(str(it["topic"]), int(it["partition"]))
    lag = it["lag_records"], it["lag_seconds"]
    return SeenPartition(source, _state(it["state"]), it["position"], it["source_end"], *lag)


def _state(state: Json) -> SeenState:
    return SeenState(Word(state["word"]), state["error"], state["advice"])


def _lag(it: SeenPartition) -> PartitionLag:
    why = it.state.error or (_said(it.state) if it.lag_records is None else None)
    return PartitionLag(it.source, it.source_end, it.position, it.lag_records, why, it.lag_s)


def _said(state: SeenState) -> str:
    return f"{state.word}: {state.error or state.advice}" if state.error or state.advice else state.word
