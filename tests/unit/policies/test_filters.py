import pytest

from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.filters import (
    DefaultGroupFilter,
    DefaultTopicFilter,
    NameLists,
    impossible_character,
)


@pytest.mark.parametrize("topic", ["orders", "orders.internal", "orders-internal", "us.orders", "heartbeats"])
def test_defaults_select_user_topics_even_with_internal_looking_names(topic: str) -> None:
    assert DefaultTopicFilter().should_replicate(topic)


@pytest.mark.parametrize("topic", ["mm2-offset-syncs.b.internal", "orders.replica", "__consumer_offsets"])
def test_defaults_exclude_internal_topics_and_replicas(topic: str) -> None:
    assert not DefaultTopicFilter().should_replicate(topic)


def test_excludes_take_precedence() -> None:
    chosen = DefaultTopicFilter(["orders.*", "payments"], ["orders-test"])
    assert [t for t in ("orders", "orders-test", "payments", "xorders") if chosen.should_replicate(t)] == [
        "orders",
        "payments",
    ]


def test_empty_topics_selects_none_and_empty_excludes_excludes_none() -> None:
    assert not DefaultTopicFilter([], []).should_replicate("orders")
    assert DefaultTopicFilter([".*"], []).should_replicate("__consumer_offsets")


def test_patterns_match_the_name_on_the_source_cluster() -> None:
    mirrored = DefaultTopicFilter([r"primary\.test-topic-.*"])
    assert mirrored.should_replicate("primary.test-topic-1")
    assert not mirrored.should_replicate("test-topic-1")


def test_error_of_a_bad_pattern_names_its_setting() -> None:
    with pytest.raises(ConfigError, match=r"topics\.exclude"):
        DefaultTopicFilter([".*"], ["("])


@pytest.mark.parametrize(
    ("name", "refused_by"),
    [
        ("orders", None),
        ("orders-7", None),
        ("orders.internal", "topics.exclude (.*[.]internal)"),
        ("pages", "topics"),
        ("an-orders", "topics"),
    ],
)
def test_setting_that_excludes_a_topic_is_reported(name: str, refused_by: str | None) -> None:
    lists = NameLists("topics", ["orders.*", "payments"], ["x", ".*[.]internal"])
    assert lists.refused_by(name) == refused_by
    assert lists.should_replicate(name) is (refused_by is None)


def test_setting_that_excludes_a_topic_or_group_is_reported() -> None:
    assert DefaultTopicFilter().refused_by("__consumer_offsets") == "topics.exclude (__.*)"
    assert DefaultGroupFilter([], []).refused_by("billing") == "groups"
    with pytest.raises(ConfigError, match=r"groups\.exclude"):
        DefaultGroupFilter([".*"], ["("])


def test_literal_names_in_the_list_are_found() -> None:
    lists = NameLists("topics", ["orders", "pay.*", "a.b", ".", "secret", "x|y"], ["secret"])
    assert lists.named == {"orders", "a.b"}


def test_patterns_that_select_nothing_are_found() -> None:
    chosen = DefaultTopicFilter(["orders", r"ordrs\..*", r"bills\..*", "[ab]"])
    assert chosen.matching_none(["orders.eu", "bills.eu", "b"]) == [r"ordrs\..*"]
    assert DefaultTopicFilter().matching_none([]) == [".*"]


@pytest.mark.parametrize(
    ("pattern", "character"),
    [
        ('cluster1.*"', '"'),
        ('"orders', '"'),
        ("my topic", " "),
        ("orders/eu", "/"),
        (r"orders\$", "$"),
        ("a#{1,2}", "#"),
        ('"*.internal', None),
        ('orders"?', None),
        ("x#{0,2}", None),
        (r"orders\.eu", None),
        ('["a]b', None),
        (r"\d+", None),
        ('a"|b', None),
        ('(?!")a', None),
        ("^orders_[0-9]{4}$", None),
        ("", None),
    ],
)
def test_characters_that_no_topic_s_name_has(pattern: str, character: str | None) -> None:
    assert impossible_character(pattern) == character
