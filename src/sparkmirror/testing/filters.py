"""Tests for filter plug-ins."""

from collections.abc import Mapping, Sequence
from typing import ClassVar

from sparkmirror.config.plugin_points import CONFIG_PROPERTY_FILTER, GROUP_FILTER, TOPIC_FILTER
from sparkmirror.config.properties import Properties
from sparkmirror.policies.config_filter import ConfigPropertyFilter
from sparkmirror.policies.filters import GroupFilter, TopicFilter
from sparkmirror.testing.policies import ODD, TOPICS


class _NameFilterContract:
    """Tests a filter of names. Set `filter_class`, and names that these `properties` select and exclude."""

    filter_class: ClassVar[type]
    properties: ClassVar[Mapping[str, str]] = {}
    wanted: ClassVar[Sequence[str]]
    unwanted: ClassVar[Sequence[str]]

    def filter(self) -> TopicFilter | GroupFilter:
        raise NotImplementedError

    def test_wanted_names_are_selected(self) -> None:
        made = self.filter()
        for name in self.wanted:
            assert made.should_replicate(name), f"{name!r} is wanted"
        assert self.wanted, "set at least one name that is wanted"

    def test_unwanted_names_are_excluded(self) -> None:
        made = self.filter()
        for name in self.unwanted:
            assert not made.should_replicate(name), f"{name!r} is not wanted"
        assert self.unwanted, "set at least one name that is not wanted"

    def test_unusual_names_raise_no_error(self) -> None:
        made = self.filter()
        for name in (*TOPICS, *ODD):
            made.should_replicate(name)

    def test_equal_calls_return_equal_results(self) -> None:
        one, other = self.filter(), self.filter()
        names = (*self.wanted, *self.unwanted, *TOPICS, *ODD)
        forwards = {name: one.should_replicate(name) for name in names}
        backwards = {name: other.should_replicate(name) for name in reversed(names)}
        assert forwards == backwards, "results must not depend on earlier calls"


class TopicFilterContract(_NameFilterContract):
    """Tests a plug-in for `topic.filter.class`. Set `filter_class`, `wanted`, `unwanted` and `properties`."""

    def filter(self) -> TopicFilter:
        kind = self.filter_class
        return TOPIC_FILTER.made(kind, kind.__name__, Properties(self.properties))


class GroupFilterContract(_NameFilterContract):
    """Tests a plug-in for `group.filter.class`. Set `filter_class`, `wanted`, `unwanted` and `properties`."""

    def filter(self) -> GroupFilter:
        kind = self.filter_class
        return GROUP_FILTER.made(kind, kind.__name__, Properties(self.properties))


class ConfigPropertyFilterContract:
    """Tests a plug-in for `config.property.filter.class`. Set `filter_class`, `replicated` and `excluded`."""

    filter_class: ClassVar[type]
    properties: ClassVar[Mapping[str, str]] = {}
    replicated: ClassVar[Sequence[str]]
    excluded: ClassVar[Sequence[str]]

    def filter(self) -> ConfigPropertyFilter:
        kind = self.filter_class
        return CONFIG_PROPERTY_FILTER.made(kind, kind.__name__, Properties(self.properties))

    def test_configs_are_replicated_or_excluded(self) -> None:
        made = self.filter()
        for name in self.replicated:
            assert made.should_replicate_config_property(name), f"{name!r} is to be replicated"
        for name in self.excluded:
            assert not made.should_replicate_config_property(name), f"{name!r} must be excluded"
        assert self.replicated, "set at least one config that is replicated"
        assert self.excluded, "set at least one config that is excluded"

    def test_equal_calls_return_equal_results(self) -> None:
        one, other = self.filter(), self.filter()
        for name in (*self.replicated, *self.excluded, "cleanup.policy", "", "x" * 300, "no.such.config"):
            here = one.should_replicate_config_property(name), one.should_replicate_source_default(name)
            there = other.should_replicate_config_property(name), other.should_replicate_source_default(name)
            assert here == there, f"of {name!r}"
