"""A program with its own Spark, as in a notebook or under `spark-submit`, that runs a mirror."""

import logging
import sys
import time
from pathlib import Path
from typing import Any

import javaproperties
from pyspark.sql import SparkSession

from sparkmirror import Mirror, MirrorException
from sparkmirror.spark.connect_host import ConnectHost
from sparkmirror.spark.host import SparkJob

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
        if kind == "connect":
            _use_connect(host, mm2_file)
    assert not mirror.isActive
    assert mirror.awaitTermination(0)
    assert _settings(host) == before
    _log.info("afterwards %d", _count(host or _host_session("session")))


def _use_connect(host: Any, mm2_file: str) -> None:
    """Read the topic, call a function of a module that only this process has, and cancel a job."""
    settings = javaproperties.loads(Path(mm2_file).read_text(encoding="ascii"))
    named = {key.rpartition(".")[2]: value for key, value in settings.items() if key.startswith("host-")}
    reader = host.read.format("sparkmirror").option("kafka.bootstrap.servers", named["servers"])
    _log.info("read %d", reader.option("subscribe", named["topics"]).load().count())
    folder = Path(mm2_file).parent / "modules"
    folder.mkdir()
    (folder / "only_here.py").write_text("def where():\n    return __file__\n", encoding="ascii")
    sys.path.append(str(folder))
    connect = ConnectHost(host)
    shipped = SparkJob(_where, 1, "said string", "shipped", "calls a function", modules=["only_here"])
    _log.info("function in %s", connect.submit(shipped).result(60)[0].said)
    endless = connect.submit(SparkJob(_endless, 1, "said string", "endless", "never ends"))
    while connect.state("endless") is None:
        time.sleep(0.1)
    connect.cancel("endless")
    _log.info("cancelled: %s", endless.exception(60) is not None)
    connect.close()


def _where(batches: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - in the worker
    from only_here import where  # type: ignore[import-not-found]  # noqa: PLC0415 - likewise

    for _ in batches:
        yield pa.record_batch({"said": [where()]})


def _endless(batches: Any) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - in the worker

    for _ in batches:
        while True:
            time.sleep(0.1)
            yield pa.record_batch({"said": ["x"]})


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
    """Return the settings that a guest could change in the session."""
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
