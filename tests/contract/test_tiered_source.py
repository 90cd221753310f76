"""Topics with tiered storage are mirrored to a cluster without it: plan and the sync of topics agree."""

import json
from collections.abc import Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, Final

import javaproperties
import pytest

from sparkmirror.cli.main import main
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.settings.configured import configured_flow
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.topic_sync import TopicSync
from tests.memory.server import MemoryServer, serving
from tests.support.any_cluster import AnyCluster
from tests.support.broker_data import config, topics
from tests.support.mirror import REPLICATION

LOGGER: Final = "tests.contract.tiered_source"
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
def tiered() -> Iterator[MemoryServer]:
    """A source in memory, as brokers with tiered storage need a plug-in for it."""
    with serving("tiered") as server:
        for name, configs in {**TIERED, **PLAIN}.items():
            server.call(partial(server.cluster.create, name, 1, configs))
        yield server


@pytest.fixture
def properties(tiered: MemoryServer, cluster: AnyCluster) -> dict[str, str]:
    return {
        "clusters": "deep, flat",
        "deep.bootstrap.servers": tiered.bootstrap_servers,
        "flat.bootstrap.servers": cluster.bootstrap_servers,
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
    cluster: AnyCluster,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(javaproperties.dumps(properties), encoding="ascii")
    code, flow = planned(file, capsys)
    assert code == 0, flow["findings"]
    (finding,) = (each for each in flow["findings"] if each["kind"] == "refused config")
    assert (finding["severity"], finding["subject"]) == ("warns", "remote.storage.enable")
    created = {
        change["name"]: change["details"]["configs"]
        for change in flow["changes"]
        if change["kind"] == "topic"
    }
    assert "remote.storage.enable" not in created["deep.tiered.short"]

    (given,) = MirrorMakerConfig(Properties(properties), {}).flows()
    connector = configured_flow(given).source
    assert connector is not None
    log = flow_log(LOGGER, given.flow, connector.name)
    with (
        closing(FlowAdmins(given.flow, connector)) as admins,
        closing(TopicSync(connector.settings, admins, log)) as sync,
    ):
        sync.apply(sync.plan().plan)
        admins.target.await_partitions({f"deep.{name}": 1 for name in (*TIERED, *PLAIN)}, 20.0)
        sync.apply(sync.plan().plan)
    said = capsys.readouterr().err
    assert (said.count("created without"), finding["text"] in said) == (1, True), said
    assert {f"deep.{name}" for name in (*TIERED, *PLAIN)} <= topics(cluster).keys()
    for name, configs in {**TIERED, **PLAIN}.items():
        found = config(cluster, f"deep.{name}")
        kept = {key: value for key, value in configs.items() if key != "remote.storage.enable"}
        assert {key: found[key] for key in kept} == kept

    # What exists and can't follow blocks neither.
    code, flow = planned(file, capsys)
    assert code == 0, flow["findings"]
    (finding,) = (each for each in flow["findings"] if each["kind"] == "refused config")
    assert "can't follow the source in remote.storage.enable" in finding["text"]
