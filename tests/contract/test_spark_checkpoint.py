"""A structured stream continues on a flow's target, by the offsets of its checkpoint.

Clusters are in memory, Spark's tasks are threads.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import javaproperties
import pytest

from sparkmirror.cli.main import main
from sparkmirror.mirror.dedicated import MirrorMaker
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from tests.memory.server import MemoryServer, serving
from tests.support.broker_data import append, create_topic, end_offsets, numbered
from tests.support.mirror import one_way
from tests.support.threaded_spark import ThreadedSpark
from tests.support.waiting import await_value

pytestmark = pytest.mark.memory

WAIT_S: Final = 20.0
METADATA: Final = '{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}'

Pair = tuple[MemoryServer, MemoryServer]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """The source's topic has ten records in its first partition."""
    with serving("A of streams") as source, serving("B of streams") as target:
        create_topic(source.bootstrap_servers, "orders", partitions=2)
        append(source, "orders", numbered(10))
        yield source, target


@contextmanager
def mirrored(pair: Pair, folder: Path, remote: str, **more: str) -> Iterator[Path]:
    """The file of a mirror that has copied everything."""
    source, target = pair
    file = folder / "mm2.properties"
    properties = one_way(source, target, "orders", ("streamA", "streamB"), **more)
    file.write_text(javaproperties.dumps(properties), encoding="ascii")
    expected = records_in(target, remote) + records_in(source, "orders")
    mirror = MirrorMaker(read_mirror_maker_file(file).flows, ThreadedSpark().as_demanded())
    mirror.start()
    try:
        await_value(
            lambda: records_in(target, remote) == expected, WAIT_S, lambda: str(records_in(target, remote))
        )
    finally:
        mirror.stop()
        mirror.close()
    yield file


def records_in(server: MemoryServer, topic: str) -> int:
    try:
        return sum(end_offsets(server, [topic]).values())
    except Exception:  # noqa: BLE001 - it is not created yet
        return 0


def checkpoint(folder: Path, *batches: str, committed: int, version: str = "v1") -> Path:
    """A query's checkpoint, whose last batches are planned and not committed."""
    made = folder / "checkpoint"
    for name in ("offsets", "commits"):
        (made / name).mkdir(parents=True)
    for number, sources in enumerate(batches):
        (made / "offsets" / str(number)).write_text(f"{version}\n{METADATA}\n{sources}")
        (made / "offsets" / f".{number}.crc").write_bytes(b"crc")
        if number < committed:
            (made / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return made


def translated(file: Path, of: Path, *more: str) -> int:
    return main(["translate-offsets", str(file), "--spark-checkpoint", str(of), *more])


def test_committed_offsets_are_translated(
    pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    create_topic(pair[1].bootstrap_servers, "streamA.orders", partitions=2)
    append(pair[1], "streamA.orders", numbered(5))
    batches = ('{"orders":{"0":3,"1":0}}', '{"orders":{"0":10,"1":0}}', '{"orders":{"0":99,"1":0}}')
    of = checkpoint(tmp_path, *batches, committed=2)
    with mirrored(pair, tmp_path, "streamA.orders") as file:
        code = translated(file, of)
    printed = capsys.readouterr()
    found = json.loads(printed.out)["streamA.orders"]
    assert found["0"] == 15
    assert "as of batch 1, the last one that the query has committed" in printed.err
    assert found["1"] in (0, -2), "nothing was ever copied"
    assert code == (1 if found["1"] == -2 else 0)


def test_with_preserved_offsets_there_is_nothing_to_do(
    pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    append(pair[0], "orders", numbered(10), partition=1)
    of = checkpoint(tmp_path, 'source-name:{"orders":{"0":4,"1":6}}', committed=1, version="v2")
    identity = {
        "replication_policy_class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
        "offsets_preserve": "true",
    }
    with mirrored(pair, tmp_path, "orders", **identity) as file:
        assert translated(file, of) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"orders": {"0": 4, "1": 6}}
    assert "there is nothing to do but to set kafka.bootstrap.servers" in printed.err


@pytest.mark.parametrize(
    ("batches", "committed", "told"),
    [
        ((), 0, "has committed no batch yet"),
        (('{"orders":{"0":3}}',), 0, "has committed no batch yet"),
        (('{"value":3}',), 1, "has no offsets of Kafka"),
        (('{"a":{"0":3}}\n{"b":{"0":3}}',), 1, "--source-number names one"),
    ],
)
def test_unusable_checkpoints_are_refused_in_one_line(
    pair: Pair,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    batches: tuple[str, ...],
    committed: int,
    told: str,
) -> None:
    of = checkpoint(tmp_path, *batches, committed=committed)
    with mirrored(pair, tmp_path, "streamA.orders") as file:
        assert translated(file, of) != 0
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    assert told in line


def test_a_folder_that_is_no_checkpoint_is_refused(
    pair: Pair, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with mirrored(pair, tmp_path, "streamA.orders") as file:
        assert translated(file, tmp_path) != 0
    assert "is no checkpoint of a structured stream" in capsys.readouterr().err
