"""A program with its own Spark, as in a notebook or under `spark-submit`, that runs a mirror."""

import logging
import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from sparkmirror import Mirror, MirrorException

_log = logging.getLogger(__name__)


def main(mm2_file: str, stop_file: str, kind: str) -> None:
    """Run a mirror, and queries beside it.

    `kind` is `session` or `connect` if the host has a session, `submitted` if it has only a JVM. With
    `-ends` the session is stopped first.
    """
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(levelname)s %(message)s")
    host = None if kind == "submitted" else _host_session(kind)
    before = _settings(host)
    with Mirror(mm2_file, spark=host) as mirror:
        mirror.start()
        while not Path(stop_file).exists():
            time.sleep(0.1)
        if host is not None and kind.endswith("-ends"):
            _end(host, mirror)
            return
        if host is not None:
            _log.info("meanwhile %d", _count(host))
            mirror.await_lag(0, timeout=60)
            shown = mirror.status().where("lag = 0").orderBy("partition").collect()
            _log.info("status %s", [(row.partition, row.position) for row in shown])
    assert not mirror.isActive
    assert mirror.awaitTermination(0)
    assert _settings(host) == before
    _log.info("afterwards %d", _count(host or _host_session("session")))


def _end(host: SparkSession, mirror: Mirror) -> None:
    host.stop()
    try:
        mirror.awaitTermination(60)
    except MirrorException as error:
        _log.info("told: %s", error)
    mirror.stop()
    assert not mirror.isActive
    assert mirror.exception() is not None


def _host_session(kind: str) -> SparkSession:
    builder = SparkSession.builder.config("spark.ui.enabled", "false")
    builder = builder.remote("local[6]") if kind.startswith("connect") else builder.master("local[6]")
    return builder.appName("host").getOrCreate()


def _settings(host: SparkSession | None) -> dict[str, Any]:
    """What a guest could change in the session."""
    if host is None:
        return {}
    assert host is SparkSession.getActiveSession() or host.client
    return {**host.conf.getAll, "tags": host.getTags(), "views": host.catalog.listTables()}


def _count(host: SparkSession) -> int:
    """A query with a shuffle, and with a function in a Python worker that a copy task may have used."""
    return host.range(1000).mapInArrow(_remainders, "id long").distinct().count()


def _remainders(batches: Any) -> Any:
    import gc  # noqa: PLC0415 - in the worker
    import signal  # noqa: PLC0415 - likewise

    import pyarrow as pa  # noqa: PLC0415 - likewise
    import pyarrow.compute as pc  # noqa: PLC0415 - likewise

    assert gc.get_threshold()[0] < 50_000
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    for batch in batches:
        whole = pc.multiply(pc.divide(batch.column(0), 7), 7)
        yield pa.RecordBatch.from_arrays([pc.subtract(batch.column(0), whole)], names=["id"])


if __name__ == "__main__":
    main(*sys.argv[1:])
