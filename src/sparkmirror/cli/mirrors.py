"""Asks a mirror how it is, by its URL or from Kafka alone by its file: both answer as `GET /mirror` does."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from sparkmirror.cli.arguments import is_url
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.cli.reachability import LOOK_TIMEOUT_S, clusters_of, silent_clusters
from sparkmirror.cli.rest_access import connected
from sparkmirror.client.connect_rest import ConnectRefusedError, ConnectRest, ConnectUnreachableError
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Alias, Flow, TopicPartition
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.status.mirror_watch import MirrorWatch
from sparkmirror.storage.promotions import Parting, Promotion, Promotions, Stage
from sparkmirror.ui.current_view import this_process
from sparkmirror.ui.mirror_response import asked_of
from sparkmirror.view.flows import MirrorView
from sparkmirror.view.making import view_of
from sparkmirror.view.values import Lag, PartitionView, Speed, State
from sparkmirror.view.view_json import SIZE_MAX, view_json
from sparkmirror.view.words import Word

Json = Mapping[str, Any]
Ask = Callable[[Mapping[str, str]], Json]

_TRIES: Final = 3
_NOT_FOUND: Final = 404


class FlowAnswer(NamedTuple):
    """Holds what a mirror tells of one flow, as `view.flows.FlowView`; `partitions` without `promoted` ones.

    `groups` are those with checkpoints, each with the number of its partitions, where they were asked for.
    `troubles` are by their causes: of each the JSON of `GET /mirror`.
    """

    flow: Flow
    state: State
    partitions: Sequence[PartitionView]
    promoted: Promotions
    connectors: Mapping[str, State]
    lag_records: int | None
    heartbeat_age_s: float | None
    report_age_s: float | None
    is_running: bool | None
    process: str | None
    groups: Mapping[str, int]
    troubles: Sequence[Json] = ()
    only_heartbeats: bool = False

    @property
    def cause(self) -> str | None:
        """Why its word is no better, or what it does about that; None where all is said by the word."""
        return self.state.error or self.state.advice or None


class Mirror:
    """`name` is its URL or file, `flows` are those wanted; `look` comes before each answer."""

    def __init__(
        self, name: str, flows: Sequence[str], ask: Ask, look: Callable[[], None] = lambda: None
    ) -> None:
        self._name = name
        self._flows = flows
        self._ask = ask
        self._look = look

    def flows(self, *, with_groups: bool = False) -> list[FlowAnswer]:
        """Read the flows with all their partitions. Raises SparkmirrorError."""
        self._look()
        with _shaped(self._name):
            return [self._flow(name, with_groups=with_groups) for name in self._flows]

    def _flow(self, name: str, *, with_groups: bool) -> FlowAnswer:
        flow, partitions = self._all(name, "partitions")
        groups = self._all(name, "groups")[1] if with_groups else []
        return _answer(flow, partitions, groups)

    def _all(self, name: str, what: str) -> tuple[Json, list[Json]]:
        """The flow, and all its partitions or groups, however many answers they take."""
        for _ in range(_TRIES):
            flow = self._page(name, what, 1)
            pages = [flow, *(self._page(name, what, page) for page in range(2, flow[what]["pages"] + 1))]
            found = {_key(it): it for page in pages for it in page[what]["items"]}
            if len(found) == (flow[what]["total"] or 0):
                return flow, list(found.values())
        raise ConnectUnreachableError(f"{self._name}: {what} of {name} come and go while they are read")

    def _page(self, name: str, what: str, page: int) -> Json:
        parameters = {"flow": name, what: "true", "size": str(SIZE_MAX), "page": str(page)}
        (flow,) = self._ask(parameters)["flows"]
        return dict(flow)


class MirrorApi:
    """The answers of a worker, of `run --http` or of `watch`."""

    def __init__(self, rest: ConnectRest) -> None:
        self._rest = rest

    def asked(self, parameters: Mapping[str, str]) -> Json:
        """Raises ConnectRefusedError and ConnectUnreachableError."""
        try:
            found = self._rest.mirror(parameters)
        except ConnectRefusedError as error:
            if error.status != _NOT_FOUND or "no flow" in str(error):
                raise
            raise _no_mirror(self._rest.url, "no /mirror") from error
        if not isinstance(found.get("flows"), list):
            raise _no_mirror(self._rest.url, "JSON without flows")
        return found

    def flows(self, wanted: Sequence[str] | None = None) -> list[str]:
        """Names of the flows. Raises SparkmirrorError if there is none, or one of those wanted is unknown."""
        with _shaped(self._rest.url):
            found = [str(_flow_name(it)) for it in self.asked({})["flows"]]
        unknown = sorted(set(wanted or ()) - set(found))
        if unknown or not found:
            missing = f"no flow {', '.join(unknown)}" if unknown else "no flow now"
            raise SparkmirrorError(f"{self._rest.url} has {missing} (it has: {', '.join(found) or 'none'})")
        return [name for name in found if wanted is None or name in wanted]


@contextmanager
def mirror_of(
    arguments: argparse.Namespace,
    of: str | None,
    *,
    shows_groups: bool = True,
) -> Iterator[Mirror]:
    """The mirror of a FILE or a URL, by default of a worker on this machine, with the wanted flows."""
    if of is None or is_url(of):
        with connected(arguments, of) as rest:
            api = MirrorApi(rest)
            yield Mirror(rest.url, api.flows(arguments.flow), api.asked)
        return
    flows = mirroring_flows(Path(of), read_mirror_maker_file(Path(of)).flows, arguments.flow)
    watch = MirrorWatch([(flow.settings, flow.connector) for flow in flows], shows_groups=shows_groups)
    view: MirrorView | None = None

    def look() -> None:
        nonlocal view
        tell = sys.stderr.write if view is None else str
        asked = clusters_of(flow.settings for flow in flows)
        watch.look(silent_clusters(asked, tell=tell, timeout_s=LOOK_TIMEOUT_S))
        view = view_of(this_process(), watch.looks(), time.time(), view)

    def last() -> MirrorView:
        assert view is not None
        return view

    with closing(watch):
        yield Mirror(of, [flow.name for flow in flows], answers_of(last), look)


def answers_of(view: Callable[[], MirrorView]) -> Ask:
    return lambda parameters: view_json(view(), asked_of(parameters))


@contextmanager
def _shaped(url: str) -> Iterator[None]:
    """Raises ConnectUnreachableError where an answer has another shape than a mirror's."""
    try:
        yield
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise _no_mirror(url, "JSON of another shape") from error


