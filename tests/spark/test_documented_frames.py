"""The examples of docs/spark.md run in an ordinary session, one after the other."""

import re
import sys
from pathlib import Path
from typing import Final

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.processes import start_process
from sparkmirror.kafka.data.partition_offsets import await_stable
from tests.spark.programs import PYTHON_PATH, await_end
from tests.support.broker_data import append, create_topic, keyed, numbered
from tests.support.connections import connection
from tests.support.mirror import REPLICATION

PAGE: Final = Path(__file__).parents[2] / "docs" / "spark.md"
EXAMPLES: Final = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
COUNT: Final = 50
WAIT_S: Final = 200


def test_examples(source_cluster: LocalCluster, target_cluster: LocalCluster, tmp_path: Path) -> None:
    servers = source_cluster.bootstrap_servers
    for topic in ("orders", "orders-copy", "orders-once"):
        create_topic(servers, topic, partitions=2)
    append(source_cluster, "orders", numbered(COUNT))
    settings = {
        "clusters": "page, copy",
        "page.bootstrap.servers": servers,
        "copy.bootstrap.servers": target_cluster.bootstrap_servers,
        "page->copy.enabled": "true",
        "page->copy.topics": "orders",
        **REPLICATION,
    }
    file = tmp_path / "mm2.properties"
    file.write_text("".join(f"{key} = {value}\n" for key, value in settings.items()), encoding="utf-8")
    assert len(EXAMPLES) == 6
    text = "\n".join(EXAMPLES).replace("localhost:9092", servers).replace("/tmp/", f"{tmp_path}/")
    text = text.replace("mm2.properties", str(file))
    program = tmp_path / "examples.py"
    program.write_text(f"{text}\nassert spark.table('seen').count() == {COUNT}\n", encoding="utf-8")
    log = tmp_path / "examples.log"
    conf = "--master local[2] --conf spark.ui.enabled=false pyspark-shell"
    command = [
        "env",
        f"PYTHONPATH={PYTHON_PATH}",
        f"PYSPARK_SUBMIT_ARGS={conf}",
        sys.executable,
        str(program),
    ]
    process = start_process([command], log, outlives_us=False)
    try:
        await_end(process, WAIT_S, log)
        output = log.read_text()
        assert process.exit_code == 0, output
    finally:
        process.kill()
    assert "key-7|" in output
    assert "'maxOffsetsBehindLatest': 0" in output
    await_stable(connection(source_cluster), "orders-once")
    for topic in ("orders-copy", "orders-once"):
        assert sorted(map(str, keyed(source_cluster, topic))) == sorted(map(str, numbered(COUNT)))
    assert sorted(map(str, keyed(target_cluster, "page.orders"))) == sorted(map(str, numbered(COUNT)))
