"""Takes each right of docs/rights.md from a mirror that has all others, and awaits its kafka-acls.sh line.

`sparkmirror plan` says it before anything runs, or the log of `sparkmirror run`. Not part of
`make test`, since a right may take a mirror of its own: `python -m pytest tests/system/check_rights.py`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

import javaproperties
import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.acls import AclBinding, AclOperation
from sparkmirror.domain.rights import Right, grant_command
from sparkmirror.kafka.admin.admin import Admin
from tests.support.broker_data import append, configure, create_topic, delete_topic, grow, numbered, topics
from tests.support.connections import connection
from tests.support.mirror import REPLICATION, running_mirror
from tests.support.rights_page import Mode, Side, binding, grants
from tests.support.secured_broker import USER, SecuredBroker, login, secured_broker
from tests.support.waiting import await_value
from tests.system.consumer_groups import commit

MODES: Final = (Mode.DEFAULT, Mode.GROUPS)
SAID_WITHIN_S: Final = 180.0
"""Spark alone takes most of a minute to start on a busy machine."""
OFTEN: Final = (
    "refresh.topics",
    "refresh.groups",
    "sync.topic.configs",
    "emit.checkpoints",
    "sync.group.offsets",
    "emit.heartbeats",
)
Sides = Mapping[Side, SecuredBroker]


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sides]:
    folder = tmp_path_factory.mktemp("rights")
    with (
        secured_broker(folder / "source", guarded=True) as source,
        secured_broker(folder / "target", guarded=True) as target,
    ):
        yield {Side.SOURCE: source, Side.TARGET: target}


def rights(case: str) -> list[tuple[Side, Right]]:
    """Rights of a flow whose names end with `case`."""
    listed = grants(f"near{case}", f"far{case}", f"orders{case}", f"billing{case}")
    return [(grant.side, right) for grant in listed if grant.mode in MODES for right in grant.rights]


def left(every: Sequence[tuple[Side, Right]], side: Side, missing: tuple[Side, Right]) -> list[Right]:
    """Return the rights on one side but one, which leaves the right to see what it is about."""
    where, right = missing
    kept = [each for at, each in every if at is side and (at, each) != missing]
    seen = replace(right, operation=AclOperation.DESCRIBE)
    return [*kept, seen] if where is side and right != seen else kept


@contextmanager
def allowed(broker: SecuredBroker, bindings: Sequence[AclBinding]) -> Iterator[None]:
    with closing(Admin(connection(broker.cluster))) as admin:
        try:
            assert set(admin.create_acls(bindings).values()) == {None}
            yield
        finally:
            admin.delete_acls(bindings)


def settings(case: str, sides: Sides) -> dict[str, str]:
    near, far = f"near{case}", f"far{case}"
    clients = {
        f"{alias}.{key}": value
        for alias, broker in ((near, sides[Side.SOURCE]), (far, sides[Side.TARGET]))
        for key, value in {
            "bootstrap.servers": f"{HOST}:{broker.ports['LOGIN']}",
            **login("PLAIN"),
        }.items()
    }
    return {
        "clusters": f"{near}, {far}",
        **clients,
        f"{near}->{far}.enabled": "true",
        f"{near}->{far}.topics": f"orders{case}",
        f"{near}->{far}.groups": f"billing{case}",
        f"{far}->{near}.emit.heartbeats.enabled": "false",
        f"{near}->{far}.sync.group.offsets.enabled": "true",
        **{f"{near}->{far}.{name}.interval.seconds": "1" for name in OFTEN},
        **REPLICATION,
        "emit.heartbeats.enabled": "true",
    }


def planned(folder: Path, properties: Mapping[str, str], capsys: pytest.CaptureFixture[str]) -> str:
    """The remedies that a plan names."""
    file = folder / "plan.properties"
    file.write_text(javaproperties.dumps(dict(properties)), encoding="ascii")
    main(["plan", str(file), "-o", "json"])
    (flow,) = json.loads(capsys.readouterr().out)
    return "\n".join(finding["remedy"] for finding in flow["findings"])


@pytest.mark.parametrize("number", range(len(rights(""))), ids=lambda number: str(rights("")[number][1]))
def test_a_missing_right_is_named_with_its_command(
    number: int, sides: Sides, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = str(number)
    every, near = rights(case), sides[Side.SOURCE].cluster
    topic, group = f"orders{case}", f"billing{case}"
    create_topic(near.bootstrap_servers, topic, partitions=1)
    append(near, topic, numbered(10))
    commit(near, group, topic, {0: 10})
    missing = every[number]
    far = sides[Side.TARGET].cluster
    if "heartbeats" in topics(far):  # of a case before: nothing would have to be created
        delete_topic(far, "heartbeats")
    kept = {each: [binding(right, f"User:{USER}") for right in left(every, each, missing)] for each in Side}
    line = grant_command(missing[1], "", "").partition(" --operation ")[2]
    properties = settings(case, sides)
    with allowed(sides[Side.SOURCE], kept[Side.SOURCE]), allowed(sides[Side.TARGET], kept[Side.TARGET]):
        if line in planned(tmp_path, properties, capsys):
            return
        with running_mirror(tmp_path / "mirror", properties) as mirror:
            await_value(lambda: "copy job 1 copies" in mirror.log_text() or line in mirror.log_text(),
                        SAID_WITHIN_S, mirror.log_text)  # fmt: skip
            grow(near, topic, 2)
            configure(near, topic, {"max.message.bytes": "234567"})
            await_value(
                lambda: line in mirror.log_text(), SAID_WITHIN_S, lambda: f"{line}\n{mirror.log_text()}"
            )
