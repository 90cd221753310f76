import pytest

from sparkmirror.domain.errors import ConfigError
from sparkmirror.policies.group_filter import DefaultGroupFilter
from sparkmirror.policies.name_lists import NameLists
from sparkmirror.policies.topic_filter import DefaultTopicFilter


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
def test_the_setting_that_keeps_a_name_away_is_named(name: str, refused_by: str | None) -> None:
    lists = NameLists("topics", ["orders.*", "payments"], ["x", ".*[.]internal"])
    assert lists.refused_by(name) == refused_by
    assert lists.selects(name) is (refused_by is None)


def test_both_filters_name_theirs() -> None:
    assert DefaultTopicFilter().refused_by("__consumer_offsets") == "topics.exclude (__.*)"
    assert DefaultGroupFilter([], []).refused_by("billing") == "groups"
    with pytest.raises(ConfigError, match=r"groups\.exclude"):
        DefaultGroupFilter([".*"], ["("])


def test_names_that_stand_in_the_list_themselves() -> None:
    lists = NameLists("topics", ["orders", "pay.*", "a.b", ".", "secret", "x|y"], ["secret"])
    assert lists.named == {"orders", "a.b"}
