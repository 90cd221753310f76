"""A user's function is imported on executors that have nothing of it."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.spark.standalone import standalone_cluster

PROGRAM: Final = """
import sys
from pathlib import Path

import pyarrow as pa

from sparkmirror.config.plugin_points import find_function
from sparkmirror.spark.session import Session

def called(batches):
    for _ in batches:
        yield pa.record_batch({"said": [str(find_function("shop.mirror:where")(None))]})

master, folder = sys.argv[1:]
settings = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sparkmirror.archive": "none",
    "spark.pyspark.python": sys.executable,
}
session = Session.start(master, settings, Path(folder) / "spark.log")
try:
    sys.path.insert(0, folder)
    session.host.ship(["shop.mirror", "sparkmirror.transforms"])
    (row,) = session.spark.range(0, 1, 1, 1).mapInArrow(called, "said string").collect()
finally:
    session.close()
print(row.said)
"""
"""A process of its own: one that has a Spark session already can start no other."""


def test_a_session_ships_the_package_of_a_function(tmp_path: Path) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "names.py").write_text("NAME = 'of the shop'\n")
    (package / "mirror.py").write_text(
        "from shop.names import NAME\n\n\ndef where(records):\n    return f'{NAME}, {__file__}'\n"
    )
    with standalone_cluster(tmp_path, 1, 1) as cluster:
        command = [sys.executable, "-c", PROGRAM, cluster.url, str(tmp_path)]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    name, _, file = ended.stdout.strip().partition(", ")
    assert name == "of the shop"
    assert file.endswith("shop.zip/shop/mirror.py")
