"""Tests for replication policies. A policy that fails them causes cycles, lost state or mixed topics."""

import re
from collections.abc import Mapping, Sequence
from itertools import product
from typing import ClassVar, Final

from sparkmirror.config.plugin_points import REPLICATION_POLICY
from sparkmirror.config.properties import Properties
from sparkmirror.policies.replication import ReplicationPolicy, is_cycle

TOPICS: Final = (
    *("orders", "orders.v1", "orders-v1", "orders_v1", "a", "A", "0", "eu.orders", "us.eu.orders"),
    *("orders.", "orders..", "o.r.d.e.r.s", "heartbeat", "my.internal", "checkpoints", "mm2", "x" * 200),
)
"""Names of user topics."""

ODD: Final = (
    *("", ".", "..", "...", "_", "__", "-", "--", ".a", "a.", "..a", "a..", "__consumer_offsets", ".hidden"),
    *(
        "heartbeats",
        "us.heartbeats",
        "my-heartbeats",
        "heartbeats.",
        "mm2-offsets.us.internal",
        "mm2.internal",
    ),
    *("us.checkpoints.internal", "checkpoints.internal", "mm2-offset-syncs.us.internal", "x" * 249),
    *("\u00fc", "\u2028", "\n", " ", "%", "(", "[", "\\", "\U0001f600", "\ud800", "\0"),
)
"""Unusual names, for which a plug-in must return a result and raise no error."""

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]{1,249}")
_HOPS_MAX: Final = 300


