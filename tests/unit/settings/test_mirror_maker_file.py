"""A Strimzi resource is accepted in place of mm2.properties."""

import logging
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.settings.changed_file import ChangedFile
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.setup.topic_plan import SourceTopic, copy_partitions

RESOURCE: Final = """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
metadata:
  name: my-mirror-maker-2
spec:
  version: 4.3.1
  replicas: 1
  target:
    alias: cluster-b
    bootstrapServers: b:9092
    groupId: my-group
    configStorageTopic: my-configs
    offsetStorageTopic: my-offsets
    statusStorageTopic: my-status
    config:
      # the broker's default
      offset.storage.replication.factor: -1
  mirrors:
  - source:
      alias: cluster-a
      bootstrapServers: a:9092
    sourceConnector:
      tasksMax: 3
      config:
        sync.topic.acls.enabled: "false"
        refresh.topics.interval.seconds: 60
        on.data.loss: fail
    checkpointConnector:
      config:
        sync.group.offsets.enabled: yes
    topicsPattern: "orders.*"
    groupsPattern: "billing"
  resources:
    limits: {memory: 2Gi}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mirror.yaml"
    path.write_text(RESOURCE)
    return path


def test_the_resource_s_flow_would_run(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        read = read_mirror_maker_file(file)
        flows, spark, unknown = read.flows, read.spark, read.config.unknown_keys()
    (flow,) = flows
    assert str(flow.flow) == "cluster-a->cluster-b"
    assert flow.source is not None
    assert flow.source.name == "cluster-a->cluster-b.MirrorSourceConnector"
    assert flow.source.settings.tasks_max == 3
    assert flow.source.settings.topic_filter.should_replicate("orders-eu")
    assert not flow.source.settings.topic_filter.should_replicate("payments")
    assert flow.source.settings.refresh_topics_interval_s == 60
    assert flow.source.settings.copying.reactions.on_data_loss.value == "fail"
    assert flow.checkpoint is not None
    assert flow.checkpoint.settings.sync_group_offsets_interval_s == 60
    assert not flow.heartbeat.settings.emit
    assert (flow.worker.group_id, flow.worker.offset_topic.name) == ("my-group", "my-offsets")
    assert (spark, unknown) == ({}, ())
    assert [record.getMessage() for record in caplog.records] == [
        f"{file}: left out: spec.resources: has no counterpart outside of the operator"
    ]


def test_only_flows_into_the_given_clusters(file: Path) -> None:
    assert len(read_mirror_maker_file(file, ["cluster-b"]).flows) == 1
    with pytest.raises(SparkmirrorError, match="No source->target replication flows"):
        read_mirror_maker_file(file, ["cluster-a"])


def test_a_resource_is_recognized_by_its_content(file: Path, tmp_path: Path) -> None:
    other = file.rename(tmp_path / "mirror")
    assert len(read_mirror_maker_file(other).flows) == 1


def test_errors_name_their_path(file: Path) -> None:
    file.write_text(RESOURCE.replace("alias: cluster-a\n      bootstrapServers: a:9092", "alias: cluster-a"))
    with pytest.raises(SparkmirrorError) as caught:
        read_mirror_maker_file(file)
    assert str(caught.value) == f"{file}: spec.mirrors[0].source.bootstrapServers: is missing"


def test_limits_change_while_it_runs(file: Path) -> None:
    changed = ChangedFile(file)
    new = file.with_suffix(".new")
    new.write_text(RESOURCE.replace("on.data.loss: fail", "max.bytes.per.second: 5000"))
    new.replace(file)
    assert changed.poll() == {}
    (limits,) = changed.poll().values()
    assert limits.flow == 5000


PAIR: Final = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy
A->B.enabled = true
B->A.enabled = true
offsets.preserve = true
"""


@pytest.mark.parametrize(
    ("more", "returning"),
    [
        ("", {"orders", "bank"}),
        ("A->B.topics = orders", {"orders"}),
        ("A->B.topics.exclude = orders", {"bank"}),
        ("B->A.offsets.preserve.topics = bank", {"bank"}),
        ("A->B.offsets.preserve = false", {"orders", "bank"}),
        ("A->B.enabled = false", set()),
        ("A->B.replication.policy.class = org.apache.kafka.connect.mirror.DefaultReplicationPolicy", set()),
    ],
)
def test_a_flow_knows_which_topics_the_opposite_one_of_its_file_copies_back(
    tmp_path: Path, more: str, returning: set[str]
) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(PAIR + more)
    for into in (None, ["A"]):
        source = next(it.source for it in read_mirror_maker_file(file, into).flows if it.flow.target == "A")
        assert source is not None
        plan = copy_partitions(
            source.settings, {"orders": SourceTopic(1), "bank": SourceTopic(1)}, {"orders": 1, "bank": 1}
        )
        assert {each.source.topic for each in plan.ready if each.is_copied_back} == returning
        assert len(plan.ready) == 2


def test_a_ring_is_refused_whichever_of_its_flows_run_here(tmp_path: Path) -> None:
    file = tmp_path / "mm2.properties"
    flows = ("A->B", "B->C", "C->A")
    file.write_text(
        "clusters = A, B, C\nreplication.policy.class = "
        "org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
        + "".join(f"{alias}.bootstrap.servers = {alias}:9092\n" for alias in "ABC")
        + "".join(f"{flow}.enabled = true\n{flow}.topics = orders\n" for flow in flows)
    )
    for into in (None, ["B"]):
        with pytest.raises(SparkmirrorError, match=r"\w->\w->\w->\w is a ring") as raised:
            read_mirror_maker_file(file, into)
        assert str(file) in str(raised.value)
    with file.open("a") as more:
        more.write("C->A.topics = payments\n")
    assert len([flow for flow in read_mirror_maker_file(file).flows if flow.source is not None]) == 3
