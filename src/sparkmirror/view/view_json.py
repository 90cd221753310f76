"""Writes a view as JSON for `GET /mirror`. Names have their units; null is unknown, and never 0.

Clusters, flows and nodes are always there; topics, groups or partitions of one flow, or partitions of one
topic, on request and by pages, so that an answer stays small however large the mirror is.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite
from typing import Any, Final, NamedTuple, TypeVar

from sparkmirror.domain.troubles import Trouble, by_cause
from sparkmirror.storage.events import Event
from sparkmirror.view.flows import FlowView, MirrorView, Verification
from sparkmirror.view.groups import groups_of, lag_of
from sparkmirror.view.migrations import MigratedPartition, Migration, MigrationKind, migrations_matching
from sparkmirror.view.moves import Answer, group_answer, group_answers, topic_answer
from sparkmirror.view.pages import Page, page_of
from sparkmirror.view.values import (
    GroupPartitionView,
    GroupView,
    Lag,
    PartitionView,
    Speed,
    State,
    TopicView,
)

Json = Mapping[str, Any]
T = TypeVar("T")

SIZE: Final = 100
SIZE_MAX: Final = 10_000


class Asked(NamedTuple):
    """Names what is asked for: a flow by its name `A->B`, a topic of the source, and a page from 1 on.

    `matching` is a part of the names of topics or groups; `groups` asks for groups instead of topics,
    `partitions` for the partitions of all topics, `events` for the last events and `migrations` for what was
    migrated, newest first.
    """

    flow: str | None = None
    topic: str | None = None
    matching: str = ""
    page: int = 1
    groups: bool = False
    partitions: bool = False
    events: bool = False
    migrations: bool = False
    size: int = SIZE


def view_json(view: MirrorView, asked: Asked) -> Json:
    """Raises LookupError, with a text for the user, for a flow or topic that is not there."""
    flow = None if asked.flow is None else flow_of(view, asked.flow)
    return {
        "version": view.version,
        "node": view.node,
        "nodes": list(view.nodes),
        "made_at_ms": int(view.made_at * 1000),
        "state": _state(view.state),
        "clusters": [
            {
                "alias": it.alias,
                "answers": it.is_up,
                "away_for_seconds": _rounded(it.away_for_s),
                "error": it.error,
            }
            for it in view.clusters
        ],
        "flows": [_flow(it, asked if it is flow else None) for it in view.flows if flow in (None, it)],
    }


def flow_of(view: MirrorView, name: str) -> FlowView:
    flow = view.flow(name)
    if flow is None:
        known = ", ".join(str(it.flow) for it in view.flows[:10]) or "none"
        raise LookupError(f"There is no flow {name}; flows are: {known}")
    return flow


def topic_of(flow: FlowView, name: str) -> TopicView:
    topic = flow.topics.named(name)
    if topic is None:
        raise LookupError(f"Flow {flow.flow} mirrors no topic {name}")
    return topic


def _flow(flow: FlowView, asked: Asked | None) -> Json:
    return {
        "source": flow.flow.source,
        "target": flow.flow.target,
        "state": _state(flow.state),
        **_lag(flow.lag, flow.left_s),
        **_speed(flow.speed),
        "latency_ms": _latency(*flow.latency_ms),
        "topic_count": len(flow.topics),
        "partition_count": len(flow.topics.partitions),
        "partitions_by_state": {word.value: count for word, count in sorted(flow.words.items())},
        "incidents": dict(sorted(flow.incidents.items())),
        "lost_records": flow.lost,
        "report_age_seconds": _rounded(flow.report_age_s),
        "heartbeat_age_seconds": _rounded(flow.heartbeat_age_s),
        "observed": flow.is_observed,
        "running": flow.is_running,
        "only_heartbeats": not flow.mirrors,
        "process": None if flow.driver is None else str(flow.driver),
        "position_age_seconds": _rounded(flow.position_age_s),
        "spark_slots": flow.slots,
        "verification": _verification(flow.verification),
        "connectors": [
            {"name": it.name, "kind": it.kind, "state": _state(it.state)} for it in flow.connectors
        ],
        "troubles": [_trouble(of) for of in by_cause(flow.troubles).values()],
        **({} if asked is None else _part(flow, asked)),
    }


def _trouble(of: Sequence[Trouble]) -> Json:
    """Several things of one cause; reason and remedy are those of the first."""
    first = of[0]
    return {
        "word": first.word.value,
        "action_required": first.requires_action,
        "subject": first.cause.subject.value,
        "count": len(of),
        "names": [it.what for it in of[:SIZE]],
        "reason": first.reason,
        "remedy": first.remedy or None,
        "since_ms": int(min(it.since for it in of) * 1000),
    }


def _verification(last: Verification | None) -> Json | None:
    if last is None:
        return None
    return {
        "at_ms": int(last.at * 1000),
        "partition_count": last.partitions,
        "unreadable_partitions": last.unreadable,
        "differences": last.differences,
    }


def _part(flow: FlowView, asked: Asked) -> Json:
    if asked.topic is not None:
        topic = topic_of(flow, asked.topic)
        answers = [topic_answer(flow, topic), *group_answers(groups_of(flow), topic.name)[:SIZE]]
        shown = page_of(topic.worst_first(), asked.page, asked.size)
        return {
            "topic": _topic(flow, topic),
            "may_move": [_answer(it) for it in answers],
            "partitions": _page(shown, partial(_partition, flow)),
        }
    if asked.groups:
        return {"groups": _groups(flow, asked)}
    if asked.events:
        found = flow.events_matching(asked.matching)
        return {"events": _page(page_of(found, asked.page, asked.size), Event.to_json)}
    if asked.migrations:
        return {"migrations": _migrations(flow, asked)}
    topics = flow.topics.worst_first(asked.matching)
    if asked.partitions:
        partitions = flow.topics.partitions_worst_first(asked.matching)
        return {"partitions": _page(page_of(partitions, asked.page, asked.size), partial(_partition, flow))}
    return {"topics": _page(page_of(topics, asked.page, asked.size), partial(_topic, flow))}


def _page(page: Page[T], to_json: Callable[[T], Json]) -> Json:
    return {
        "page": page.number,
        "pages": page.last,
        "total": page.total,
        "items": [to_json(it) for it in page.items],
    }


def _topic(flow: FlowView, topic: TopicView) -> Json:
    return {
        "name": topic.name,
        "target": topic.target,
        "state": _state(topic.state),
        **_lag(topic.lag, topic.left_s),
        **_speed(topic.speed),
        "quiet_for_seconds": _rounded(flow.age(topic.quiet_since)),
        "partition_count": len(topic.partitions),
    }


def _partition(flow: FlowView, partition: PartitionView) -> Json:
    return {
        "topic": partition.source.topic,
        "partition": partition.source.partition,
        "task": partition.task,
        "state": _state(partition.state),
        "position": partition.position,
        "source_end": partition.source_end,
        **_lag(partition.lag, partition.left_s),
        **_speed(partition.speed),
        "latency_ms": _latency(*partition.median_and_high_ms),
        "quiet_for_seconds": _rounded(flow.age(partition.quiet_since)),
        "incidents": dict(sorted(partition.incidents.items())),
        "lost_records": partition.lost,
        "filtered_records": partition.filtered,
        "notice": partition.notice,
    }


def _groups(flow: FlowView, asked: Asked) -> Json:
    groups = groups_of(flow)
    if groups is None or groups.names is None:
        return {"known": False, "page": 1, "pages": 1, "total": None, "items": []}
    shown = page_of(groups.matching(asked.matching), asked.page, asked.size)
    return {
        "known": True,
        "left_out_partitions": groups.left_out,
        "age_seconds": _rounded(groups.age_s),
        "target_age_seconds": _rounded(groups.target_age_s),
        **_page(shown, lambda it: {**_group(flow, it), **_answer(group_answer(it, groups))}),
    }


def _group(flow: FlowView, group: GroupView) -> Json:
    return {
        "name": group.name,
        "is_exact": group.is_exact,
        "read_again_records": group.again,
        "is_active_on_target": group.is_active,
        "error": group.error,
        "partition_count": len(group.partitions),
        "partitions": [_group_partition(flow, it) for it in group.partitions[:SIZE]],
    }


def _group_partition(flow: FlowView, partition: GroupPartitionView) -> Json:
    return {
        "topic": partition.source.topic,
        "partition": partition.source.partition,
        "committed": partition.committed,
        "lag_records": lag_of(flow, partition),
        "translated": partition.translated,
        "behind_records": partition.behind,
        "why": partition.why,
        "checkpoint": partition.checkpoint,
        "written": partition.written,
        "read_again_records": partition.again,
    }


def _migrations(flow: FlowView, asked: Asked) -> Json:
    is_known = flow.migrations is not None and flow.migrations.known is not None
    shown = page_of(migrations_matching(flow, asked.matching), asked.page, asked.size)
    return {"known": is_known, **_page(shown, _migration)}


def _migration(migration: Migration) -> Json:
    return {
        "kind": migration.kind.value,
        "name": migration.name,
        "at_ms": migration.at_ms,
        "stage": migration.stage,
        "partition_count": len(migration.partitions),
        "partitions": [_migrated_partition(migration, it) for it in migration.partitions[:SIZE]],
    }


def _migrated_partition(migration: Migration, partition: MigratedPartition) -> Json:
    of = {"topic": partition.partition.topic, "partition": partition.partition.partition}
    match migration.kind:
        case MigrationKind.GROUP:
            return {**of, "offset": partition.offset, "earlier_offset": partition.other}
        case MigrationKind.PROMOTION:
            return {**of, "parting": partition.offset, "source_end": partition.other}
        case MigrationKind.FAILBACK:
            return {**of, "goes_on_from": partition.offset}
        case MigrationKind.REMAKE:
            return {**of, "copied_up_to": partition.offset}


def _answer(answer: Answer) -> Json:
    return {
        "what": answer.what,
        "may_move": answer.may_move,
        "checks": [{"name": it.name, "holds": it.holds, "fact": it.fact} for it in answer.checks],
    }


def _state(state: State) -> Json:
    return {
        "word": state.word.value,
        "for_seconds": _rounded(state.for_s),
        "error": state.error,
        "advice": state.advice or None,
    }


def _lag(lag: Lag, left_s: float | None) -> Json:
    return {
        "lag_records": lag.records,
        "lag_seconds": _rounded(lag.seconds),
        "time_left_seconds": _rounded(left_s),
    }


def _speed(speed: Speed) -> Json:
    return {
        "records_per_second": _rounded(speed.records),
        "bytes_per_second": _rounded(speed.bytes),
    }


def _latency(median: float | None, high: float | None) -> Json:
    return {"p50": _rounded(median), "p99": _rounded(high)}


def _rounded(number: float | None) -> float | None:
    return None if number is None or not isfinite(number) else round(number, 3)
