"""A mirror as an object of a program, in the words of Spark's `StreamingQuery`.

    with Mirror("mm2.properties", spark=spark) as mirror:
        mirror.start()
        mirror.await_lag(0, timeout=600)

It runs what `sparkmirror run` runs. With `spark`, a session of Spark or Spark Connect, it is a guest there:
it changes no setting of that session, shares its slots, and leaves it running.
"""

import html
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.mirror.dedicated import MirrorMaker, own_spark
from sparkmirror.plan.flow_planning import plan_flow
from sparkmirror.plan.plan_table import plan_table
from sparkmirror.settings.changed_file import ChangedFile
from sparkmirror.settings.mirror_maker_file import parsed_mirror_maker, read_mirror_maker_file
from sparkmirror.spark.log_files import spark_log_file
from sparkmirror.spark.required import require_spark
from sparkmirror.spark.spark_on_demand import SparkOnDemand
from sparkmirror.status.caught_up import LagLimit, lag_of, waits_for
from sparkmirror.status.mirror_watch import MirrorWatch
from sparkmirror.storage.events import Event, EventKind
from sparkmirror.ui.current_view import CurrentView, this_process
from sparkmirror.view.flows import MirrorView
from sparkmirror.view.making import view_of
from sparkmirror.view.status_table import status_table
from sparkmirror.view.view_json import Asked, view_json

_log = logging.getLogger("sparkmirror")

Progress = Mapping[str, Any]
"""The JSON of `GET /mirror`, without topics."""

_PROGRESS_S: Final = 5.0
_PROGRESSES_KEPT: Final = 100
_LOOK_S: Final = 1.0
_SHOWN_MAX: Final = 20


class MirrorException(SparkmirrorError):  # noqa: N818 - as Spark's StreamingQueryException
    """A mirror has ended by itself, or has not caught up in time."""


class MirrorListener:
    """Told what happens to a mirror, on its own thread. Subclasses override what they need."""

    def onStarted(self, mirror: "Mirror") -> None:
        """Spark runs, and each flow is led by this process or by another one."""

    def onProgress(self, progress: Progress) -> None:
        """A few seconds have passed."""

    def onIncident(self, event: Event) -> None:
        """Records were lost, truncated or doubled by a cluster; `event.text` says what follows."""

    def onTerminated(self, exception: MirrorException | None) -> None:
        """The mirror has ended; `exception` is None if it was stopped."""


