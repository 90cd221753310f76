"""The periodic jobs of a source connector. Effects are tested with real clusters."""

from concurrent.futures import Future
from typing import cast

import pytest

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.client_settings import OffsetReset
from sparkmirror.domain.errors import ConfigError
from sparkmirror.mirror.source_connector import SourceConnector
from sparkmirror.settings.configured import configured_flow
from sparkmirror.setup.flow_admins import FlowAdmins

PROPERTIES = {
    "clusters": "A, B",
    "A.bootstrap.servers": "a:9092",
    "B.bootstrap.servers": "b:9092",
    "A->B.enabled": "true",
    "emit.heartbeats.enabled": "false",
    "tasks.max": "2",
}


@pytest.mark.parametrize(
    ("more", "jobs"),
    [
        (
            {},
            {
                "refresh topics",
                "watch tasks",
                "check Spark",
                "reassign partitions",
                "sync topic configs",
                "sync topic ACLs",
            },
        ),
        (
            {"partition.assignment": "roundrobin", "sync.topic.acls.enabled": "false"},
            {"refresh topics", "watch tasks", "check Spark", "sync topic configs"},
        ),
        (
            {"tasks.max": "1", "sync.topic.configs.enabled": "false"},
            {"refresh topics", "watch tasks", "check Spark", "sync topic ACLs"},
        ),
        (
            {
                "tasks.max": "1",
                "sync.topic.configs.enabled": "false",
                "sync.topic.acls.enabled": "false",
                "sync.quotas": "true",
            },
            {"refresh topics", "watch tasks", "check Spark", "sync accounts"},
        ),
    ],
)
def test_jobs(more: dict[str, str], jobs: set[str]) -> None:
    """A single task can't be relieved; `partition.assignment=roundrobin` leaves the load unmeasured."""
    (config,) = MirrorMakerConfig(Properties(PROPERTIES | more), {}).flows()
    settings = configured_flow(config)
    assert settings.source is not None
    source = SourceConnector(settings, settings.source, Future(), lambda _: 1)
    assert {job.name for job in source.jobs(cast("FlowAdmins", None))} == {
        "report obstacles",
        "watch own topics",
        *jobs,
    }


@pytest.mark.parametrize(
    ("text", "reset"),
    [("", OffsetReset.EARLIEST), ("latest", OffsetReset.LATEST), ("P7D", OffsetReset.TIME)],
)
def test_start_at_says_where_a_flow_begins(text: str, reset: OffsetReset) -> None:
    (config,) = MirrorMakerConfig(Properties(PROPERTIES | {"A->B.start.at": text}), {}).flows()
    settings = configured_flow(config)
    assert settings.source is not None
    assert settings.source.consumer_of(0).offset_reset is reset


def test_a_start_that_is_no_place_is_refused_by_its_key() -> None:
    with pytest.raises(ConfigError, match=r"start\.at"):
        configured_flow(*MirrorMakerConfig(Properties(PROPERTIES | {"start.at": "7d"}), {}).flows())
