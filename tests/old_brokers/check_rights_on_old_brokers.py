"""A flow to a broker before Kafka 2.8 asks for IDEMPOTENT_WRITE, which docs/rights.md lists for it.

No part of `make test`: the release is 60 MB from Maven Central, once, and the check takes a minute.
`OLD_BROKERS=1 python -m pytest tests/old_brokers/check_rights_on_old_brokers.py`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple, cast

from sparkmirror.clusters import LocalCluster
from sparkmirror.clusters.ports import HOST
from tests.old_brokers.old_cluster import NEEDS_JARS, Release, old_cluster
from tests.support.asked_rights import allow, asked_lines, foreign, grant_asked
from tests.support.broker_data import append, create_topic, keyed, numbered, topics
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.rights_page import Mode, Side, grants
from tests.support.secured_broker import SecuredBroker, login
from tests.support.waiting import await_value

pytestmark = NEEDS_JARS

WAIT_S: Final = 200.0
TOPIC: Final = "orders"
COPY: Final = f"near.{TOPIC}"
LAST_TO_ASK: Final = Release("2.7.2")


class Broker(NamedTuple):
    """A broker that takes logins, as far as the helpers need it."""

    cluster: LocalCluster
    ports: Mapping[str, int]


def properties(port: int) -> dict[str, str]:
    made = {"clusters": "near, far", **REPLICATION, "near->far.enabled": "true", "near->far.topics": TOPIC}
    made["heartbeats.replication.enabled"] = "false"  # the target's are the source's, too
    for alias in ("near", "far"):
        made[f"{alias}.bootstrap.servers"] = f"{HOST}:{port}"
        made |= {f"{alias}.{key}": value for key, value in login("PLAIN").items()}
    return made


def test_a_flow_asks_to_number_its_records_and_copies_with_that_right(tmp_path: Path) -> None:
    with old_cluster(LAST_TO_ASK, tmp_path / "old") as started:
        old = cast("LocalCluster", started)  # its users need its address only
        create_topic(old.bootstrap_servers, TOPIC)
        append(old, TOPIC, numbered(20))
        broker = cast("SecuredBroker", Broker(old, {"LOGIN": started.login_port}))
        sides = dict.fromkeys(Side, broker)  # it is both clusters
        listed = {
            mode: [
                (each.side, right)
                for each in grants("near", "far")
                if each.mode is mode
                for right in each.rights
            ]
            for mode in (Mode.DEFAULT, Mode.OLD)
        }
        allow(sides, listed[Mode.DEFAULT])
        wanted = list(listed[Mode.OLD])
        with running_mirror(tmp_path / "mirror", properties(started.login_port)) as mirror:

            def is_done() -> bool:
                grant_asked(wanted, asked_lines(mirror.log_text()), sides)
                return not wanted and COPY in topics(old) and keyed(old, COPY) == numbered(20)

            await_value(is_done, WAIT_S, lambda: f"{wanted}\n{mirror.log_text()}")
            every = [each for rights in listed.values() for each in rights]
            assert not foreign(every, asked_lines(mirror.log_text()), sides)
            mirror.stop()
