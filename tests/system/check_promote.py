"""`sparkmirror promote` is killed at each stage, beside a mirror that is killed too, under load.

Not part of `make test`: `python -m pytest tests/system/check_promote.py` takes two minutes.
"""

import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import Alias, ConnectorName
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.kafka.data.topic_log import TopicTail
from sparkmirror.storage.attempts import owner_of
from sparkmirror.storage.promotions import Promotion, Stage, parse_promotion, read_promotions
from tests.support.broker_data import append, create_topic, topics
from tests.support.connections import connection
from tests.support.mirror import COMMAND, running_mirror
from tests.support.topic_reader import TopicReader
from tests.support.traffic import flowing
from tests.support.waiting import await_value
from tests.system.dual_run import Sides

TOPIC: Final = "promoted.orders"
REMOTE: Final = f"prior.{TOPIC}"
PARTITIONS: Final = 4
WAIT_S: Final = 180.0
"""The mirror starts in 10 s, and on a busy machine in a minute."""
OWNER: Final = owner_of("mm2-offsets.prior.internal", ConnectorName("MirrorSourceConnector"))


def placed(cluster: LocalCluster, topic: str, partition: int) -> list[tuple[int | None, object]]:
    with TopicReader(cluster.bootstrap_servers, topic) as reader:
        return [(record.offset(), record.value()) for record in reader.read(partition)]


def recorded(target: LocalCluster) -> Promotion | None:
    return read_promotions(connection(target), Alias("prior"), OWNER).get(TOPIC)


def killed_at(stage: Stage, command: list[str], target: LocalCluster) -> Stage:
    """Kill the command as soon as it has recorded the stage; the stage that is recorded then."""
    seen: set[Stage] = set()
    tail = TopicTail(connection(target), StateTopic.MIGRATIONS.of(Alias("prior")))

    def has_come() -> bool:
        parsed = filter(None, map(parse_promotion, tail.poll(0.1)))
        seen.update(promotion.stage for _, _, promotion in parsed if promotion is not None)
        return stage in seen or Stage.PROMOTED in seen

    with closing(tail), subprocess.Popen(command) as process:
        try:
            await_value(has_come, WAIT_S, lambda: f"{stage} is not recorded, but {seen}")
        finally:
            process.kill()
    found = recorded(target)
    assert found is not None
    return found.stage


@pytest.mark.timeout(1200)
def test_a_promotion_that_is_killed_at_each_stage_ends_with_a_beginning_of_the_source(
    sides: Sides, tmp_path: Path
) -> None:
    source, target = sides
    create_topic(source.bootstrap_servers, TOPIC, partitions=PARTITIONS)
    properties = {
        "clusters": "prior, next",
        "prior.bootstrap.servers": source.bootstrap_servers,
        "next.bootstrap.servers": target.bootstrap_servers,
        "prior->next.enabled": "true",
        "prior->next.topics": r"promoted\..*",
        "prior->next.offsets.preserve": "true",
        "prior->next.offsets.on.mismatch": "continue-translated",
        "refresh.topics.interval.seconds": "1",
        "tasks.max": "2",
    }
    load = flowing(source, TOPIC, rate=1000, partitions=PARTITIONS)
    with running_mirror(tmp_path / "mirror", properties) as mirror, load:
        await_value(
            lambda: REMOTE in topics(target) and len(placed(target, REMOTE, 0)) > 100,
            WAIT_S,
            lambda: mirror.log_text()[-2000:],
        )
        flow = [COMMAND, "promote", str(mirror.file), "--flow", "prior->next", "--execute"]
        command = [*flow, "--stop-at-now", "--timeout", "100"]
        if killed_at(Stage.STOPPING, command, target) is Stage.STOPPING:
            subprocess.run([*flow, "--roll-back"], check=True, timeout=WAIT_S)
            before = len(placed(target, REMOTE, 0))
            await_value(lambda: len(placed(target, REMOTE, 0)) > before, WAIT_S, lambda: "nothing is copied")
        killed_at(Stage.SWITCHING, command, target)
        mirror.kill()
        mirror.start()
        subprocess.run(command, check=True, timeout=WAIT_S)
        ended = recorded(target)
        assert ended is not None
        assert ended.stage is Stage.PROMOTED
        for partition in range(PARTITIONS):
            append(target, REMOTE, [(None, b"own")], partition=partition)
        said = f"{TOPIC} is promoted: it is copied no more"
        count = mirror.log_text().count(said)
        mirror.kill()
        mirror.start()
        await_value(lambda: mirror.log_text().count(said) > count, WAIT_S, lambda: mirror.log_text()[-2000:])
        time.sleep(5)  # what a task would write, it has written by then
        for partition in range(PARTITIONS):
            parted = ended.partings[partition].offset
            *copied, (_, last) = placed(target, REMOTE, partition)
            assert copied == placed(source, TOPIC, partition)[:parted]
            assert last == b"own"
