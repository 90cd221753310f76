"""Applying plans of topics and logging the results, without brokers."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

import pytest

from sparkmirror.domain.errors import AuthorizationError, KafkaError, PluginError
from sparkmirror.domain.ids import Alias, ConnectorName
from sparkmirror.domain.topics import ConfigEntry, ListedTopic, TopicCreation, TopicListing
from sparkmirror.domain.troubles import by_cause, trouble_lines
from sparkmirror.kafka.admin.admin import TopicConfigs
from sparkmirror.kafka.wire.error_codes import INVALID_CONFIG
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.policies.admin_writes import Results
from sparkmirror.policies.replication import DefaultReplicationPolicy
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.setup.topic_plan import GrowTopic, TopicPlan, throttled_creation
from sparkmirror.setup.topic_sync import TopicSync


@dataclass
class Side:
    """A cluster that refuses requests about `refused` topics and returns no configs of `secret` ones."""

    topics: TopicListing
    refused: set[str] = field(default_factory=set)
    errors: dict[str, KafkaError] = field(default_factory=dict)
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
            name: KafkaError(f"not {name}", self.code) if name in self.refused else self.errors.get(name)
            for name in names
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


def test_partitions_that_can_t_be_created_are_a_trouble_until_they_can(
    sync: TopicSync, sides: Admins
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
    (trouble,) = sync.troubles
    assert (trouble.what, trouble.word, trouble.partitions) == ("orders", "not grown", (3, 5))
    (line,) = trouble_lines(sync.troubles)
    assert line.startswith("orders (partitions 3 to 4) not grown: not source.orders; correct what it names")
    assert sync.has_problems
    sides.target.topics = listing(source__orders=5, source__more=1)
    assert sync.apply(sync.plan().plan) == {}
    assert not sync.has_problems
    assert not sync.troubles


def test_copies_of_the_source_on_the_source_are_named_once(
    sync: TopicSync, sides: Admins, caplog: pytest.LogCaptureFixture
) -> None:
    sides.source.topics = listing(orders=3, source__orders=3)
    for _ in range(2):
        sync.apply(sync.plan().plan)
        sides.source.topics = listing(orders=3, source__orders=3, more=1)
    told = [text for text in caplog.messages if "has the name of a copy from source" in text]
    assert [text.partition(":")[0] for text in told] == ["source.orders on source"]


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


def test_a_grown_topic_is_logged_with_its_partitions(
    sync: TopicSync, sides: Admins, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    sides.source.topics = listing(orders=5, more=2)
    sync.apply(sync.plan().plan)
    assert caplog.messages == [
        "created source.more on target",
        "grew source.orders on target to 5 partitions",
    ]


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


def test_a_topic_whose_configs_are_secret_keeps_no_other_back(sync: TopicSync, sides: Admins) -> None:
    sides.source.topics = listing(orders=3, payments=1, salaries=1)
    sides.source.secret = {"salaries"}
    assert sync.apply(sync.plan().plan) == {"source.payments": 1}
    assert [(it.what, it.word, it.reason) for it in sync.troubles] == [
        ("salaries", "not created", "salaries is secret")
    ]
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
    assert caplog.messages == ["created source.t001 on target"]
    (cause,) = by_cause(sync.troubles)
    assert (cause.word, cause.reason) == ("throttled", throttled_creation(Alias("target")))
    assert len(sync.troubles) == 198
    assert not sync.has_problems
    sides.target.topics = listing(source__t000=2, source__t001=2)
    sides.target.refused = {f"source.{name}" for name in names[3:]}
    assert sync.apply(sync.plan().plan) == {"source.t002": 2}
    waits = [sync.awaits_more(float(now)) for now in range(24)]
    assert [now for now, wait in enumerate(waits) if not wait] == [10, 21]
    sides.target.topics = listing(**{f"source__{name}": 2 for name in names})
    assert sync.apply(sync.plan().plan) == {}
    assert not sync.awaits_more(24.0)


FACTOR = (
    "set source->target.replication.factor to what the brokers of target allow, or to -1 for their default"
)


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (
            KafkaError("create topic {}: INVALID_REPLICATION_FACTOR (3 times)", 38),
            FACTOR,
        ),
        (
            AuthorizationError(
                "create topic {}: DENIED; needs CREATE on topic {}: kafka-acls.sh --topic {}", 29
            ),
            "needs CREATE on topic {}: kafka-acls.sh --topic {}; or do it by hand",
        ),
        (
            KafkaError("create topic {}: POLICY_VIOLATION", 44),
            "change the policy of target, create it by hand, or add the topic to topics.exclude",
        ),
        (
            KafkaError("create topic {}: INVALID_CONFIG (no such type)", 40),
            "correct what it names, or add the topic to topics.exclude",
        ),
        (
            KafkaError("create topic {}: INVALID_TOPIC_EXCEPTION (collides with another)", 17),
            "correct what it names, or add the topic to topics.exclude",
        ),
    ],
    ids=["factor", "right", "policy", "config", "collision"],
)
def test_whatever_the_target_refuses_is_one_cause_with_its_remedy(
    sync: TopicSync, sides: Admins, error: KafkaError, remedy: str
) -> None:
    topics = [f"t{number:04}" for number in range(5000)]
    sides.source.topics = listing(**dict.fromkeys(topics, 2))
    sides.target.errors = {
        f"source.{topic}": type(error)(str(error).replace("{}", f"source.{topic}"), error.code)
        for topic in topics
    }
    assert sync.apply(sync.plan().plan) == {}
    (cause,) = by_cause(sync.troubles)
    assert (cause.word, cause.requires_action) == ("not created", True)
    assert [it.what for it in sync.troubles] == topics
    assert {it.partitions for it in sync.troubles} == {(0, 2)}
    assert sync.troubles[7].reason == str(sides.target.errors["source.t0007"]).partition("; needs")[0]
    assert sync.troubles[7].remedy == remedy.replace("{}", "source.t0007")
    assert sync.has_problems


def test_topics_whose_names_can_t_be_used_are_troubles_from_the_start(
    settings: MirrorSourceSettings, sides: Admins
) -> None:
    class Merging(DefaultReplicationPolicy):
        def format_remote_topic(self, source: str, topic: str) -> str:
            if topic == "raises":
                raise PluginError(f"raises: no topic of {source}")
            return {"long": "x" * 300, "blank": "a b", "one": "same", "other": "same"}.get(topic, topic)

    sides.source.topics = listing(long=1, blank=2, one=3, other=1, raises=1, good=1)
    log = flow_log("tests.topic_sync", settings.flow, ConnectorName("mirror"))
    sync = TopicSync(replace(settings, policy=Merging()), cast("FlowAdmins", sides), log)
    assert sync.apply(sync.plan().plan) == {"good": 1}
    assert {(it.what, it.word.value, it.partitions) for it in sync.troubles} == {
        ("long", "blocked", (0, 1)),
        ("blank", "blocked", (0, 2)),
        ("one", "blocked", (0, 3)),
        ("other", "blocked", (0, 1)),
        ("raises", "blocked", (0, 1)),
    }
    assert all(it.remedy and it.requires_action for it in sync.troubles)
    assert sync.plan().selected.topics == {"long", "blank", "one", "other", "raises", "good"}


def test_a_plan_keeps_the_listing_that_it_follows_from(sync: TopicSync, sides: Admins) -> None:
    planned = sync.plan()
    sides.source.topics = listing(orders=5, new=1)
    assert planned.selected.topics == planned.listing.topics.keys() == {"orders"}
    assert sync.plan().selected.topics == sync.plan().listing.topics.keys() == {"orders", "new"}
