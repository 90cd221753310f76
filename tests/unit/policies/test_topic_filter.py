import pytest

from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.topic_filter import DefaultTopicFilter


@pytest.mark.parametrize("topic", ["orders", "orders.internal", "orders-internal", "us.orders", "heartbeats"])
def test_defaults_take_user_topics_even_if_they_look_internal(topic: str) -> None:
    assert DefaultTopicFilter().should_replicate(topic)


@pytest.mark.parametrize("topic", ["mm2-offset-syncs.b.internal", "orders.replica", "__consumer_offsets"])
def test_defaults_leave_out_internal_topics_and_replicas(topic: str) -> None:
    assert not DefaultTopicFilter().should_replicate(topic)


def test_excludes_win() -> None:
    chosen = DefaultTopicFilter(["orders.*", "payments"], ["orders-test"])
    assert [t for t in ("orders", "orders-test", "payments", "xorders") if chosen.should_replicate(t)] == [
        "orders",
        "payments",
    ]


def test_no_topics_is_nothing_and_no_excludes_is_no_limit() -> None:
    assert not DefaultTopicFilter([], []).should_replicate("orders")
    assert DefaultTopicFilter([".*"], []).should_replicate("__consumer_offsets")


def test_patterns_see_the_name_on_the_source_cluster() -> None:
    mirrored = DefaultTopicFilter([r"primary\.test-topic-.*"])
    assert mirrored.should_replicate("primary.test-topic-1")
    assert not mirrored.should_replicate("test-topic-1")


def test_a_bad_pattern_names_its_list() -> None:
    with pytest.raises(ConfigError, match=r"topics\.exclude"):
        DefaultTopicFilter([".*"], ["("])
