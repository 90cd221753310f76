"""Makes looks at mirrors as `mirror.connector_runs` takes them: well and not well, and with hostile names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import sin
from typing import Any, Final

from sparkmirror.cli.mirrors import FlowAnswer, Mirror, answers_of
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, LogIdentity, TopicPartition
from sparkmirror.domain.latency import EMPTY, LatencyHistogram
from sparkmirror.metrics.flow_history import HistoryPoint
from sparkmirror.metrics.looks import (
    ClusterLook,
    ConnectorLook,
    EventsLook,
    GroupPartitionLook,
    GroupsLook,
    HeartbeatLook,
    Latencies,
    MigrationsLook,
    Motion,
    PartitionLook,
    SourceLook,
    StandingLook,
    VerifiedRow,
    VerifyLook,
)
from sparkmirror.storage.events import Event, EventKind
from sparkmirror.storage.failbacks import Failback
from sparkmirror.storage.migrations import Begun, Migrations, Moved
from sparkmirror.storage.progress import PartitionProgress, PartitionState
from sparkmirror.storage.promotions import Parting, Promotion, Stage
from sparkmirror.storage.remakes import Remake
from sparkmirror.storage.written_offsets import WrittenOffset
from sparkmirror.view.making import Node, view_of
from tests.support.progress_records import IDLE

A_TO_B: Final = Flow(Alias("a"), Alias("b"))
SOURCE: Final = ConnectorName("MirrorSourceConnector")
HOSTILE: Final = (
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "a&amp;<b>&lt;i",
    "\u202egnp.exe\u202c",
    "]]><!-- </main><img src=x onerror=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "x" * 249,
    "line\u2028end\r\nevent: evil\ndata: <b>",
)
"""Names and errors that must be shown and never run."""
LATENCIES: Final = Latencies(LatencyHistogram({5: 90, 20: 8, 40: 2}), EMPTY)


def report(partition: TopicPartition, **values: Any) -> PartitionProgress:
    """Caught up at offset 1000, as `values` change it."""
    known = replace(IDLE, source=partition, target_topic=f"a.{partition.topic}", records=1000, bytes=100_000)
    return replace(known, **{"position": 999, "lag": 0, **values})


def look(
    name: str = "orders", partition: int = 0, reported: Mapping[str, Any] | None = None, **values: Any
) -> PartitionLook:
    """A partition that has caught up, unless its report or the rest is changed."""
    of = TopicPartition(name, partition)
    known = PartitionLook(
        of, partition % 2, report(of, **(reported or {})), is_silent=False, lag_s=0.0, quiet_since=-120.0
    )
    return known._replace(latencies=LATENCIES, **values)


def behind(name: str, partition: int, lag: int, closed: int) -> PartitionLook:
    """Return a partition whose lag fell by `closed` in 30 s."""
    return look(
        name,
        partition,
        {"lag": lag},
        lag_s=90.0,
        motion=Motion(30.0, closed),
        record_rate=2500.0,
        byte_rate=2.5e6,
        quiet_since=-0.4,
    )


def source(*partitions: PartitionLook, flow: Flow = A_TO_B, **values: Any) -> SourceLook:
    known = SourceLook(flow, SOURCE, "source", partitions=partitions, report_age_s=0.5)
    clusters = tuple(ClusterLook(alias, is_up=True) for alias in flow)
    return replace(known, **{"clusters": clusters, **values})


def answers(*looks: ConnectorLook, flow: Flow = A_TO_B) -> list[FlowAnswer]:
    """Return the answer about a flow, made from these snapshots."""
    view = view_of(Node("node-1", "1.0"), looks, 0.0)
    return Mirror("mirror", [str(flow)], answers_of(lambda: view)).flows(with_groups=True)


def group_partition(group: str, name: str = "orders", **values: Any) -> GroupPartitionLook:
    """Translated exactly, and written on the target."""
    known = GroupPartitionLook(
        GroupId(group),
        TopicPartition(name, 0),
        TopicPartition(f"a.{name}", 0),
        committed=900,
        translated=900,
        behind_max=0,
        why="exact",
        checkpoint=900,
        written=900,
    )
    return known._replace(**values)


def groups(*partitions: GroupPartitionLook, flow: Flow = A_TO_B, **values: Any) -> GroupsLook:
    known = GroupsLook(flow, ConnectorName("MirrorCheckpointConnector"), "checkpoint", partitions=partitions)
    return replace(known, **{"age_s": 20.0, "interval_s": 60.0, "target_age_s": 15.0, **values})


def event(about: str, text: str, kind: EventKind = EventKind.FAILED) -> Event:
    return Event(1_700_000_000.0, kind, SOURCE, about, text, "mirror-1:42")


def comparison() -> VerifyLook:
    """A partition that differs, one with each hostile name, and one that is equal."""
    wrong = "missing: source offset 7, target offset -: key 'k', value 'v'"
    rows = [
        VerifiedRow(TopicPartition("orders", 7), "different", 1000, 999, 1, [wrong]),
        *(VerifiedRow(TopicPartition(name, 0), "different", None, 0, 1, [name]) for name in HOSTILE),
        VerifiedRow(TopicPartition("orders", 0), "equal", 1000, 1000, 0, ()),
    ]
    said = f"{len(rows) - 1} of {len(rows)} partitions differ"
    return VerifyLook(1_700_000_000.0, 1_700_000_060.0, said, rows=rows, json="{}", junit="<testsuites/>")


def migrated() -> Migrations:
    """Return migrations of each kind, with hostile names of groups and topics."""
    at_ms = 1_700_000_000_000
    parted = Promotion(Stage.PROMOTED, at_ms + 3000, b"", {0: Parting(900, 900), 1: Parting(70, None)})
    offsets = [WrittenOffset(TopicPartition("a.orders", 0), 97, 90)]
    offsets += [WrittenOffset(TopicPartition("a.orders", number), 5, None) for number in range(1, 9)]
    return Migrations(
        {
            GroupId("billing"): Moved(at_ms + 1000, tuple(offsets)),
            **{GroupId(name): Moved(at_ms, (offsets[0],)) for name in HOSTILE},
        },
        {"parted": parted, HOSTILE[0]: Promotion(Stage.SWITCHING, at_ms + 2000, b"", {})},
        {"followed": Failback(at_ms, at_ms + 4000, LogIdentity(b"", -1, b""), {0: 900})},
        {"remade": Begun(at_ms + 5000, Remake(b"", 1, {}, {0: 800}, ()))},
    )


def hour() -> Sequence[HistoryPoint]:
    """An hour with a gap of ten minutes, in which nothing was known."""
    points = []
    for at in range(360):
        ago_s = 3595.0 - 10 * at
        if not 1200 < ago_s < 1800:
            lag_s = max(0.0, 40 * sin(at / 25))
            points.append(
                HistoryPoint(
                    ago_s, 2000 + 900 * sin(at / 9), 2e6 + 9e5 * sin(at / 9), int(100 * lag_s), lag_s
                )
            )
    return points


def everything() -> list[ConnectorLook]:
    """Three flows with a thing in each state, and hostile names."""
    error = "the target refuses batches of orders-7: raise max.message.bytes of a.orders to 2097152"
    partitions = [
        *(look("orders", number) for number in range(6)),
        behind("orders", 6, 48_210, 30_000),
        look("orders", 7, {"state": PartitionState.FAILED, "error": error, "lag": 12}, error_for_s=340.0),
        behind("payments", 0, 1_200_345, -9_000),
        look("payments", 1, {"lag": 77}, lag_s=90.0, is_stalled=True, motion=Motion(30.0, 0)),
        look(
            "shipments",
            0,
            {"state": PartitionState.RETRYING, "error": "b: no broker answers"},
            error_for_s=8.0,
        ),
        PartitionLook(TopicPartition("returns", 0), 1),
        *(look(f"clicks.{number:02}", part) for number in range(40) for part in range(3)),
        *(look(name) for name in HOSTILE),
        look(
            "errors",
            0,
            {"state": PartitionState.FAILED, "error": HOSTILE[0] + HOSTILE[4], "notice": HOSTILE[1]},
        ),
    ]
    back = Flow(Alias("b"), Alias("a"))
    third = Flow(Alias("a"), Alias("archive"))
    reading = [
        *(group_partition(f"billing-{number}") for number in range(3)),
        group_partition("behind", behind_max=40, why="approximate"),
        group_partition(
            "new", translated=None, behind_max=None, why="no sync yet", checkpoint=None, written=None
        ),
        group_partition("moved"),
        *(group_partition(name) for name in HOSTILE),
    ]
    return [
        source(
            *partitions,
            history=hour(),
            incidents={"records-lost": 2, "target-truncated": 1},
            lost=1200,
            events=EventsLook([event(name, name) for name in HOSTILE] + [event("orders-7", error)]),
            verify=comparison(),
            migrations=MigrationsLook(migrated()),
            settings={"name": SOURCE, "topics": ".*", **{name: name for name in HOSTILE}},
            slots=2,
        ),
        groups(
            *reading,
            active=frozenset({GroupId("moved")}),
            errors={GroupId("away"): "find the coordinator of group away on a: COORDINATOR_NOT_AVAILABLE"},
        ),
        HeartbeatLook(
            A_TO_B, ConnectorName("MirrorHeartbeatConnector"), "heartbeat", age_s=0.6, interval_s=1.0
        ),
        source(*(look("b.orders", number) for number in range(4)), flow=back, history=hour()),
        source(
            look("orders"),
            flow=third,
            report_age_s=75.0,
            clusters=(
                ClusterLook(
                    Alias("archive"), is_up=False, away_for_s=75.0, error="archive: connection refused"
                ),
            ),
        ),
        StandingLook(Flow(Alias("b"), Alias("lab")), ConnectorName("lab"), "source", None, "paused"),
    ]
