"""An installation without the extra `spark`: what asks runs, what copies says in one line what to install."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

_WITHOUT: Final = """
import sys
sys.modules.update(dict.fromkeys(("pyspark", "py4j", "pyarrow", "pandas")))
from sparkmirror.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
_LINE: Final = (
    "sparkmirror: this needs Spark, and there is no pyspark, pyarrow, pandas: "
    "pip install 'sparkmirror[spark]'"
)
_FILE: Final = """\
clusters = a, b
a.bootstrap.servers = a.invalid:9092
b.bootstrap.servers = b.invalid:9092
a->b.enabled = true
"""
_WORKER: Final = """\
bootstrap.servers = a.invalid:9092
group.id = w
key.converter = org.apache.kafka.connect.converters.ByteArrayConverter
value.converter = org.apache.kafka.connect.converters.ByteArrayConverter
offset.storage.topic = w-offsets
config.storage.topic = w-configs
status.storage.topic = w-status
listeners = http://127.0.0.1:0
"""


def without_spark(*words: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", _WITHOUT, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_command_parses_its_arguments() -> None:
    ended = without_spark("completion", "bash")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("command", ["run", "worker", "prepare", "demo"])
def test_what_starts_spark_names_the_package(command: str, tmp_path: Path) -> None:
    files = {"run": _FILE, "worker": _WORKER}
    given = []
    if command in files:
        given = [tmp_path / "file.properties"]
        given[0].write_text(files[command])
    ended = without_spark(command, *given)
    assert ended.returncode == 2, ended
    assert ended.stderr.strip().endswith(_LINE.removeprefix("sparkmirror: ")), ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_asks_ends_with_the_state_of_the_clusters(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(_FILE)
    ended = without_spark("plan", file)
    assert (ended.returncode, "Spark" in ended.stderr) == (2, False), ended
