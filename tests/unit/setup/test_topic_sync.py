"""Applying plans of topics and logging the results, without brokers."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import Alias, ConnectorName
from sparkmirror.domain.topics import ConfigEntry, ListedTopic, TopicCreation, TopicListing
from sparkmirror.kafka.admin.admin import TopicConfigs
from sparkmirror.kafka.wire.error_codes import INVALID_CONFIG
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.policies.admin_writes import Results
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.topic_plan import GrowTopic, TopicPlan, throttled_creation
from sparkmirror.setup.topic_sync import TopicSync


@dataclass
class Side:
    """A cluster that refuses requests about `refused` topics and returns no configs of `secret` ones."""

    topics: TopicListing
    refused: set[str] = field(default_factory=set)
    code: int = 0
    refused_config: str = ""
    secret: set[str] = field(default_factory=set)
    configs: tuple[ConfigEntry, ...] = ()
    asked: list[str] = field(default_factory=list)

    def listing(self) -> TopicListing:
        return self.topics

    def known_topic_configs(self, topics: Sequence[str]) -> TopicConfigs:
        self.asked += topics
        untold = {topic: KafkaError(f"{topic} is secret") for topic in topics if topic in self.secret}
        return TopicConfigs({topic: self.configs for topic in topics if topic not in untold}, untold)

    def create_topics(self, topics: Sequence[TopicCreation]) -> Results:
        if self.refused_config:
            return {
                topic.name: KafkaError(f"not {topic.name}", INVALID_CONFIG)
                if self.refused_config in topic.configs
                else None
                for topic in topics
            }
        return self._results([topic.name for topic in topics])

    def grow_topics(self, counts: Mapping[str, int]) -> Results:
        return self._results(list(counts))

    def _results(self, names: Sequence[str]) -> Results:
        self.asked += names
        return {
            name: KafkaError(f"not {name}", self.code) if name in self.refused else None for name in names
        }


@dataclass
class Admins:
    source: Side
    target: Side

    @property
    def writes(self) -> Side:
        return self.target

    @property
    def checks(self) -> Side:
        return self.target


def listing(**counts: int) -> TopicListing:
    return TopicListing({name.replace("__", "."): ListedTopic(count) for name, count in counts.items()})


@pytest.fixture
def sides() -> Admins:
    return Admins(Side(listing(orders=5)), Side(listing(source__orders=3)))


@pytest.fixture
def sync(settings: MirrorSourceSettings, sides: Admins) -> TopicSync:
    log = flow_log("tests.topic_sync", settings.flow, ConnectorName("mirror"))
    return TopicSync(settings, cast("FlowAdmins", sides), log)


def test_partitions_that_can_t_be_created_wait_and_are_logged_once(
    sync: TopicSync, sides: Admins, caplog: pytest.LogCaptureFixture
) -> None:
    sides.target.refused = {"source.orders"}
    planned = sync.plan()
    assert planned.plan == TopicPlan(grows=(GrowTopic("source.orders", 5, "orders", 3),))
    assert sync.apply(planned.plan) == {}
    assert sync.plan() is planned
    assert sync.apply(planned.plan) == {}
    assert sides.target.asked == ["source.orders"], "asked again soon, without anything new"
    sides.source.topics = listing(orders=5, more=1)
    assert sync.apply(sync.plan().plan) == {"source.more": 1}
    assert caplog.messages == ["not source.orders; partitions 3 to 4 of orders wait for it"]
    assert sync.has_problems
    sides.target.topics = listing(source__orders=5, source__more=1)
    assert sync.apply(sync.plan().plan) == {}
    assert not sync.has_problems


def test_configs_are_asked_for_only_of_what_is_new(sync: TopicSync, sides: Admins) -> None:
    sides.source.topics = listing(orders=3, new=1)
    sync.apply(sync.plan().plan)
    assert sides.source.asked == ["new"]
    sides.target.topics = listing(source__orders=3, source__new=1)
    for _ in range(3):
        sync.apply(sync.plan().plan)
    assert sides.source.asked == ["new"]


def test_thousands_of_topics_are_logged_in_one_line(
    sync: TopicSync, sides: Admins, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sides.source.topics = listing(**{f"t{number:04}": 1 for number in range(3000)})
    sides.target.topics = listing(**{f"source__gone{number:04}": 1 for number in range(3000)})
    assert len(sync.apply(sync.plan().plan)) == 3000
    assert len(caplog.messages) == 22
    assert "created 3000 topics on target, source.t0000 to source.t2999" in caplog.messages
    assert caplog.messages[-1] == "similar problems of 2980 more topics"
    assert sync.plan() is sync.plan()


def test_what_was_made_is_not_made_again_while_brokers_do_not_list_it(sync: TopicSync, sides: Admins) -> None:
    sides.source.topics = listing(orders=3, one=1, two=2)
    assert sync.apply(sync.plan().plan) == {"source.one": 1, "source.two": 2}
    sides.target.topics = listing(source__orders=3, source__one=1)
    planned = sync.plan()
    assert (planned.plan, planned.target) == (TopicPlan(), {"source.orders": 3, "source.one": 1})
    assert sync.awaits_more(0.0)
    sides.target.topics = listing(source__orders=3, source__one=1, source__two=2)
    assert sync.plan().plan == TopicPlan()
    assert not sync.awaits_more(1.0)
    assert sides.target.asked == ["source.one", "source.two"]


def test_a_topic_whose_configs_are_secret_keeps_no_other_back(
    sync: TopicSync, sides: Admins, caplog: pytest.LogCaptureFixture
) -> None:
    sides.source.topics = listing(orders=3, payments=1, salaries=1)
    sides.source.secret = {"salaries"}
    assert sync.apply(sync.plan().plan) == {"source.payments": 1}
    assert caplog.messages == ["salaries is secret"]
    assert sync.has_problems


def test_topics_are_created_without_a_config_that_the_target_refuses(
    sync: TopicSync, sides: Admins, caplog: pytest.LogCaptureFixture
) -> None:
    sides.source.topics = listing(orders=3, more=1, other=1)
    sides.source.configs = (ConfigEntry("remote.storage.enable", "true"), ConfigEntry("retention.ms", "5"))
    sides.target.refused_config = "remote.storage.enable"
    planned = sync.plan().plan
    assert sync.apply(planned) == {"source.more": 1, "source.other": 1}
    assert caplog.messages == [
        "source.more, source.other are created without the config remote.storage.enable: not source.more"
    ]
    assert not sync.has_problems


def test_topics_that_a_quota_lets_through_one_by_one_are_copied_as_they_come(
    sync: TopicSync, sides: Admins, caplog: pytest.LogCaptureFixture
) -> None:
    """One reason is one line, and no problem; copying begins every ten seconds with those that are there."""
    caplog.set_level(logging.INFO)
    names = [f"t{number:03}" for number in range(200)]
    sides.source.topics = listing(**dict.fromkeys(names, 2))
    sides.target.topics = listing(source__t000=2)
    sides.target.refused, sides.target.code = {f"source.{name}" for name in names[2:]}, 89
    assert sync.apply(sync.plan().plan) == {"source.t001": 2}
    assert throttled_creation(Alias("target")) in caplog.messages
    assert len(caplog.messages) == 2
    assert not sync.has_problems
    sides.target.topics = listing(source__t000=2, source__t001=2)
    sides.target.refused = {f"source.{name}" for name in names[3:]}
    assert sync.apply(sync.plan().plan) == {"source.t002": 2}
    waits = [sync.awaits_more(float(now)) for now in range(24)]
    assert [now for now, wait in enumerate(waits) if not wait] == [10, 21]
    sides.target.topics = listing(**{f"source__{name}": 2 for name in names})
    assert sync.apply(sync.plan().plan) == {}
    assert not sync.awaits_more(24.0)
