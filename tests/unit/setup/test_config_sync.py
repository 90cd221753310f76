"""Applying plans of topic configs and logging the results, without brokers."""

import logging
from collections.abc import Callable, Mapping, Sequence
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
from sparkmirror.storage.troubles import Troubles

Apply = Callable[[ConfigPlan], None]
TIERED = AlterConfigOp("remote.storage.enable", AlterConfigOpType.SET, "true")
LONGER = AlterConfigOp("retention.ms", AlterConfigOpType.SET, "1")
LARGER = AlterConfigOp("segment.bytes", AlterConfigOpType.DELETE)
WAYS = "needs ALTER_CONFIGS on a: acl; or switch it off: sync.topic.configs.enabled"


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
            return AuthorizationError(
                f"alter configs of {topic}: TOPIC_AUTHORIZATION_FAILED; needs ALTER_CONFIGS on {topic}: acl",
                29,
            )
        return KafkaError(f"alter configs of {topic}: no", INVALID_CONFIG) if TIERED in some else None


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
def sync(settings: MirrorSourceSettings, target: Target) -> ConfigSync:
    log = flow_log("tests.config_sync", settings.flow, ConnectorName("mirror"))
    return ConfigSync(settings, cast("FlowAdmins", target), log)


@pytest.fixture
def apply(sync: ConfigSync, settings: MirrorSourceSettings) -> Apply:
    troubles = Troubles(flow_log("tests.config_sync", settings.flow, ConnectorName("mirror")))

    def applied(plan: ConfigPlan) -> None:
        sync.apply(plan)
        troubles.tell("sync topic configs", sync.troubles)

    return applied


def test_one_config_that_is_refused_does_not_keep_the_others(
    sync: ConfigSync, apply: Apply, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    plan = ConfigPlan({"a": (TIERED, LONGER, LARGER), "b": (LONGER,), "c": (TIERED,)})
    apply(plan)
    assert target.asked == [
        plan.changes,
        {"a": (TIERED,)},
        {"a": (LONGER,)},
        {"a": (LARGER,)},
    ]
    done, differs = said(caplog)
    assert done == "INFO configs of b follow the source again"
    assert differs == (
        f"WARNING {TIERED.name} differs: a, c can't follow the source in {TIERED.name}: "
        f"alter configs of a: no; let target accept it, or add {TIERED.name} to config.properties.exclude"
    )
    assert [(it.word, it.cause.subject, it.requires_action) for it in sync.troubles] == [
        ("differs", "config", False)
    ]


def test_a_right_that_is_missing_is_not_asked_for_again_and_again(
    sync: ConfigSync, apply: Apply, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    target.forbidden = {"a"}
    apply(ConfigPlan({"a": (LONGER, LARGER)}))
    assert len(target.asked) == 1
    assert said(caplog) == [f"WARNING a not synced: alter configs of a: TOPIC_AUTHORIZATION_FAILED; {WAYS}"]
    (trouble,) = sync.troubles
    assert (trouble.requires_action, trouble.remedy) == (True, WAYS)


def test_a_problem_is_logged_once_and_again_after_it_was_gone(
    apply: Apply, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    refused = ConfigPlan({"a": (TIERED,)})
    for plan in (refused, refused, ConfigPlan(), refused):
        apply(plan)
    first, over, again = said(caplog)
    assert first == again
    assert first.startswith("WARNING remote.storage.enable differs: ")
    assert over.startswith("INFO remote.storage.enable differs: over after ")


def test_configs_unknown_to_the_target_are_told_by_config(
    apply: Apply, sync: ConfigSync, caplog: pytest.LogCaptureFixture
) -> None:
    topics = ["g", "f", "e", "d", "c", "b", "a"]
    apply(ConfigPlan(unknown=dict.fromkeys(topics, ("gzip.level",))))
    (warning,) = said(caplog)
    assert warning == (
        "WARNING gzip.level differs: target does not know this config: a, b, c, d, e and 2 more can't follow "
        "the source there; upgrade target, or add gzip.level to config.properties.exclude"
    )
    assert not any(it.requires_action for it in sync.troubles)


def test_brokers_that_are_too_old_are_trouble_until_they_are_not(
    sync: ConfigSync, apply: Apply, target: Target, caplog: pytest.LogCaptureFixture
) -> None:
    target.is_old = True
    plan = ConfigPlan({"a": (LONGER,), "b": (LONGER,)})
    apply(plan)
    apply(plan)
    reason = "the target cluster 'target' is not compatible with IncrementalAlterConfigs API"
    (trouble,) = sync.troubles
    assert (trouble.word, trouble.requires_action) == ("not synced", True)
    assert trouble.reason.startswith(reason)
    (warning,) = said(caplog)
    assert warning == (
        f"WARNING sync topic configs not synced: {reason} (b:9092 does not know IncrementalAlterConfigs); "
        "upgrade target to Kafka 2.3 or newer, or set sync.topic.configs.enabled=false"
    )
    target.is_old = False
    apply(plan)
    assert not sync.troubles


def test_many_topics_are_logged_in_one_line(sync: ConfigSync, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    sync.apply(ConfigPlan({f"{number:03}": (LONGER,) for number in range(100)}))
    assert said(caplog) == ["INFO configs of 100 topics, 000, 001, 002 and 97 more, follow the source again"]


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{record.levelname} {record.getMessage()}" for record in caplog.records]
