"""Topics with tiered storage are mirrored to a cluster without it: plan and the sync of topics agree."""

import json
import logging
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import javaproperties
import pytest

from sparkmirror.cli.main import main
from sparkmirror.clusters import ClusterSpec, LocalCluster
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.configured import configured_flow
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.topic_sync import TopicSync
from tests.support.broker_data import config, create_topic, topics
from tests.support.mirror import REPLICATION

LOGGER: Final = "tests.contract.tiered_source"
NO_STORAGE: Final = "org.apache.kafka.server.log.remote.storage.NoOpRemote"
TIERED: Final = {
    "tiered.short": {
        "remote.storage.enable": "true",
        "local.retention.ms": "60000",
        "retention.ms": "600000",
    },
    "tiered.same": {
        "remote.storage.enable": "true",
        "local.retention.ms": "-2",
        "local.retention.bytes": "-2",
    },
    "tiered.no-copy": {"remote.storage.enable": "true", "remote.log.copy.disable": "true"},
}
PLAIN: Final = {
    "tiered.compacted": {"cleanup.policy": "compact,delete"},
    "tiered.zstd": {"compression.type": "zstd", "compression.zstd.level": "5"},
}


@pytest.fixture(scope="module")
def tiered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    settings = {
        "remote.log.storage.system.enable": "true",
        "remote.log.storage.manager.class.name": f"{NO_STORAGE}StorageManager",
        "remote.log.metadata.manager.class.name": f"{NO_STORAGE}LogMetadataManager",
        "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    }
    spec = ClusterSpec("tiered", settings=settings, heap_mb=256)
    with LocalCluster.start(spec, tmp_path_factory.mktemp("tiered")) as cluster:
        for name, configs in {**TIERED, **PLAIN}.items():
            create_topic(cluster.bootstrap_servers, name, config=configs)
        yield cluster


@pytest.fixture(scope="module")
def properties(tiered: LocalCluster, target_cluster: LocalCluster) -> dict[str, str]:
    return {
        "clusters": "deep, flat",
        "deep.bootstrap.servers": tiered.bootstrap_servers,
        "flat.bootstrap.servers": target_cluster.bootstrap_servers,
        "deep->flat.enabled": "true",
        "deep->flat.topics": r"tiered\..*",
        **REPLICATION,
    }


def planned(file: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, dict[str, Any]]:
    code = main(["plan", str(file), "-o", "json"])
    (flow,) = json.loads(capsys.readouterr().out)
    return code, flow


def test_all_topics_are_created_and_plan_says_without_what(
    properties: dict[str, str],
    target_cluster: LocalCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(javaproperties.dumps(properties), encoding="ascii")
    code, flow = planned(file, capsys)
    assert code == 0, flow["findings"]
    (finding,) = (each for each in flow["findings"] if each["kind"] == "refused config")
    assert (finding["severity"], finding["subject"]) == ("warns", "remote.storage.enable")
    created = {change["name"]: change["configs"] for change in flow["changes"] if change["kind"] == "topic"}
    assert "remote.storage.enable" not in created["deep.tiered.short"]

    (given,) = MirrorMakerConfig(Properties(properties), {}).flows()
    connector = configured_flow(given).source
    assert connector is not None
    caplog.set_level(logging.WARNING, LOGGER)
    log = flow_log(LOGGER, given.flow, connector.name)
    with (
        closing(FlowAdmins(given.flow, connector)) as admins,
        closing(TopicSync(connector.settings, admins, log)) as sync,
    ):
        sync.apply(sync.plan().plan)
        admins.target.await_partitions({f"deep.{name}": 1 for name in (*TIERED, *PLAIN)}, 20.0)
        sync.apply(sync.plan().plan)
    assert [record.getMessage() for record in caplog.records] == [finding["text"]]
    assert {f"deep.{name}" for name in (*TIERED, *PLAIN)} <= topics(target_cluster).keys()
    for name, configs in {**TIERED, **PLAIN}.items():
        found = config(target_cluster, f"deep.{name}")
        kept = {key: value for key, value in configs.items() if key != "remote.storage.enable"}
        assert {key: found[key] for key in kept} == kept

    # What exists and can't follow blocks neither.
    code, flow = planned(file, capsys)
    assert code == 0, flow["findings"]
    (finding,) = (each for each in flow["findings"] if each["kind"] == "refused config")
    assert "can't follow the source in remote.storage.enable" in finding["text"]
