"""What the suites find: each broken plug-in here fails the tests that are about its fault, and no other."""

import itertools
import random
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
    """The tests of a suite that fail, without `test_`, and what each says."""
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


class Shouting(DefaultReplicationPolicy):
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return super().format_remote_topic(source_alias, topic.lower())


class Forgetful(DefaultReplicationPolicy):
    def is_internal_topic(self, topic: str) -> bool:
        return topic.startswith("__")


class Secretive(DefaultReplicationPolicy):
    def is_internal_topic(self, topic: str) -> bool:
        return "v1" in topic or super().is_internal_topic(topic)


class OneForAll(DefaultReplicationPolicy):
    def checkpoints_topic(self, source_alias: str) -> str:  # noqa: ARG002
        return "all.checkpoints.internal"


class Spaced(DefaultReplicationPolicy):
    def offset_syncs_topic(self, other_alias: str) -> str:
        return f"mm2 offset syncs {other_alias}.internal"


class Moody(DefaultReplicationPolicy):
    _count = itertools.count()

    def original_topic(self, topic: str) -> str:
        return f"{topic}{next(self._count)}" if topic == "heartbeat" else super().original_topic(topic)


class Endless(DefaultReplicationPolicy):
    def upstream_topic(self, topic: str) -> str | None:
        return f"{topic}+" if not topic.isascii() else super().upstream_topic(topic)

    def original_topic(self, topic: str) -> str:
        return topic if not topic.isascii() else super().original_topic(topic)


class Narrow(DefaultReplicationPolicy):
    def is_heartbeats_topic(self, topic: str) -> bool:
        return topic == "heartbeats"


@pytest.mark.parametrize(
    ("policy", "tests", "says"),
    [
        (Shouting, {"a_remote_name_is_read_back", "no_two_topics_become_one"}, "would both become 'us.a'"),
        (Forgetful, {"state_is_internal"}, "'mm2-offset-syncs.us.internal' would be replicated"),
        (Secretive, {"users_topics_are_not_internal"}, "'orders.v1' would never be replicated"),
        (OneForAll, {"state_of_two_clusters_is_kept_apart"}, "have the same name"),
        (Spaced, {"names_are_those_that_kafka_allows"}, "is no topic's name"),
        (Moody, {"it_always_answers_alike"}, "of 'heartbeat'"),
        (Endless, {"it_answers_whatever_it_is_asked"}, "leads to ever other names"),
        (Narrow, {"heartbeats_are_replicated"}, "'us.heartbeats' holds heartbeats"),
    ],
)
def test_broken_policies(policy: type, tests: set[str], says: str) -> None:
    found = failed(policy_suite(policy))
    assert found.keys() == tests
    assert says in " ".join(found.values())


def test_a_policy_whose_flags_are_wrong_fails() -> None:
    assert failed(policy_suite(IdentityReplicationPolicy)).keys() == {
        "a_name_tells_every_cluster_it_came_through",
        "no_two_topics_become_one",
    }
    assert failed(policy_suite(DefaultReplicationPolicy, names_source=False)).keys() == {
        "a_name_tells_every_cluster_it_came_through"
    }
    assert failed(policy_suite(DefaultReplicationPolicy, names_upstream=False)).keys() == {
        "a_remote_name_is_read_back",
        "a_topic_of_this_cluster_is_its_own_original",
    }


class Dice(DefaultTopicFilter):
    def should_replicate(self, topic: str) -> bool:
        return bool(random.getrandbits(1)) if topic == "orders.v1" else super().should_replicate(topic)


class Once(DefaultTopicFilter):
    """Wants what it has not been asked yet."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        super().__init__(properties)
        self._seen: set[str] = set()

    def should_replicate(self, topic: str) -> bool:
        is_new = topic[:1] not in self._seen
        self._seen.add(topic[:1])
        return is_new


class Fragile(DefaultTopicFilter):
    def should_replicate(self, topic: str) -> bool:
        return topic[0] == "o"


def test_broken_filters() -> None:
    told = {"wanted": ("orders",), "unwanted": ("payments",)}
    assert "it_always_answers_alike" in failed(
        type("S", (TopicFilterContract,), {"filter_class": Once, **told})
    )
    fragile = failed(type("S", (TopicFilterContract,), {"filter_class": Fragile, **told}))
    assert fragile.keys() == {"it_answers_whatever_it_is_asked", "it_always_answers_alike"}
    assert "Fragile.should_replicate('') raised IndexError" in fragile["it_answers_whatever_it_is_asked"]
    lazy = type("S", (GroupFilterContract,), {"filter_class": Fragile, "wanted": (), "unwanted": ()})
    assert {"it_selects_what_is_wanted", "it_leaves_out_what_is_not"} <= failed(lazy).keys()


class Deaf(ForwardingAdmin):
    def create_topics(self, topics: Sequence[TopicCreation]) -> Results:  # noqa: ARG002
        return {}


class Eager(ForwardingAdmin):
    def grow_topics(self, counts: Mapping[str, int]) -> Results:
        return self.delegate.grow_topics({**counts, "audit": 1})


class Brittle(ForwardingAdmin):
    def create_topics(self, topics: Sequence[TopicCreation]) -> Results:
        try:
            return super().create_topics(topics)
        except Exception as error:
            raise RuntimeError("no cluster") from error


def test_broken_admins() -> None:
    def found(kind: type) -> dict[str, str]:
        return failed(type("S", (ForwardingAdminContract,), {"admin_class": kind}))

    assert found(ForwardingAdmin) == {}
    assert found(Deaf) == {
        "it_does_what_it_is_asked": "create_topics: ['Deaf.create_topics returned no result for orders']"
    }
    assert found(Eager).keys() == {
        "it_asks_for_nothing_unasked",
        "it_tells_of_what_it_was_asked_and_nothing_else",
    }
    assert found(Brittle).keys() == {"a_cluster_that_is_away_is_no_crash"}
