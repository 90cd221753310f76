"""Starts a flow in each mode with the rights of an ordinary flow only, and grants what its log asks for.

It must ask for each right that docs/rights.md lists for the mode, and for nothing else, and do its work
once it has them. No part of `make test`: some minutes by
`python -m pytest tests/system/check_rights_of_modes.py`.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.accounts import USER as USER_KIND
from sparkmirror.domain.accounts import QuotaChange, QuotaEntity
from sparkmirror.domain.rights import Need
from sparkmirror.kafka.admin.admin import Admin
from tests.support.asked_rights import Needed, Sides, allow, asked_lines, foreign, grant_asked, guarded_sides
from tests.support.broker_data import (
    append,
    create_topic,
    delete_records,
    delete_topic,
    keyed,
    numbered,
    topics,
)
from tests.support.connections import connection
from tests.support.mirror import REPLICATION, STOP_TIMEOUT_S, Mirror, running_mirror
from tests.support.rights_page import Mode, Side, grants
from tests.support.secured_broker import add_scram_users, login
from tests.support.waiting import await_value
from tests.system.connect_node import ConnectNode, group_properties, started

GRANTED_WITHIN_S: Final = 200.0
USER_TO_COPY: Final = "bob"
RECORDS: Final = 10
IDENTITY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
MODES: Final[Mapping[Mode, Mapping[str, str]]] = {
    Mode.USERS: {"sync.topic.acls.enabled": "false"},  # first, as the others have such rights on the cluster
    Mode.LAG: {"lag.group.id": "mirror-lag"},
    Mode.TRANSACTIONS: {},
    Mode.SYNCED_ACLS: {"sync.acls.delete": "true"},
    Mode.PRESERVED: {"offsets.preserve": "true"},
    Mode.OTHER_NAMES: {"replication.policy.class": IDENTITY},
    Mode.QUOTAS: {"sync.quotas": "true"},
    Mode.BAD_BATCHES: {"on.bad.batch": "skip", "sync.topic.configs.enabled": "false"},
    Mode.DELETES: {"sync.topic.deletes": "true", "sync.topic.deletes.grace.seconds": "60"},
}
OFTEN: Final = ("refresh.topics", "sync.topic.configs", "sync.topic.acls")
NOT_NEEDED: Final = Need.WRITE_MARKERS.of()


@dataclass(frozen=True, slots=True)
class Case:
    """A flow with names of its own between the two brokers."""

    mode: Mode
    number: int

    @property
    def near(self) -> str:
        return f"near{self.number}"

    @property
    def far(self) -> str:
        return f"far{self.number}"

    @property
    def topic(self) -> str:
        return f"orders{self.number}"

    @property
    def copy(self) -> str:
        return self.topic if self.mode is Mode.OTHER_NAMES else f"{self.near}.{self.topic}"

    @property
    def kept(self) -> str:
        """A second topic, where one is deleted: not all may go at once."""
        return f"kept{self.number}" if self.mode is Mode.DELETES else ""

    @property
    def rights_of_kept(self) -> Iterator[Needed]:
        for grant in grants(self.near, self.far, self.kept) if self.kept else ():
            if grant.mode is Mode.DEFAULT and grant.resource.name.endswith(self.kept):
                for right in grant.rights:
                    yield grant.side, right

    def rights(self, *modes: Mode) -> Iterator[Needed]:
        for grant in grants(self.near, self.far, self.topic, f"billing{self.number}"):
            if grant.mode in modes:
                named = grant.resource._replace(
                    name=self.copy
                    if grant.resource.name == f"{self.near}.{self.topic}"
                    else grant.resource.name
                )
                for right in replace(grant, resource=named).rights:
                    yield grant.side, right

    def settings(self) -> Mapping[str, str]:
        flow = f"{self.near}->{self.far}"
        written = {
            "enabled": "true",
            "topics": ",".join(filter(None, (self.topic, self.kept))),
            "groups": f"billing{self.number}",
        }
        written |= {f"{name}.interval.seconds": "1" for name in OFTEN}
        return {f"{flow}.{key}": value for key, value in {**written, **MODES[self.mode]}.items()}


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    with guarded_sides(tmp_path_factory.mktemp("modes")) as made:
        yield made


def clients(case: Case, sides: Sides) -> Mapping[str, str]:
    written = {}
    for alias, side in ((case.near, Side.SOURCE), (case.far, Side.TARGET)):
        written[f"{alias}.bootstrap.servers"] = f"{HOST}:{sides[side].ports['LOGIN']}"
        written |= {f"{alias}.{key}": value for key, value in login("PLAIN").items()}
    if case.mode is Mode.TRANSACTIONS:
        written[f"{case.far}.exactly.once.source.support"] = "enabled"
    return written


def prepare(case: Case, sides: Sides) -> None:
    """Records, and what makes the mode do something."""
    source, target = sides[Side.SOURCE].cluster, sides[Side.TARGET].cluster
    create_topic(source.bootstrap_servers, case.topic)
    # With a producer's id, which is looked up where names don't show where a topic came from.
    append(source, case.topic, numbered(2 * RECORDS), settings={"enable.idempotence": "true"})
    if case.kept:
        create_topic(source.bootstrap_servers, case.kept)
        append(source, case.kept, numbered(RECORDS))
    if case.mode is Mode.PRESERVED:  # a beginning to fill
        delete_records(source, case.topic, RECORDS)
    if case.mode is Mode.OTHER_NAMES:
        create_topic(source.bootstrap_servers, "mm2-producer-ids.internal")
    if case.mode is Mode.QUOTAS:
        with closing(Admin(connection(source))) as admin:
            wanted = QuotaChange(QuotaEntity(((USER_KIND, "bob"),)), (("consumer_byte_rate", 1000.0),))
            assert set(admin.alter_quotas([wanted]).values()) == {None}
    if case.mode is Mode.USERS:
        add_scram_users(source.bootstrap_servers, USER_TO_COPY)
    if case.mode is Mode.BAD_BATCHES:  # a record that the target never takes
        create_topic(target.bootstrap_servers, case.copy, config={"max.message.bytes": "1000"})
        append(source, case.topic, [(b"large", os.urandom(5000))])


def has_worked(case: Case, sides: Sides) -> bool:
    source, target = sides[Side.SOURCE].cluster, sides[Side.TARGET].cluster
    if case.mode is Mode.USERS:
        with closing(Admin(connection(target))) as admin:
            return bool(admin.credentials([USER_TO_COPY])[USER_TO_COPY])
    if case.mode is Mode.DELETES and case.topic not in topics(source):
        return case.copy not in topics(target)
    small = [record for record in keyed(source, case.topic) if len(record[1] or b"") < 1000]
    return case.copy in topics(target) and keyed(target, case.copy) == small


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_a_mode_asks_for_each_of_its_rights_and_works_with_them(
    mode: Mode, sides: Sides, tmp_path: Path
) -> None:
    case = Case(mode, list(MODES).index(mode) + 1)
    prepare(case, sides)
    wanted = [each for each in case.rights(mode) if each[1] != NOT_NEEDED]
    allow(sides, {*case.rights(Mode.DEFAULT), *case.rights_of_kept} - set(wanted))
    source = sides[Side.SOURCE].cluster

    def left() -> list[str]:
        grant_asked(wanted, asked_lines(mirror.log_text()), sides)
        start_again(mirror)
        has_copied = has_worked(case, sides)
        if mode is Mode.DELETES and has_copied and case.topic in topics(source):
            delete_topic(source, case.topic)
            return ["its work"]
        return [*(str(right) for _, right in wanted), *([] if has_copied else ["its work"])]

    properties = properties_of(case, sides, tmp_path)
    with running_mirror(tmp_path / "mirror", properties) as mirror:
        await_value(lambda: not left(), GRANTED_WITHIN_S, lambda: f"{left()}\n{mirror.log_text()}")
        assert not foreign(case.rights(Mode.DEFAULT, mode), asked_lines(mirror.log_text()), sides)
        mirror.stop()


def start_again(mirror: Mirror) -> None:
    """A node, as Java's, ends without the right to its group, and a worker without those to its topics."""
    if mirror.has_ended:
        mirror.wait(STOP_TIMEOUT_S)
        mirror.start()


