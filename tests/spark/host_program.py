"""A program with its own Spark, as in a notebook or under `spark-submit`, that runs a mirror."""

import logging
import sys
import threading
import time
from pathlib import Path

from pyspark import SparkContext
from pyspark.sql import SparkSession

from sparkmirror.mirror.dedicated import MirrorMaker
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file

_log = logging.getLogger(__name__)


def main(mm2_file: str, stop_file: str, kind: str) -> None:
    """Run a mirror; `kind` is `session` if the host has a session, `submitted` if it has only a JVM."""
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")
    host = _host_session() if kind == "session" else None
    before = _settings(host)
    file = read_mirror_maker_file(Path(mm2_file))
    mirror = MirrorMaker(file.flows, file.spark, Path(mm2_file).with_name("spark.log"))
    mirror.start()
    watching = threading.Thread(target=_stop_when, args=(Path(stop_file), mirror))
    watching.start()
    mirror.wait()
    if host is not None:
        _log.info("meanwhile %d", _count(host))
    mirror.close()
    watching.join()
    assert not Path(mm2_file).with_name("spark.log").exists(), "a JVM of its own"
    assert _settings(host) == before
    _log.info("afterwards %d", _count(host or _host_session()))


def _host_session() -> SparkSession:
    return SparkSession.builder.master("local[6]").appName("host").getOrCreate()


def _settings(host: SparkSession | None) -> dict[str, str]:
    if host is None:
        return {}
    assert host is SparkSession.getActiveSession()
    return {**dict(host.sparkContext.getConf().getAll()), **host.conf.getAll}


def _count(host: SparkSession) -> int:
    assert SparkContext.getOrCreate() is host.sparkContext
    return host.range(1000).rdd.map(lambda row: row.id % 7).distinct().count()


def _stop_when(file: Path, mirror: MirrorMaker) -> None:
    while not file.exists():
        time.sleep(0.1)
    mirror.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
