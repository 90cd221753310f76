"""The configs that a target refuses when topics are created, found by asking."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pytest

from sparkmirror.domain.errors import AuthorizationError, KafkaError
from sparkmirror.domain.topics import TopicCreation
from sparkmirror.kafka.wire.error_codes import (
    INVALID_CONFIG,
    INVALID_REPLICATION_FACTOR,
    POLICY_VIOLATION,
    THROTTLING_QUOTA_EXCEEDED,
)
from sparkmirror.policies.admin_writes import Results
from sparkmirror.setup.refused_configs import RefusedConfigs, TopicCreations, created_without

Configs = Mapping[str, str]
TIERED: Final = {"cleanup.policy": "delete", "remote.storage.enable": "true", "retention.ms": "600000"}


@dataclass
class Target:
    """A cluster that judges the configs of topics, and that counts what it is asked."""

    judge: Callable[[Configs], int]
    made: dict[str, Configs] = field(default_factory=dict)
    asked: int = 0

    def create(self, topics: Sequence[TopicCreation]) -> Results:
        results = self._results(topics)
        self.made |= {topic.name: topic.configs for topic in topics if results[topic.name] is None}
        return results

    def check(self, topics: Sequence[TopicCreation]) -> Results:
        self.asked += 1
        return self._results(topics)

    def _results(self, topics: Sequence[TopicCreation]) -> Results:
        codes = {topic.name: self.judge(topic.configs) for topic in topics}
        return {name: KafkaError(f"{name}: no", code) if code else None for name, code in codes.items()}


def topic(configs: Configs, name: str = "t") -> TopicCreation:
    return TopicCreation(name, 1, 1, configs)


def created(target: Target, *topics: TopicCreation) -> tuple[Results, RefusedConfigs]:
    return TopicCreations(target.create, target.check).create(topics)


def refuses(*names: str) -> Callable[[Configs], int]:
    return lambda configs: INVALID_CONFIG if any(name in configs for name in names) else 0


def limited_together(configs: Configs) -> int:
    """The limit is like local retention's with tiered storage: at most retention, which has a default."""
    if "remote.storage.enable" in configs and "local.retention.ms" in configs:
        allowed = "retention.ms" in configs
        return (
            0 if allowed and "segment.bytes" not in configs and "flush.ms" not in configs else INVALID_CONFIG
        )
    return INVALID_CONFIG if {"segment.bytes", "flush.ms"} & configs.keys() else 0


def needs_retention(configs: Configs) -> int:
    return POLICY_VIOLATION if "retention.ms" not in configs or "segment.bytes" in configs else 0


@pytest.mark.parametrize(
    ("judge", "configs", "left_out"),
    [
        pytest.param(refuses("remote.storage.enable"), TIERED, {"remote.storage.enable"}, id="one"),
        pytest.param(refuses("a", "c"), {"a": "1", "b": "2", "c": "3"}, {"a", "c"}, id="several"),
        pytest.param(refuses("a", "b"), {"a": "1", "b": "2"}, {"a", "b"}, id="all"),
        pytest.param(
            needs_retention,
            {"cleanup.policy": "delete", "retention.ms": "1", "segment.bytes": "1"},
            {"segment.bytes"},
            id="a policy that also wants one to be there",
        ),
        pytest.param(
            limited_together,
            {
                "flush.ms": "1",
                "local.retention.ms": "8",
                "remote.storage.enable": "true",
                "retention.ms": "9",
                "segment.bytes": "1",
            },
            {"flush.ms", "segment.bytes"},
            id="one is accepted only beside a later one",
        ),
    ],
)
def test_refused_configs_are_left_out_and_no_others(
    judge: Callable[[Configs], int], configs: Configs, left_out: set[str]
) -> None:
    target = Target(judge)
    results, refused = created(target, topic(configs))
    assert results == {"t": None}
    assert refused["t"].keys() == left_out
    assert target.made["t"] == {name: value for name, value in configs.items() if name not in left_out}
    assert target.asked <= 2 + 3 * len(configs)


