"""Makes and reads the records of the events topic, `mm2-events.<source>.internal` on the target.

What happened to a flow, in order: kept for 7 days and at most 64 MiB. One partition, no keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, Protocol

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json

CONFIGS: Final[Mapping[str, str]] = {
    "cleanup.policy": "delete",
    "retention.ms": str(7 * 24 * 3600 * 1000),
    "retention.bytes": str(64 << 20),
    "segment.bytes": str(16 << 20),
}


class EventKind(Enum):
    STARTED = "started"
    STOPPED = "stopped"
    RETRYING = "retrying"
    FAILED = "failed"
    RECOVERED = "recovered"
    INCIDENT = "incident"
    STALLED = "stalled"
    CONTINUES = "continues"
    SILENT = "silent"
    REPORTING = "reporting"
    CLUSTER_DOWN = "cluster-down"
    CLUSTER_UP = "cluster-up"
    CONFIGURED = "configured"
    """The settings that it starts with, or that change while it runs."""
    ACTION = "action"
    """A user asked for it; the text says who."""
    VERIFIED = "verified"
    """Both clusters were compared; the details have the partitions."""
    DROPPED = "dropped"
    """There were too many events to be written."""


class Note(Protocol):
    """Takes an event, in any thread, without blocking; `about` is a partition or a cluster."""

    def __call__(self, kind: EventKind, text: str, about: object = "") -> None: ...


def no_note(kind: EventKind, text: str, about: object = "") -> None:
    """Take no notice of it."""


@dataclass(frozen=True, slots=True)
class Event:
    """`time` is in epoch seconds, `about` a partition or a cluster, or empty; `node` is the process.

    `details` are for programs, and depend on the kind.
    """

    time: float
    kind: EventKind
    connector: str
    about: str
    text: str
    node: str
    details: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return JSON without the details, which may be long."""
        return {
            "time": self.time,
            "kind": self.kind.value,
            "connector": self.connector,
            "about": self.about,
            "text": self.text,
            "node": self.node,
        }

    def to_record(self) -> LogRecord:
        value = self.to_json() if self.details is None else {**self.to_json(), "details": self.details}
        return LogRecord(None, compact_json(value), timestamp_ms=int(self.time * 1000))


def parse_event(record: LogRecord) -> Event | None:
    """Parse an event; None for a record that this project, or this version, did not write."""
    try:
        value = parsed_json(record.value)
        connector, about, text, node = (str(value[key]) for key in ("connector", "about", "text", "node"))
        kind, details = EventKind(value["kind"]), value.get("details")
        return Event(float(value["time"]), kind, connector, about, text, node, details)
    except (ValueError, TypeError, KeyError):
        return None