class ReplicationPolicyContract:
    """Tests a plug-in for `replication.policy.class`. Set `policy_class`, and the attributes that differ."""

    policy_class: ClassVar[type]
    properties: ClassVar[Mapping[str, str]] = {}
    """Connector properties that the policy reads."""
    aliases: ClassVar[Sequence[str]] = ("us", "eu-1")
    """Values of `source.cluster.alias` with which a policy is created."""
    topics: ClassVar[Sequence[str]] = TOPICS
    """User topics that the policy must support."""
    names_source: ClassVar[bool] = True
    """Whether a remote topic's name shows its source. Otherwise names can't show cycles."""
    names_upstream: ClassVar[bool] = True
    """Whether `upstream_topic` returns a remote topic's name on its source; otherwise it returns None."""

    def policy(self, alias: str) -> ReplicationPolicy:
        properties = Properties({"source.cluster.alias": alias, **self.properties})
        return REPLICATION_POLICY.made(self.policy_class, self.policy_class.__name__, properties)

    def test_remote_topic_name_is_parsed_back(self) -> None:
        for alias, topic in product(self.aliases, self.topics):
            policy = self.policy(alias)
            remote = policy.format_remote_topic(alias, topic)
            assert policy.topic_source(remote) == alias, f"topic_source({remote!r}) must be {alias!r}"
            upstream = topic if self.names_upstream else None
            assert policy.upstream_topic(remote) == upstream, (
                f"upstream_topic({remote!r}) must be {upstream!r}"
            )

    def test_original_topic_of_a_local_topic_is_itself(self) -> None:
        for alias in self.aliases:
            policy = self.policy(alias)
            remote = policy.format_remote_topic(alias, "orders")
            first = "orders" if self.names_upstream else remote
            assert policy.original_topic("orders") == "orders", "'orders' was not replicated"
            assert policy.original_topic(remote) == first, f"original_topic({remote!r}) must be {first!r}"

    def test_remote_topic_name_shows_every_source_cluster(self) -> None:
        if not self.names_source:
            return self._assert_no_cycle_is_detected()
        for alias, topic in product(self.aliases, self.topics):
            policy = self.policy(alias)
            twice = policy.format_remote_topic("third", policy.format_remote_topic(alias, topic))
            assert policy.topic_source(twice) == "third", f"topic_source({twice!r}) must be 'third'"
            assert is_cycle(policy, twice, alias), (
                f"{twice!r} came through {alias!r}, and would go there again"
            )
            assert is_cycle(policy, twice, "third"), f"{twice!r} came from 'third', and would go there again"
            assert not is_cycle(policy, twice, "fourth"), f"{twice!r} has not been on 'fourth'"
        return None

    def _assert_no_cycle_is_detected(self) -> None:
        policy = self.policy(self.aliases[0])
        remote = policy.format_remote_topic("third", "orders")
        assert not is_cycle(policy, remote, "third"), "cycles are seen, so set names_source = True"

    def test_remote_topic_names_are_distinct(self) -> None:
        for alias in self.aliases:
            self._assert_distinct([(alias, topic) for topic in self.topics])
        if self.names_source:
            self._assert_distinct(list(product(self.aliases, self.topics)))

    def _assert_distinct(self, replicated: Sequence[tuple[str, str]]) -> None:
        taken: dict[str, tuple[str, str]] = {}
        for alias, topic in replicated:
            remote = self.policy(alias).format_remote_topic(alias, topic)
            other = taken.setdefault(remote, (alias, topic))
            assert other == (alias, topic), f"{other} and {(alias, topic)} would both become {remote!r}"

    def test_names_are_legal_topic_names(self) -> None:
        for alias in self.aliases:
            policy = self.policy(alias)
            remote = [policy.format_remote_topic(alias, topic) for topic in self.topics]
            own = [policy.heartbeats_topic(), policy.offset_syncs_topic("b"), policy.checkpoints_topic(alias)]
            for name in (*remote, *own):
                is_legal = _LEGAL.fullmatch(name) and name not in (".", "..")
                assert is_legal, f"{name!r} is no topic's name: up to 249 letters, digits, '.', '_' and '-'"

    def test_user_topics_are_not_internal(self) -> None:
        for alias, topic in product(self.aliases, self.topics):
            policy = self.policy(alias)
            for name in (topic, policy.format_remote_topic(alias, topic)):
                assert not policy.is_internal_topic(name), f"{name!r} would never be replicated"
                assert not policy.is_mm2_internal_topic(name), f"{name!r} is a user's topic"
                assert not policy.is_heartbeats_topic(name), f"{name!r} is a user's topic"
                assert not policy.is_checkpoints_topic(name), f"{name!r} is a user's topic"

    def test_state_topics_are_internal(self) -> None:
        for alias in self.aliases:
            policy = self.policy(alias)
            for name in (policy.offset_syncs_topic(alias), policy.checkpoints_topic(alias)):
                assert policy.is_internal_topic(name), f"{name!r} would be replicated"
                assert policy.is_mm2_internal_topic(name), f"{name!r} is a mirror's own"
            assert policy.is_checkpoints_topic(policy.checkpoints_topic(alias))
            assert policy.is_internal_topic("__consumer_offsets"), "Kafka's own topics are never replicated"

    def test_state_topics_of_two_clusters_are_distinct(self) -> None:
        policy = self.policy(self.aliases[0])
        own = [
            f(alias) for f in (policy.offset_syncs_topic, policy.checkpoints_topic) for alias in ("b", "c")
        ]
        own.append(policy.heartbeats_topic())
        assert len(set(own)) == len(own), f"some of a mirror's own topics have the same name: {own}"

    def test_heartbeats_are_replicated(self) -> None:
        for alias in self.aliases:
            policy = self.policy(alias)
            here = policy.heartbeats_topic()
            for name in (here, policy.format_remote_topic(alias, here)):
                assert policy.is_heartbeats_topic(name), f"{name!r} holds heartbeats"
                assert not policy.is_internal_topic(name), f"{name!r} would not be replicated"

    def test_unusual_names_raise_no_error(self) -> None:
        policy = self.policy(self.aliases[0])
        for name in ODD:
            policy.format_remote_topic(self.aliases[0], name)
            policy.topic_source(name)
            policy.original_topic(name)
            policy.is_heartbeats_topic(name)
            policy.is_internal_topic(name)
            policy.is_mm2_internal_topic(name)
            policy.is_checkpoints_topic(name)
            self._assert_upstreams_end(policy, name)

    def _assert_upstreams_end(self, policy: ReplicationPolicy, name: str) -> None:
        seen: list[str] = []
        upstream: str | None = name
        while upstream is not None and upstream not in seen:
            seen.append(upstream)
            upstream = policy.upstream_topic(upstream)
            assert len(seen) < _HOPS_MAX, f"upstream_topic of {name!r} leads to ever other names: {seen[:5]}"

    def test_equal_calls_return_equal_results(self) -> None:
        for alias in self.aliases:
            one, other = self.policy(alias), self.policy(alias)
            for name in (*self.topics, *ODD, *reversed(self.topics)):
                assert _results(one, alias, name) == _results(other, alias, name), f"of {name!r}"
                assert _results(one, alias, name) == _results(one, alias, name), f"of {name!r}, asked twice"


def _results(policy: ReplicationPolicy, alias: str, topic: str) -> tuple[object, ...]:
    return (
        policy.format_remote_topic(alias, topic),
        policy.topic_source(topic),
        policy.upstream_topic(topic),
        policy.original_topic(topic),
        policy.is_internal_topic(topic),
    )
