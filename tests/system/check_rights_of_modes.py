"""Starts a flow in each mode with the rights of an ordinary flow only, and grants what its log asks for.

It must ask for each right that docs/security.md lists for the mode, and for nothing else, and do its work
once it has them. No part of `make test`: some minutes by
`python -m pytest tests/system/check_rights_of_modes.py`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.acls import AclBinding, AclOperation, PatternType
from sparkmirror.domain.rights import Need, Right, grant_command
from sparkmirror.kafka.admin import Admin
from sparkmirror.policies.accounts import USER as USER_KIND
from sparkmirror.policies.accounts import QuotaChange, QuotaEntity
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
from tests.support.mirror import REPLICATION, Mirror, running_mirror
from tests.support.rights_page import Mode, Side, binding, grants
from tests.support.secured_broker import USER, SecuredBroker, login, secured_broker
from tests.support.waiting import await_value

GRANTED_WITHIN_S: Final = 200.0
COMMAND: Final = "kafka-acls.sh"
RECORDS: Final = 10
IDENTITY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
MODES: Final[Mapping[Mode, Mapping[str, str]]] = {
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

    def rights(self, *modes: Mode) -> Iterator[tuple[Side, Right]]:
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
        written = {"enabled": "true", "topics": self.topic, "groups": f"billing{self.number}"}
        written |= {f"{name}.interval.seconds": "1" for name in OFTEN}
        return {f"{flow}.{key}": value for key, value in {**written, **MODES[self.mode]}.items()}


Sides = Mapping[Side, SecuredBroker]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("modes")
    with (
        secured_broker(folder / "source", guarded=True) as source,
        secured_broker(folder / "target", guarded=True) as target,
    ):
        yield {Side.SOURCE: source, Side.TARGET: target}


def allow(sides: Sides, rights: Iterable[tuple[Side, Right]]) -> None:
    given: dict[Side, list[AclBinding]] = {side: [] for side in Side}
    for side, right in rights:
        given[side].append(binding(right, f"User:{USER}"))
    for side, bindings in given.items():
        with closing(Admin(connection(sides[side].cluster))) as admin:
            assert set(admin.create_acls(bindings).values()) <= {None}


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
    append(source, case.topic, numbered(2 * RECORDS))
    if case.mode is Mode.PRESERVED:  # a beginning to fill
        delete_records(source, case.topic, RECORDS)
    if case.mode is Mode.OTHER_NAMES:
        create_topic(source.bootstrap_servers, "mm2-producer-ids.internal")
    if case.mode is Mode.QUOTAS:
        with closing(Admin(connection(source))) as admin:
            wanted = QuotaChange(QuotaEntity(((USER_KIND, "bob"),)), (("consumer_byte_rate", 1000.0),))
            assert set(admin.alter_quotas([wanted]).values()) == {None}
    if case.mode is Mode.BAD_BATCHES:  # a record that the target never takes
        create_topic(target.bootstrap_servers, case.copy, config={"max.message.bytes": "1000"})
        append(source, case.topic, [(b"large", os.urandom(5000))])


def has_worked(case: Case, sides: Sides) -> bool:
    source, target = sides[Side.SOURCE].cluster, sides[Side.TARGET].cluster
    if case.mode is Mode.DELETES and case.topic not in topics(source):
        return case.copy not in topics(target)
    small = [record for record in keyed(source, case.topic) if len(record[1] or b"") < 1000]
    return case.copy in topics(target) and keyed(target, case.copy) == small


def asked_lines(mirror: Mirror) -> list[str]:
    """The commands that the log names."""
    lines = mirror.log_text().splitlines()
    return [line[line.index(COMMAND) :] for line in lines if COMMAND in line]


def is_asked(side: Side, right: Right, lines: Sequence[str], sides: Sides) -> bool:
    """Of a prefix, also for one name that begins with it: a request names no prefix."""
    whole = grant_command(right, ".*", f".*:{sides[side].ports['LOGIN']}")
    if right.pattern_type is PatternType.PREFIXED:
        whole = whole.replace(f"{right.name} --resource-pattern-type prefixed", f"{right.name}.*")
    pattern = re.compile(whole.replace("'", "") + r"(?![\w.-])")
    return any(pattern.match(line) for line in lines)


def foreign(case: Case, lines: Sequence[str], sides: Sides) -> list[str]:
    """Commands for what is not listed. DESCRIBE is part of READ and others."""
    listed = list(case.rights(Mode.DEFAULT, case.mode))
    listed += [(side, replace(right, operation=AclOperation.DESCRIBE)) for side, right in listed]
    return [line for line in lines if not any(is_asked(side, right, [line], sides) for side, right in listed)]


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.name)
def test_a_mode_asks_for_each_of_its_rights_and_works_with_them(
    mode: Mode, sides: Sides, tmp_path: Path
) -> None:
    case = Case(mode, list(MODES).index(mode) + 1)
    prepare(case, sides)
    allow(sides, case.rights(Mode.DEFAULT))
    wanted = [each for each in case.rights(mode) if each[1] != NOT_NEEDED]
    source = sides[Side.SOURCE].cluster

    def left() -> list[str]:
        lines = asked_lines(mirror)
        for side, right in list(wanted):
            seen = replace(right, operation=AclOperation.DESCRIBE)
            if is_asked(side, seen, lines, sides):  # what is looked up first
                allow(sides, [(side, seen)])
            if is_asked(side, right, lines, sides):
                allow(sides, [(side, right)])
                wanted.remove((side, right))
        has_copied = has_worked(case, sides)
        if mode is Mode.DELETES and has_copied and case.topic in topics(source):
            delete_topic(source, case.topic)
            return ["its work"]
        return [*(str(right) for _, right in wanted), *([] if has_copied else ["its work"])]

    with running_mirror(tmp_path / "mirror", properties_of(case, sides)) as mirror:
        await_value(lambda: not left(), GRANTED_WITHIN_S, lambda: f"{left()}\n{mirror.log_text()}")
        assert not foreign(case, asked_lines(mirror), sides)
        mirror.stop()


def properties_of(case: Case, sides: Sides) -> Mapping[str, str]:
    clusters = {"clusters": f"{case.near}, {case.far}"}
    return {**clusters, **REPLICATION, **clients(case, sides), **case.settings()}
