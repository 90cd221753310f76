"""Sync of topic configs between real clusters, also where brokers refuse some of them."""

import logging
from collections.abc import Iterator
from typing import Final

import pytest

from sparkmirror.clusters import LocalCluster
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.configured import configured_flow
from sparkmirror.setup.config_plan import ConfigPlan
from sparkmirror.setup.config_sync import ConfigSync
from sparkmirror.setup.flow_admins import FlowAdmins
from tests.support.broker_data import config, configure, create_topic
from tests.support.waiting import await_value

TOPIC: Final = "contract.configs"
COPY: Final = f"near.{TOPIC}"
TIERED: Final = AlterConfigOp("remote.storage.enable", AlterConfigOpType.SET, "true")
LONGER: Final = AlterConfigOp("retention.ms", AlterConfigOpType.SET, "777777")
WAIT_S: Final = 20.0
LOGGER: Final = "tests.contract.config_sync"


@pytest.fixture(scope="module")
def sync(source_cluster: LocalCluster, target_cluster: LocalCluster) -> Iterator[ConfigSync]:
    properties = {
        "clusters": "near, far",
        "near.bootstrap.servers": source_cluster.bootstrap_servers,
        "far.bootstrap.servers": target_cluster.bootstrap_servers,
        "near->far.enabled": "true",
        "near->far.topics": TOPIC,
        "emit.heartbeats.enabled": "false",
    }
    (flow,) = MirrorMakerConfig(Properties(properties), {}).flows()
    connector = configured_flow(flow).source
    assert connector is not None
    create_topic(source_cluster.bootstrap_servers, TOPIC, config={"retention.ms": "86400001"})
    create_topic(target_cluster.bootstrap_servers, COPY, config={"segment.ms": "86400002"})
    admins = FlowAdmins(flow.flow, connector)
    yield ConfigSync(connector.settings, admins, flow_log(LOGGER, flow.flow, connector.name))
    admins.close()


def await_nothing_to_do(sync: ConfigSync) -> None:
    """A broker tells of a change a little after its controller has acknowledged it."""
    await_value(lambda: sync.plan() == ConfigPlan(), WAIT_S, lambda: str(sync.plan()))


def await_retention(cluster: LocalCluster, retention_ms: str) -> None:
    await_value(
        lambda: config(cluster, COPY)["retention.ms"] == retention_ms,
        WAIT_S,
        lambda: str(config(cluster, COPY)),
    )


def test_applied_plan_leaves_nothing_to_do(sync: ConfigSync, target_cluster: LocalCluster) -> None:
    assert sync.plan() == ConfigPlan(
        {
            COPY: (
                AlterConfigOp("retention.ms", AlterConfigOpType.SET, "86400001"),
                AlterConfigOp("segment.ms", AlterConfigOpType.DELETE),
            )
        }
    )
    sync.run()
    await_nothing_to_do(sync)
    configure(target_cluster, COPY, {"min.insync.replicas": "2"})  # excluded
    assert sync.plan() == ConfigPlan()


def test_refused_configs_do_not_block_the_others(
    sync: ConfigSync, target_cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """One invalid config makes the broker refuse the whole request about a topic."""
    caplog.set_level(logging.INFO, LOGGER)
    sync.apply(ConfigPlan({COPY: (TIERED, LONGER)}))
    assert not caplog.records
    (trouble,) = sync.troubles
    assert (trouble.what, trouble.word) == ("remote.storage.enable", "differs")
    assert f": alter configs of {COPY} on far: INVALID_CONFIG (" in trouble.reason
    await_retention(target_cluster, "777777")
    sync.run()
    await_retention(target_cluster, "86400001")