def properties_of(case: Case, sides: Sides, folder: Path) -> Mapping[str, str]:
    made = {"clusters": f"{case.near}, {case.far}", **REPLICATION, **clients(case, sides), **case.settings()}
    if case.mode is Mode.USERS:
        file = folder / "users.properties"
        file.write_text(f"{USER_TO_COPY}=hush\n")
        made[f"{case.near}->{case.far}.sync.users"] = str(file)
    return made


def test_a_worker_asks_for_each_of_its_rights_and_works_with_them(sides: Sides, tmp_path: Path) -> None:
    wanted = [
        (grant.side, right) for grant in grants() if grant.mode is Mode.WORKER for right in grant.rights
    ]
    listed, target = list(wanted), sides[Side.TARGET]
    properties = group_properties(target.cluster, "connect-cluster") | login("PLAIN")
    properties |= {f"{kind}.storage.topic": f"connect-{kind}" for kind in ("config", "offset", "status")}
    properties["bootstrap.servers"] = f"{HOST}:{target.ports['LOGIN']}"
    node = ConnectNode(tmp_path / "node", properties)

    def left() -> list[str]:
        grant_asked(wanted, asked_lines(node.log_text()), sides)
        start_again(node)
        return [str(right) for _, right in wanted]

    with started([node]):
        await_value(lambda: not left(), GRANTED_WITHIN_S, lambda: f"{left()}\n{node.log_text()}")
        node.await_answers()
        assert not foreign(listed, asked_lines(node.log_text()), sides)
        node.stop()
