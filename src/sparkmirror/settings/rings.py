"""Refuses rings of flows whose policies keep topics' names: records would be mirrored in an endless cycle.

Between two clusters producer ids show which records come back (`batches.cycles`). In a longer ring, or for a
flow without producer ids, only a header in every record does (`batches.provenance_header`). Unless it is on,
a configuration is refused if a sample topic name, one per pattern of the flows' topic filters, would cycle.

A flow whose two aliases are one cluster is the shortest ring.
"""

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.domain.incidents import OnLoop
from sparkmirror.policies.filters import DefaultTopicFilter, TopicFilter
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.settings.topic_selection import Pairs, remote_topic, should_replicate

_ESCAPED: Final = re.compile(r"\\(.)")
_ANYTHING: Final = re.compile(r"(\.|\[[^\]]*\]|\\[dDwWsS])[*+?]?")
_FILLER: Final = "x"


class OneCluster(NamedTuple):
    """Why nothing is mirrored between two aliases of one cluster, and what to do about it."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}; {self.remedy}"


def same_cluster(flow: Flow, cluster_id: str) -> OneCluster:
    source, target = flow
    return OneCluster(
        f"{source} and {target} are one cluster (its id is {cluster_id}): "
        "its topics, and their copies, would be mirrored into it again and again",
        f"set {source}.bootstrap.servers and {target}.bootstrap.servers to two clusters",
    )


def one_cluster_now(flow: Flow, cluster_id: str) -> OneCluster:
    """The flow has offset syncs there, and its positions elsewhere."""
    source, target = flow
    return OneCluster(
        f"{source} and {target} are one cluster (its id is {cluster_id}), and {target} was another before",
        f"set {target}.bootstrap.servers to that; or, if one cluster is meant, restart with --accept-cluster "
        f"{target}",
    )


def mirrors_by_pattern(chosen: TopicFilter, mirrored: Collection[str]) -> bool:
    """Tell whether a flow within one cluster would mirror its own copies. `mirrored` are its topics now."""
    if not isinstance(chosen, DefaultTopicFilter):
        return True
    return not chosen.named.issuperset(mirrored or chosen.topics)


class SharedTopic(NamedTuple):
    """The consequence of several flows that write one topic, and how to keep them apart."""

    why: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.why}; {self.remedy}"


def shared_topic(writers: Collection[tuple[Alias, str]]) -> SharedTopic:
    """`writers` are the topics that are mirrored into the one topic, each with its cluster."""
    names = " and ".join(f"{topic} of {cluster}" for cluster, topic in writers)
    return SharedTopic(
        f"{len(writers)} flows write it: {names}. Each copies its own records once and in their order, "
        "between those of the others, and verify compares its own; a group that reads several of these "
        "topics gets one offset here, of one source, and may skip or repeat records of the others",
        "to keep them apart give one flow another replication.policy.class, or topics.exclude there; "
        "else let only one of them translate such groups (groups.exclude)",
    )


def shared_topics(
    writers: Iterable[tuple[Alias, Pairs]],
) -> Mapping[str, Collection[tuple[Alias, str]]]:
    """Return the topics of one target that flows of several sources write. Heartbeats may meet."""
    found: dict[str, dict[tuple[Alias, str], None]] = {}
    for cluster, pairs in writers:
        for topic, remote in pairs:
            found.setdefault(remote, {})[cluster, topic] = None
    return {
        remote: tuple(of)
        for remote, of in found.items()
        if len({cluster for cluster, _ in of}) > 1 and not remote.endswith("heartbeats")
    }


class RingFlow(NamedTuple):
    """A flow, and whether each of its batches has a producer id."""

    settings: MirrorSourceSettings
    has_producer_ids: bool = True


def check_rings(flows: Sequence[RingFlow]) -> None:
    """Raises ConfigError that names the ring and a topic that would be mirrored in a cycle."""
    # Flows whose topic names show cycles, and flows that are to copy them, need no check.
    kept = [
        flow
        for flow in flows
        if not flow.settings.names_show_origin and flow.settings.copying.reactions.on_loop is not OnLoop.COPY
    ]
    for topic in _samples(kept):
        by_flow = {flow.settings.flow: flow for flow in kept if _keeps(flow.settings, topic)}
        without = [flow for flow, each in by_flow.items() if not each.settings.copying.provenance_header]
        ring = _ring(by_flow, without)
        if ring is not None:
            raise _about(
                "replication.policy.class",
                ring,
                f"is a ring of flows that keep topics' names, so that records of a topic like '{topic}' "
                "would go round for ever. Let all of them have provenance.header=true, or leave out one of "
                "them, or let one of them exclude such topics (topics.exclude), or use "
                "DefaultReplicationPolicy",
            )
        for flow in by_flow.values():
            source, target = flow.settings.flow
            is_marked = flow.has_producer_ids or flow.settings.copying.provenance_header
            if not is_marked and Flow(target, source) in by_flow:
                raise _about(
                    "enable.idempotence",
                    (source, target, source),
                    f"would send records of a topic like '{topic}' round for ever: {source}->{target} writes "
                    "without producer ids, by which the other flow recognizes records of its target. Let its "
                    "producer have enable.idempotence=true and acks=all",
                )


def _about(key: str, ring: Sequence[Alias], reason: str) -> ConfigError:
    return ConfigError(key, None, f"{'->'.join(ring)} {reason}; on.loop=copy lets them go round as MM2 does")


def _keeps(settings: MirrorSourceSettings, topic: str) -> bool:
    return should_replicate(settings, topic) and remote_topic(settings, topic) == topic


def _ring(flows: Collection[Flow], through: Collection[Flow]) -> tuple[Alias, ...] | None:
    """A shortest ring of three clusters or more through one of these; its first one is also at the end."""
    following: dict[Alias, list[Alias]] = {}
    for source, target in flows:
        following.setdefault(source, []).append(target)
    rings = [(source, *way) for source, target in through if (way := _way(following, target, source))]
    return min(rings, key=len, default=None)


def _way(following: Mapping[Alias, Sequence[Alias]], start: Alias, end: Alias) -> tuple[Alias, ...] | None:
    """The shortest way over at least one other cluster."""
    ways: deque[tuple[Alias, ...]] = deque([(start,)])
    seen = {start}
    while ways:
        way = ways.popleft()
        for alias in following.get(way[-1], ()):
            if alias == end and len(way) > 1:
                return (*way, alias)
            if alias != end and alias not in seen:
                seen.add(alias)
                ways.append((*way, alias))
    return None


def _samples(flows: Sequence[RingFlow]) -> Iterator[str]:
    """Names of topics that some of these flows may mirror: one for each pattern, and those of heartbeats."""
    found: dict[str, None] = {}
    for settings, _ in flows:
        if isinstance(settings.topic_filter, DefaultTopicFilter):
            patterns = [part for pattern in settings.topic_filter.topics for part in pattern.split("|")]
            found.update(dict.fromkeys(map(_sample, patterns)))
        found[settings.policy.heartbeats_topic()] = None
    return iter(found)


def _sample(pattern: str) -> str:
    """A name that most patterns like this one match; the caller checks it."""
    dots_kept = pattern.replace(r"\.", "\0")
    return _ESCAPED.sub(r"\1", _ANYTHING.sub(_FILLER, dots_kept)).replace("\0", ".")