@pytest.mark.parametrize(
    "judge",
    [
        pytest.param(lambda _: POLICY_VIOLATION, id="whatever its configs"),
        pytest.param(lambda _: INVALID_REPLICATION_FACTOR, id="no config"),
    ],
)
def test_a_refusal_that_no_config_explains_stays(judge: Callable[[Configs], int]) -> None:
    target = Target(judge)
    results, refused = created(target, topic(TIERED))
    assert (str(results["t"]), refused, target.made) == ("t: no", {}, {})


def test_a_topic_without_configs_is_not_asked_about() -> None:
    target = Target(lambda _: POLICY_VIOLATION)
    created(target, topic({}))
    assert target.asked == 0


def test_one_topic_does_not_keep_others_back() -> None:
    target = Target(refuses("remote.storage.enable"))
    results, refused = created(target, topic(TIERED, "tier"), topic({"retention.ms": "1"}, "plain"))
    assert results == {"tier": None, "plain": None}
    assert refused.keys() == {"tier"}
    assert target.made["plain"] == {"retention.ms": "1"}


def test_the_answers_serve_all_topics() -> None:
    """A thousand topics with the same configs cost no more than one, other configs one question more."""
    target = Target(refuses("remote.storage.enable"))
    creations = TopicCreations(target.create, target.check)
    creations.create([topic(TIERED, f"t{number}") for number in range(1000)])
    assert (len(target.made), target.asked) == (1000, 3)
    creations.create([topic({**TIERED, "retention.ms": str(number)}, f"r{number}") for number in range(50)])
    assert (len(target.made), target.asked) == (1050, 3 + 2 * 50)


def test_there_are_not_too_many_questions_at_a_time() -> None:
    target = Target(refuses("remote.storage.enable"))
    creations = TopicCreations(target.create, target.check)
    topics = [topic({**TIERED, "retention.ms": str(number)}, f"r{number}") for number in range(150)]
    results, _ = creations.create(topics)
    assert target.asked == 200
    left = [each for each in topics if results[each.name] is not None]
    assert 0 < len(left) < 150
    results, _ = creations.create(left)
    assert set(results.values()) == {None}


def test_a_target_that_judges_otherwise_than_before_is_asked_again() -> None:
    target = Target(refuses("a"))
    creations = TopicCreations(target.create, target.check)
    creations.create([topic({"a": "1", "b": "2"}, "before")])
    target.judge = refuses("b")
    creations.create([topic({"a": "1", "b": "2"}, "tried")])
    creations.create([topic({"a": "1", "b": "2"}, "after")])
    assert target.made == {"before": {"b": "2"}, "after": {"a": "1"}}


def test_a_plugin_that_refuses_what_brokers_accept_is_believed() -> None:
    brokers, plugin = Target(lambda _: 0), Target(lambda _: POLICY_VIOLATION)
    results, refused = TopicCreations(plugin.create, brokers.check).create([topic(TIERED)])
    assert (str(results["t"]), refused) == ("t: no", {})


def test_a_quota_that_keeps_questions_back_is_the_result() -> None:
    """So that the creation is tried again soon."""
    refusing, throttled = Target(refuses("retention.ms")), Target(lambda _: THROTTLING_QUOTA_EXCEEDED)
    results, _ = TopicCreations(refusing.create, throttled.check).create([topic(TIERED)])
    error = results["t"]
    assert error is not None
    assert error.code == THROTTLING_QUOTA_EXCEEDED


def test_a_right_that_questions_lack_changes_no_result() -> None:
    def check(topics: Sequence[TopicCreation]) -> Results:
        return {each.name: AuthorizationError("CREATE", 29) for each in topics}

    results, _ = TopicCreations(Target(refuses("retention.ms")).create, check).create([topic(TIERED)])
    assert str(results["t"]) == "t: no"


def test_topics_are_named_by_config() -> None:
    error = KafkaError("create topic t0 on far: INVALID_CONFIG (no)", INVALID_CONFIG)
    refused = {f"t{number}": {"a": error} for number in range(7)} | {"t0": {"a": error, "b": error}}
    assert list(created_without(refused)) == [
        ("a", f"t0, t1, t2, t3, t4 and 2 more are created without the config a: {error}"),
        ("b", f"t0 is created without the config b: {error}"),
    ]
