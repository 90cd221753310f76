"""Each broken plug-in fails exactly the tests of its suite that cover its fault."""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from sparkmirror.plugins import (
    DefaultReplicationPolicy,
    DefaultTopicFilter,
    ForwardingAdmin,
    IdentityReplicationPolicy,
    Results,
    TopicCreation,
)
from sparkmirror.testing import (
    ForwardingAdminContract,
    GroupFilterContract,
    ReplicationPolicyContract,
    TopicFilterContract,
)


def failed(suite: type) -> dict[str, str]:
    """Run a suite; returns the failed tests without `test_`, with their messages."""
    found = {}
    for name in dir(suite):
        if name.startswith("test_"):
            try:
                getattr(suite(), name)()
            except Exception as error:  # noqa: BLE001 - whatever a test raises, it failed
                found[name.removeprefix("test_")] = str(error)
    return found


def policy_suite(policy: type, **more: Any) -> type:
    return type("Suite", (ReplicationPolicyContract,), {"policy_class": policy, **more})


class LowerCasePolicy(DefaultReplicationPolicy):
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias, topic.lower())


class NoInternalTopicsPolicy(DefaultReplicationPolicy):
    def is_internal_topic(self, topic: str) -> bool:
        return topic.startswith("__")


class InternalUserTopicsPolicy(DefaultReplicationPolicy):
    def is_internal_topic(self, topic: str) -> bool:
        return "v1" in topic or super().is_internal_topic(topic)


class SharedCheckpointsPolicy(DefaultReplicationPolicy):
    def checkpoints_topic(self, source_alias: str) -> str:  # noqa: ARG002
        return "all.checkpoints.internal"


class IllegalNamesPolicy(DefaultReplicationPolicy):
    def offset_syncs_topic(self, other_alias: str) -> str:
        return f"mm2 offset syncs {other_alias}.internal"


class InconsistentPolicy(DefaultReplicationPolicy):
    _count = itertools.count()

    def original_topic(self, topic: str) -> str:
        return f"{topic}{next(self._count)}" if topic == "heartbeat" else super().original_topic(topic)


class EndlessUpstreamsPolicy(DefaultReplicationPolicy):
    def upstream_topic(self, topic: str) -> str | None:
        return f"{topic}+" if not topic.isascii() else super().upstream_topic(topic)

    def original_topic(self, topic: str) -> str:
        return topic if not topic.isascii() else super().original_topic(topic)


class LocalHeartbeatsPolicy(DefaultReplicationPolicy):
    def is_heartbeats_topic(self, topic: str) -> bool:
        return topic == "heartbeats"


@pytest.mark.parametrize(
    ("policy", "tests", "says"),
    [
        (
            LowerCasePolicy,
            {"remote_topic_name_is_parsed_back", "remote_topic_names_are_distinct"},
            "would both become 'us.a'",
        ),
        (
            NoInternalTopicsPolicy,
            {"state_topics_are_internal"},
            "'mm2-offset-syncs.us.internal' would be replicated",
        ),
        (InternalUserTopicsPolicy, {"user_topics_are_not_internal"}, "'orders.v1' would never be replicated"),
        (SharedCheckpointsPolicy, {"state_topics_of_two_clusters_are_distinct"}, "have the same name"),
        (IllegalNamesPolicy, {"names_are_legal_topic_names"}, "is no topic's name"),
        (InconsistentPolicy, {"equal_calls_return_equal_results"}, "of 'heartbeat'"),
        (EndlessUpstreamsPolicy, {"unusual_names_raise_no_error"}, "leads to ever other names"),
        (LocalHeartbeatsPolicy, {"heartbeats_are_replicated"}, "'us.heartbeats' holds heartbeats"),
    ],
)
def test_broken_policy_fails_the_tests_of_its_fault(policy: type, tests: set[str], says: str) -> None:
    found = failed(policy_suite(policy))
    assert found.keys() == tests
    assert says in " ".join(found.values())


def test_policy_with_wrong_flags_fails() -> None:
    assert failed(policy_suite(IdentityReplicationPolicy)).keys() == {
        "remote_topic_name_shows_every_source_cluster",
        "remote_topic_names_are_distinct",
    }
    assert failed(policy_suite(DefaultReplicationPolicy, names_source=False)).keys() == {
        "remote_topic_name_shows_every_source_cluster"
    }
    assert failed(policy_suite(DefaultReplicationPolicy, names_upstream=False)).keys() == {
        "remote_topic_name_is_parsed_back",
        "original_topic_of_a_local_topic_is_itself",
    }


class FirstCallFilter(DefaultTopicFilter):
    """Selects a name at its first call only."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__(properties)
        self._seen: set[str] = set()

    def should_replicate(self, topic: str) -> bool:
        is_new = topic[:1] not in self._seen
        self._seen.add(topic[:1])
        return is_new


class IndexErrorFilter(DefaultTopicFilter):
    def should_replicate(self, topic: str) -> bool:
        return topic[0] == "o"


def test_broken_filter_fails_the_tests_of_its_fault() -> None:
    names = {"wanted": ("orders",), "unwanted": ("payments",)}
    assert "equal_calls_return_equal_results" in failed(
        type("S", (TopicFilterContract,), {"filter_class": FirstCallFilter, **names})
    )
    failing = failed(type("S", (TopicFilterContract,), {"filter_class": IndexErrorFilter, **names}))
    assert failing.keys() == {"unusual_names_raise_no_error", "equal_calls_return_equal_results"}
    assert (
        "IndexErrorFilter.should_replicate('') raised IndexError" in failing["unusual_names_raise_no_error"]
    )
    without_names = type(
        "S", (GroupFilterContract,), {"filter_class": IndexErrorFilter, "wanted": (), "unwanted": ()}
    )
    assert {"wanted_names_are_selected", "unwanted_names_are_excluded"} <= failed(without_names).keys()


class IdleAdmin(ForwardingAdmin):
    def create_topics(self, topics: Sequence[TopicCreation]) -> Results:  # noqa: ARG002
        return {}


class UnrequestedAdmin(ForwardingAdmin):
    def grow_topics(self, counts: Mapping[str, int]) -> Results:
        return self.delegate.grow_topics({**counts, "audit": 1})


class RuntimeErrorAdmin(ForwardingAdmin):
    def create_topics(self, topics: Sequence[TopicCreation]) -> Results:
        try:
            return super().create_topics(topics)
        except Exception as error:
            raise RuntimeError("no cluster") from error


def test_broken_admin_fails_the_tests_of_its_fault() -> None:
    def found(kind: type) -> dict[str, str]:
        return failed(type("S", (ForwardingAdminContract,), {"admin_class": kind}))

    assert found(ForwardingAdmin) == {}
    assert found(IdleAdmin) == {
        "every_request_succeeds": "create_topics: ['IdleAdmin.create_topics returned no result for orders']"
    }
    assert found(UnrequestedAdmin).keys() == {
        "empty_requests_write_nothing",
        "results_are_those_of_the_requested_items",
    }
    assert found(RuntimeErrorAdmin).keys() == {"unreachable_cluster_raises_only_kafka_errors"}
