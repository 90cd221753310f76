"""Topics whose configs the target refuses are created and altered without those, and with all others."""

from collections.abc import Iterator
from contextlib import closing
from typing import Final

import pytest

from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType, TopicCreation
from sparkmirror.kafka.admin.admin import Admin
from sparkmirror.setup.refused_configs import TopicCreations, alter_configs
from tests.contract.event_loop import WAIT_S
from tests.support.any_cluster import AnyCluster
from tests.support.connections import connection

ACCEPTED: Final = {"local.retention.ms": "60000", "max.message.bytes": "2000000", "retention.ms": "600000"}
REFUSED: Final = {
    "message.format.version": ("2.8", "Unknown topic config name: message.format.version"),
    "remote.storage.enable": ("true", "Tiered Storage functionality is disabled in the broker"),
    "segment.bytes": ("102400", "Invalid value 102400 for configuration segment.bytes: Value must be"),
}


@pytest.fixture
def admin(cluster: AnyCluster) -> Iterator[Admin]:
    with closing(Admin(connection(cluster))) as made:
        yield made


@pytest.fixture
def checks(cluster: AnyCluster) -> Iterator[Admin]:
    with closing(Admin(connection(cluster), checks_only=True)) as made:
        yield made


@pytest.mark.parametrize("refused", [[name] for name in REFUSED] + [list(REFUSED)], ids=" ".join)
def test_a_topic_is_created_without_what_is_refused(admin: Admin, checks: Admin, refused: list[str]) -> None:
    name = "-".join(["contract.refused-configs", *refused])
    topic = TopicCreation(name, 2, 1, {**ACCEPTED, **{each: REFUSED[each][0] for each in refused}})
    planned = TopicCreations(checks.create_topics, checks.create_topics).create([topic])
    assert name not in admin.partition_counts()
    results, left_out = TopicCreations(admin.create_topics, checks.create_topics).create([topic])
    assert results == {name: None}
    assert left_out[name].keys() == set(refused)
    for each in refused:
        assert REFUSED[each][1] in str(left_out[name][each])
    # The plan says the same.
    assert (dict(planned[0]), {each: str(error) for each, error in planned[1][name].items()}) == (
        {name: None},
        {each: str(error) for each, error in left_out[name].items()},
    )
    assert admin.await_partitions({name: 2}, WAIT_S)[name] == 2
    found = {entry.name: entry.value for entry in admin.topic_configs([name])[name]}
    assert {each: found[each] for each in ACCEPTED} == ACCEPTED


def test_a_topic_is_altered_but_for_what_is_refused(admin: Admin) -> None:
    name = "contract.refused-changes"
    admin.create_topics([TopicCreation(name, 1, 1, {})])
    admin.await_partitions({name: 1}, WAIT_S)
    wanted = {**ACCEPTED, **{each: value for each, (value, _) in REFUSED.items()}}
    changes = [AlterConfigOp(each, AlterConfigOpType.SET, value) for each, value in sorted(wanted.items())]
    errors, refused = alter_configs(admin.alter_configs, {name: changes})
    assert errors == {}
    assert refused[name].keys() == REFUSED.keys()
    for each, (_, text) in REFUSED.items():
        assert text in str(refused[name][each])