class Mirror:
    """The flows of an mm2.properties, of which each runs in one process at a time. Safe in any thread."""

    def __init__(
        self,
        config: str | PathLike[str] | Mapping[str, str],
        spark: Any = None,
        *,
        clusters: Collection[str] | None = None,
        slots: int | None = None,
    ) -> None:
        """Validates the config, and connects to nothing. Raises ConfigError.

        `config` is a file, whose rate limits may change while it runs, or its properties. `spark` is a
        SparkSession; without one, the mirror has a JVM of its own. `clusters` are the targets whose flows run
        (default: all). `slots` limits tasks where a server of Spark Connect does not tell how many may run.
        """
        file = None if isinstance(config, Mapping) else ChangedFile(Path(config), clusters)
        read = (
            parsed_mirror_maker(Properties(config), clusters)
            if isinstance(config, Mapping)
            else read_mirror_maker_file(Path(config), clusters)
        )
        self._flows = read.flows
        self._users_spark = spark
        if spark is None:
            require_spark()
            self._spark = own_spark(read.flows, read.spark, spark_log_file("run"))
        else:
            self._spark = SparkOnDemand.beside(spark, slots)
        self._maker = MirrorMaker(read.flows, self._spark, shared=read.shared, file=file)
        self._current = CurrentView(this_process, self._maker.looks)
        self._listeners: list[MirrorListener] = []
        self._recent: deque[Progress] = deque(maxlen=_PROGRESSES_KEPT)
        self._progress_at = float("-inf")
        self._told_until = time.time()
        self._exception: MirrorException | None = None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def start(self) -> Self:
        """Start mirroring; returns when Spark runs. Raises MirrorException when it can't."""
        if self._thread is not None or self._ended.is_set():
            raise MirrorException("a Mirror starts once: make another one")
        try:
            self._maker.start()
        except BaseException as error:
            self._maker.close()
            self._ended.set()
            if isinstance(error, SparkmirrorError):
                raise MirrorException(str(error)) from error
            raise
        self._thread = threading.Thread(target=self._run, name="mirror", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Stop every flow in order, within about ten seconds: the last positions are written."""
        self._maker.stop()
        thread = self._thread
        if thread is not None:
            if thread is not threading.current_thread():  # a listener may stop it
                thread.join()
        elif not self._ended.is_set():
            self._ended.set()
            self._maker.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _run(self) -> None:
        self._tell(lambda listener: listener.onStarted(self))
        try:
            self._maker.wait(self._each_second)
        except SparkmirrorError as error:
            self._exception = MirrorException(str(error))
            self._exception.__cause__ = error
            _log.error("the mirror ended: %s", error)
        except Exception as error:  # noqa: BLE001 - those who wait must be told
            self._exception = MirrorException(f"the mirror ended: {error!r}")
            self._exception.__cause__ = error
            _log.exception("the mirror ended")
        finally:
            self._maker.close()
            self._ended.set()
            self._tell(lambda listener: listener.onTerminated(self._exception))

    # what it does

    @property
    def isActive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._thread is not None and not self._ended.is_set()

    def exception(self) -> MirrorException | None:
        """Why it has ended by itself; None if it has not."""
        return self._exception

    def awaitTermination(self, timeout: float | None = None) -> bool:
        """Wait for its end, at most `timeout` seconds; returns whether it has ended.

        Raises MirrorException if it has ended by itself.
        """
        has_ended = self._ended.wait(timeout)
        if self._exception is not None:
            raise self._exception
        return has_ended

    @property
    def lastProgress(self) -> Progress | None:
        """The mirror's state, as JSON of `GET /mirror`; None before it was started."""
        if self.isActive:
            return view_json(self._current.get(), Asked())
        return self._recent[-1] if self._recent else None

    @property
    def recentProgress(self) -> Sequence[Progress]:
        """The states of the last minutes, the oldest first."""
        return list(self._recent)

    def addListener(self, listener: MirrorListener) -> None:
        """Tell this listener what happens from now on."""
        self._listeners.append(listener)

    def removeListener(self, listener: MirrorListener) -> None:
        """Tell it no more."""
        self._listeners.remove(listener)

    def _each_second(self) -> None:
        now = time.monotonic()
        if now - self._progress_at < _PROGRESS_S:
            return
        self._progress_at = now
        view = self._current.get()
        progress = view_json(view, Asked())
        self._recent.append(progress)
        self._tell(lambda listener: listener.onProgress(progress))
        for incident in self._new_incidents(view):
            self._tell(lambda listener, it=incident: listener.onIncident(it))  # type: ignore[misc]

    def _new_incidents(self, view: MirrorView) -> list[Event]:
        events = [event for flow in view.flows for event in flow.events_matching("")]
        new = [it for it in events if it.kind is EventKind.INCIDENT and it.time > self._told_until]
        self._told_until = max((it.time for it in new), default=self._told_until)
        return sorted(new, key=lambda it: it.time)

    def _tell(self, call: Callable[[MirrorListener], None]) -> None:
        for listener in list(self._listeners):
            try:
                call(listener)
            except Exception:  # noqa: BLE001 - a listener's bug must not end the mirror
                _log.exception("a listener of the mirror raised")

    # what there is

    def plan(self, *, arrow: bool = False) -> Any:
        """Return a DataFrame of changes, copies, topics left out and findings. Changes nothing.

        Raises KafkaError. With `arrow` it is a pyarrow.Table, for which no Spark is needed.
        """
        return self._frame(plan_table(map(plan_flow, self._flows)), arrow=arrow)

    def status(self, *, arrow: bool = False) -> Any:
        """Return a DataFrame with a row for each partition. Raises KafkaError.

        With `arrow` it is a pyarrow.Table, which needs no free slot of Spark. If the mirror does not run
        here it is what Kafka tells.
        """
        return self._frame(status_table(self._view()), arrow=arrow)

    def await_lag(self, records: int = 0, timeout: float | None = None) -> None:
        """Wait until no partition has more than so many records to copy, as both clusters and `status` say.

        Each flow must have caught up by the rule of `sparkmirror lag --wait --max-seconds 0`.
        Raises MirrorException when the time is over, or the mirror has ended.
        """
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        with closing(self._watch()) as watch:
            while (why := self._behind(watch, records)) is not None:
                if self._exception is not None:
                    raise self._exception
                if time.monotonic() >= deadline:
                    raise MirrorException(f"not caught up after {timeout:g} s: {why}")
                self._ended.wait(min(_LOOK_S, max(0.0, deadline - time.monotonic())))

    def _behind(self, watch: MirrorWatch, records: int) -> str | None:
        """Say what is behind; None if nothing is."""
        try:
            watch.look()
        except SparkmirrorError as error:
            if not error.retriable:
                raise
            return str(error)
        views = [view_of(this_process(), watch.looks(), time.time())]
        if self.isActive:
            views.append(self._current.get())
        limit = LagLimit(records)
        lags = ([lag_of(flow, bool, limit) for flow in view.flows] for view in views)
        return next((why for each in lags if (why := waits_for(each)) is not None), None)

    def _view(self) -> MirrorView:
        if self.isActive:
            return self._current.get()
        with closing(self._watch()) as watch:
            watch.look()
            return view_of(this_process(), watch.looks(), time.time())

    def _watch(self) -> MirrorWatch:
        flows = [(flow, flow.source) for flow in self._flows if flow.source is not None]
        return MirrorWatch(flows, shows_groups=False)

    def _frame(self, table: pa.Table, *, arrow: bool) -> Any:
        if arrow:
            return table
        spark = self._spark.session().result().spark if self._users_spark is None else self._users_spark
        return spark.createDataFrame(table)

    def _repr_html_(self) -> str:
        state = "runs" if self.isActive else "has ended" if self._ended.is_set() else "is not started"
        title = f"<b>Mirror</b> {', '.join(html.escape(str(flow.flow)) for flow in self._flows)}: {state}"
        if self._exception is not None:
            title += f": {html.escape(str(self._exception))}"
        return f"{title}{_html_table(status_table(self._current.get()))}" if self.isActive else title


def _html_table(table: pa.Table) -> str:
    shown = table.slice(0, _SHOWN_MAX)
    rows = "".join(_html_row("td", row.values()) for row in shown.to_pylist())
    more = table.num_rows - shown.num_rows
    rest = f"<p>and {more:,} more: status() has all</p>" if more else ""
    return f"<table>{_html_row('th', table.column_names)}{rows}</table>{rest}"


def _html_row(tag: str, cells: Collection[object]) -> str:
    return f"<tr>{''.join(_html_cells(tag, cells))}</tr>"


def _html_cells(tag: str, cells: Collection[object]) -> Iterator[str]:
    for cell in cells:
        yield f"<{tag}>{'' if cell is None else html.escape(str(cell))}</{tag}>"
