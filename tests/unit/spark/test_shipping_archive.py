"""Spark settings that ship the executor archive, by master and by the user's settings."""

import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from sparkmirror.domain.errors import ConfigError
from sparkmirror.spark.executor_archive import LAUNCHER
from sparkmirror.spark.shipping import ARCHIVE, Shipped
from sparkmirror.spark.shipping import shipped as shipped_with

STANDALONE = {"spark.master": "spark://host:7077"}


MADE = Path("/cache/made.tar.gz")


def shipped(settings: Mapping[str, str]) -> Shipped:
    return shipped_with(settings, make_archive=lambda: MADE)


@pytest.fixture(autouse=True)
def _no_python_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)


@pytest.mark.parametrize("master", ["local", "local[4]", "local-cluster[2,1,1024]"])
def test_this_machine_needs_none(master: str) -> None:
    assert shipped({"spark.master": master}) == (sys.executable, {})


@pytest.mark.parametrize(
    ("master", "key"),
    [
        ("spark://host:7077", "spark.archives"),
        ("k8s://https://host:6443", "spark.archives"),
        ("yarn", "spark.yarn.dist.archives"),
    ],
)
def test_a_cluster_gets_one(master: str, key: str) -> None:
    assert shipped({"spark.master": master}) == (LAUNCHER, {key: f"{MADE}#sparkmirror"})


def test_it_comes_beside_the_users_archives() -> None:
    settings = {**STANDALONE, "spark.archives": "mine.zip#mine"}
    assert shipped(settings).settings == {"spark.archives": f"mine.zip#mine,{MADE}#sparkmirror"}


def test_one_that_the_user_brings_is_taken() -> None:
    settings = {**STANDALONE, "spark.archives": "hdfs:///apps/x.tar.gz#sparkmirror"}
    assert shipped(settings) == (LAUNCHER, {"spark.archives": "hdfs:///apps/x.tar.gz#sparkmirror"})


def test_the_user_may_say_where_it_is(tmp_path: Path) -> None:
    url = "hdfs:///apps/x.tar.gz"
    assert shipped({**STANDALONE, ARCHIVE: url}).settings == {"spark.archives": f"{url}#sparkmirror"}
    missing = str(tmp_path / "missing.tar.gz")
    with pytest.raises(ConfigError, match=rf"{missing}.*no such file; `sparkmirror archive` makes one"):
        shipped({**STANDALONE, ARCHIVE: missing})


def test_the_users_python_runs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "spark.executorEnv.SPARKMIRROR_PYTHON"
    monkeypatch.setenv("PYSPARK_PYTHON", "/opt/a/python")
    assert shipped(STANDALONE).settings[variable] == "/opt/a/python"
    assert (
        shipped({**STANDALONE, "spark.pyspark.python": "/opt/b/python"}).settings[variable] == "/opt/b/python"
    )


def test_executors_that_have_it_installed_run_their_own_python() -> None:
    none = {**STANDALONE, ARCHIVE: "none"}
    assert shipped(none) == (sys.executable, {})
    assert shipped({**none, "spark.pyspark.python": "python3"}) == ("python3", {})
