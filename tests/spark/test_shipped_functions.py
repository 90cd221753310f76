"""A user's function is imported on executors that have nothing of it."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from sparkmirror.config.plugin_points import find_function
from sparkmirror.spark.session import Session
from tests.spark.standalone import standalone_cluster


def test_a_session_ships_the_package_of_a_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "names.py").write_text("NAME = 'of the shop'\n")
    (package / "mirror.py").write_text(
        "from shop.names import NAME\n\n\ndef where(records):\n    return f'{NAME}, {__file__}'\n"
    )
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sparkmirror.archive": "none",
        "spark.pyspark.python": sys.executable,
    }

    def called(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"said": [str(find_function("shop.mirror:where")(None))]})

    with standalone_cluster(tmp_path, 1, 1) as cluster:
        session = Session.start(cluster.url, settings, tmp_path / "spark.log")
        try:
            monkeypatch.syspath_prepend(tmp_path)
            session.host.ship(["shop.mirror", "sparkmirror.transforms"])
            (row,) = session.spark.range(0, 1, 1, 1).mapInArrow(called, "said string").collect()
        finally:
            session.close()
    name, _, file = row.said.partition(", ")
    assert name == "of the shop"
    assert file.endswith("shop.zip/shop/mirror.py")