def _no_mirror(url: str, what: str) -> ConnectUnreachableError:
    return ConnectUnreachableError(
        f"{url} answers with {what}: is it a sparkmirror of this version, and no other worker?"
    )


def _key(it: Json) -> object:
    return it.get("name") or (it["topic"], it["partition"])


def _answer(flow: Json, partitions: Sequence[Json], groups: Sequence[Json]) -> FlowAnswer:
    views = [_partition(it) for it in partitions]
    return FlowAnswer(
        _flow_name(flow),
        _state(flow["state"]),
        [it for it in views if it.state.word is not Word.PROMOTED],
        _promotions([it for it in views if it.state.word is Word.PROMOTED]),
        {str(it["name"]): _state(it["state"]) for it in flow["connectors"]},
        flow["lag_records"],
        flow["heartbeat_age_seconds"],
        flow["report_age_seconds"],
        flow["running"],
        flow["process"],
        {
            str(it["name"]): int(it["partition_count"])
            for it in groups
            if any(each["checkpoint"] is not None for each in it["partitions"])
        },
        flow["troubles"],
        flow["only_heartbeats"],
    )


def _flow_name(flow: Json) -> Flow:
    return Flow(Alias(str(flow["source"])), Alias(str(flow["target"])))


def _partition(it: Json) -> PartitionView:
    return PartitionView(
        TopicPartition(str(it["topic"]), int(it["partition"])),
        None,
        it["task"],
        _state(it["state"]),
        it["position"],
        it["source_end"],
        Lag(it["lag_records"], it["lag_seconds"]),
        it["time_left_seconds"],
        None,
        Speed(it["records_per_second"], it["bytes_per_second"]),
        None,
        it["incidents"],
        it["lost_records"],
        it.get("filtered_records", 0),
        it["notice"],
    )


def _state(state: Json) -> State:
    return State(Word(state["word"]), state["for_seconds"], state["error"], state["advice"] or "")


def _promotions(partitions: Sequence[PartitionView]) -> Promotions:
    """Return promotions; one that is under way has no position yet."""
    partings: dict[str, dict[int, Parting]] = {}
    for it in partitions:
        of = partings.setdefault(it.source.topic, {})
        if it.position is not None:
            of[it.source.partition] = Parting(it.position, None)
    return {
        topic: Promotion(Stage.PROMOTED if each else Stage.SWITCHING, 0, b"", each)
        for topic, each in partings.items()
    }
