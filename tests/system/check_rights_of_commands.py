"""Runs commands that move a flow with the rights of the flow only, and grants what they ask for.

They must ask for each right that docs/rights.md lists for them, and for nothing else, and do their work
once they have them. No part of `make test`: some minutes by
`python -m pytest tests/system/check_rights_of_commands.py`.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import pytest

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.acls import ResourceType
from tests.support.asked_rights import (
    Needed,
    Sides,
    allow,
    asked_lines,
    foreign,
    grant_asked,
    guarded_sides,
    take_back,
)
from tests.support.broker_data import append, create_topic, delete_topic, keyed, numbered, topics
from tests.support.mirror import COMMAND, REPLICATION, Mirror, running_mirror
from tests.support.rights_page import Mode, Side, grants
from tests.support.secured_broker import login
from tests.support.waiting import await_value
from tests.system.consumer_groups import commit, committed

OLD, NEW = "old", "new"
OUT, BACK = f"{OLD}->{NEW}", f"{NEW}->{OLD}"
TOPIC: Final = "orders"
GROUP: Final = "billing"
WAIT_S: Final = 120.0
ENDS_WITHIN_S: Final = 120.0
ASIDE: Final = "aside"
MIGRATIONS: Final = f"mm2-migrations.{OLD}.internal"
IDENTITY: Final = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
FLOW: Final = (Mode.DEFAULT, Mode.PRESERVED, Mode.OTHER_NAMES)


def rights(source: str, target: str, *modes: Mode) -> Iterator[Needed]:
    """Yield the rights of a flow between the two, whose copies have the names of their originals."""
    for grant in grants(source, target, TOPIC, GROUP):
        if grant.mode in modes:
            name = grant.resource.name.removeprefix(f"{source}.") if TOPIC in grant.resource.name else None
            resource = grant.resource if name is None else grant.resource._replace(name=name)
            at_source = (grant.side is Side.SOURCE) == (source == OLD)
            for right in replace(grant, resource=resource).rights:
                yield Side.SOURCE if at_source else Side.TARGET, right


def flows_rights() -> set[Needed]:
    """Return the rights of the flows in both directions."""
    return {*rights(OLD, NEW, *FLOW), *rights(NEW, OLD, *FLOW)}


class Moved(NamedTuple):
    sides: Sides
    mirror: Mirror


class Step(NamedTuple):
    """A command, whose file follows its first words."""

    mode: Mode
    words: Sequence[str]
    options: Sequence[str]


TOPICS: Final = ("--flow", OUT, "--topic", TOPIC, "--still-for", "1", "--execute")
STEPS: Final = (
    Step(Mode.REMADE, ["offsets", "preserve"], [TOPIC, "--flow", OUT, "--delete", "--execute"]),
    Step(Mode.MOVED_GROUPS, ["migrate", "consumers"], ["--flow", OUT, "--group", GROUP, "--execute"]),
    Step(
        Mode.ROLLED_BACK,
        ["migrate", "consumers"],
        ["--flow", OUT, "--group", GROUP, "--execute", "--roll-back"],
    ),
    Step(
        Mode.MOVED_PRODUCERS,
        ["migrate", "producers"],
        ["--flow", OUT, "--topic", TOPIC, "--still-for", "1", "--execute"],
    ),
    Step(Mode.PROMOTED, ["promote"], TOPICS),
    Step(Mode.FAILED_BACK, ["failback"], [*TOPICS, "--delete", "--keep-aside", ASIDE]),
)


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Moved]:
    folder = tmp_path_factory.mktemp("commands")
    with guarded_sides(folder) as sides:
        source, target = sides[Side.SOURCE].cluster, sides[Side.TARGET].cluster
        for cluster in (source, target):
            create_topic(cluster.bootstrap_servers, TOPIC)
        append(source, TOPIC, numbered(50))
        append(
            target, TOPIC, numbered(1)
        )  # of another producer: offsets are not preserved before it is recreated
        commit(source, GROUP, TOPIC, {0: 20})
        allow(sides, flows_rights())
        with running_mirror(folder / "mirror", properties(sides)) as mirror:
            yield Moved(sides, mirror)
            mirror.stop()


def properties(sides: Sides) -> Mapping[str, str]:
    made = {
        "clusters": f"{OLD}, {NEW}",
        **REPLICATION,
        f"{OUT}.enabled": "true",
        f"{BACK}.enabled": "true",
        "topics": TOPIC,
        "groups": GROUP,
        "replication.policy.class": IDENTITY,
        "offsets.preserve": "true",
        "emit.heartbeats.enabled": "true",
        "refresh.topics.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "tasks.max": "1",
    }
    for alias, side in ((OLD, Side.SOURCE), (NEW, Side.TARGET)):
        made[f"{alias}.bootstrap.servers"] = f"{HOST}:{sides[side].ports['LOGIN']}"
        made |= {f"{alias}.{key}": value for key, value in login("PLAIN").items()}
    return made


def is_copied(sides: Sides) -> bool:
    source, target = sides[Side.SOURCE].cluster, sides[Side.TARGET].cluster
    return TOPIC in topics(target) and keyed(target, TOPIC) == keyed(source, TOPIC)


def test_commands_ask_for_each_of_their_rights_and_work_with_them(moved: Moved) -> None:
    source, target = (moved.sides[side].cluster for side in Side)
    of_flows = flows_rights()
    for number, step in enumerate(STEPS):
        if step.mode is not Mode.REMADE:
            await_value(lambda: is_copied(moved.sides), WAIT_S, moved.mirror.log_text)
        commit(source, GROUP, TOPIC, {0: 20 + number})
        if step.mode in (Mode.MOVED_GROUPS, Mode.PROMOTED):  # which have it to recreate
            delete_topic(target, MIGRATIONS)
        if step.mode is Mode.FAILED_BACK:
            append(source, TOPIC, numbered(3))
        listed = list(rights(OLD, NEW, step.mode))
        added = [each for each in listed if each not in of_flows]
        if step.mode is Mode.REMADE:  # no group has read that topic on the target
            added = [each for each in added if each[1].resource_type is not ResourceType.GROUP]
        said = said_until_done(moved, added, step)
        assert not foreign([*of_flows, *listed], asked_lines(said), moved.sides)
        take_back(moved.sides, added)
    assert committed(target, GROUP, TOPIC, 1) == {0: 24}


def said_until_done(moved: Moved, added: Sequence[Needed], step: Step) -> str:
    """With each right that it asks for."""
    command = [COMMAND, *step.words, str(moved.mirror.file), *step.options]
    left, said = list(added), ""
    for _ in range(2 * len(added) + 1):  # to describe it may be asked for first
        ran = subprocess.run(command, capture_output=True, text=True, timeout=ENDS_WITHIN_S, check=False)
        said += ran.stdout + ran.stderr
        if ran.returncode == 0:
            break
        grant_asked(left, asked_lines(ran.stderr), moved.sides)
    assert ran.returncode == 0, said
    assert not left, said
    return said
