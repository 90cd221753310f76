"""Applying plans of topic configs and logging the results, without brokers."""

import logging
from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from sparkmirror.domain.errors import AuthorizationError, KafkaError, UnsupportedVersionError
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.domain.topics import AlterConfigOp, AlterConfigOpType
from sparkmirror.kafka.wire.error_codes import INVALID_CONFIG
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.policies.admin_writes import Results
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.config_plan import ConfigPlan
from sparkmirror.setup.config_sync import ConfigSync
from sparkmirror.setup.flow_admins import FlowAdmins

TIERED = AlterConfigOp("remote.storage.enable", AlterConfigOpType.SET, "true")
LONGER = AlterConfigOp("retention.ms", AlterConfigOpType.SET, "1")
LARGER = AlterConfigOp("segment.bytes", AlterConfigOpType.DELETE)


class Target:
    """A cluster without tiered storage that refuses requests about `forbidden` topics."""

    def __init__(self) -> None:
        self.asked: list[Mapping[str, Sequence[AlterConfigOp]]] = []
        self.is_old = False
        self.forbidden: set[str] = set()

    @property
    def writes(self) -> "Target":
        return self

    def alter_configs(self, changes: Mapping[str, Sequence[AlterConfigOp]]) -> Results:
        if self.is_old and changes:
            raise UnsupportedVersionError("b:9092 does not know IncrementalAlterConfigs")
        self.asked.append({topic: tuple(some) for topic, some in changes.items()})
        return {topic: self._result(topic, some) for topic, some in changes.items()}

    def _result(self, topic: str, some: Sequence[AlterConfigOp]) -> KafkaError | None:
        if topic in self.forbidden:
            return AuthorizationError(f"alter configs of {topic}: TOPIC_AUTHORIZATION_FAILED", 29)
        return KafkaError(f"alter configs of {topic}: no", INVALID_CONFIG) if TIERED in some else None


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
def sync(settings: MirrorSourceSettings, target: Target) -> ConfigSync:
    log = flow_log("tests.config_sync", settings.flow, ConnectorName("mirror"))
    return ConfigSync(settings, cast("FlowAdmins", target), log)


def test_one_config_that_is_refused_does_not_keep_the_others(
    sync: ConfigSync, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    plan = ConfigPlan({"a": (TIERED, LONGER, LARGER), "b": (LONGER,), "c": (TIERED,)})
    sync.apply(plan)
    assert target.asked == [
        plan.changes,
        {"a": (TIERED,)},
        {"a": (LONGER,)},
        {"a": (LARGER,)},
    ]
    assert said(caplog) == [
        "INFO configs of b follow the source again",
        "WARNING remote.storage.enable: alter configs of a: no",
        "WARNING remote.storage.enable: alter configs of c: no",
    ]


def test_a_right_that_is_missing_is_not_asked_for_again_and_again(
    sync: ConfigSync, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    target.forbidden = {"a"}
    sync.apply(ConfigPlan({"a": (LONGER, LARGER)}))
    assert len(target.asked) == 1
    assert said(caplog) == ["WARNING alter configs of a: TOPIC_AUTHORIZATION_FAILED"]


def test_a_problem_is_logged_once_and_again_after_it_was_gone(
    sync: ConfigSync, caplog: pytest.LogCaptureFixture
) -> None:
    refused = ConfigPlan({"a": (TIERED,)})
    for plan in (refused, refused, ConfigPlan(), refused):
        sync.apply(plan)
    assert said(caplog) == ["WARNING remote.storage.enable: alter configs of a: no"] * 2


def test_configs_unknown_to_the_target_are_logged_by_config(
    sync: ConfigSync, caplog: pytest.LogCaptureFixture
) -> None:
    topics = ["e", "d", "c", "b", "a"]
    sync.apply(ConfigPlan(unknown=dict.fromkeys(topics, ("gzip.level",))))
    assert said(caplog) == [
        "WARNING target does not know the config gzip.level, so a, b, c and 2 more can't follow in it"
    ]


def test_brokers_that_are_too_old_are_trouble_until_they_are_not(
    sync: ConfigSync, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    target.is_old = True
    plan = ConfigPlan({"a": (LONGER,), "b": (LONGER,)})
    sync.apply(plan)
    sync.apply(plan)
    reason = "the target cluster 'target' is not compatible with IncrementalAlterConfigs API"
    assert sync.incompatible == reason
    (warning,) = said(caplog)
    assert warning == (
        f"WARNING {reason} (b:9092 does not know IncrementalAlterConfigs), so configs of a, b don't follow "
        "the source: upgrade target to Kafka 2.3 or newer, or set sync.topic.configs.enabled=false"
    )
    target.is_old = False
    sync.apply(plan)
    assert sync.incompatible is None


def test_many_topics_are_logged_in_one_line(sync: ConfigSync, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sync.apply(ConfigPlan({f"{number:03}": (LONGER,) for number in range(100)}))
    assert said(caplog) == ["INFO configs of 100 topics, 000, 001, 002 and 97 more, follow the source again"]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]
