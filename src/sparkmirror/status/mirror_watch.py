"""Watches all flows of a file, and shows them as a running mirror shows its own."""

from collections.abc import Mapping, Sequence

from sparkmirror.domain.errors import DisconnectedError
from sparkmirror.domain.ids import Alias
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.metrics.readings import ConnectorReading
from sparkmirror.periodic.jobs import start_all, stop_all
from sparkmirror.settings.configured import ConfiguredFlow, ConfiguredSource
from sparkmirror.status.flow_watch import FlowWatch

KNOWN_METRICS = frozenset(
    {
        "sparkmirror_lag_records",
        "sparkmirror_verify_last_timestamp_seconds",
        "sparkmirror_verify_differences",
        "sparkmirror_verify_partitions",
        "sparkmirror_verify_offset",
        "sparkmirror_lag_seconds",
        "sparkmirror_cluster_up",
        "sparkmirror_partitions",
        "sparkmirror_stalled_partitions",
        "sparkmirror_last_heartbeat_timestamp_seconds",
    }
)
"""The metrics whose values can be told of every mirror from outside."""


class MirrorWatch:
    """Looks by itself between `start` and `stop`, or whenever `look` is called, until `close`.

    Everything else is safe in any thread.
    """

    def __init__(
        self, flows: Sequence[tuple[ConfiguredFlow, ConfiguredSource]], *, shows_groups: bool = True
    ) -> None:
        self._flows = [FlowWatch(flow, source, shows_groups=shows_groups) for flow, source in flows]

    def start(self) -> None:
        for flow in self._flows:
            start_all(flow.threads)

    def stop(self) -> None:
        stop_all([thread for flow in self._flows for thread in flow.threads])

    def look(self, away: Mapping[Alias, str] | None = None) -> None:
        """Look once at every flow; `away` has the errors of clusters that do not answer.

        Raises SparkmirrorError where no flow can be told; else the looks have the errors.
        """
        told = [flow.look_unless(away or {}) for flow in self._flows]
        if any(told):
            return
        errors = {str(error): error for flow in self._flows if (error := flow.error) is not None}
        if len(errors) == 1 or not all(error.retriable for error in errors.values()):
            raise next(iter(errors.values()))
        raise DisconnectedError("; ".join(errors))

    def close(self) -> None:
        """Close what `look` has opened."""
        for flow in self._flows:
            for thread in flow.threads:
                thread.close()

    @property
    def is_started(self) -> bool:
        """Tells whether every flow was looked at once."""
        return all(flow.has_looked for flow in self._flows)

    def looks(self) -> list[ConnectorLook]:
        return [look for flow in self._flows for look in flow.looks()]

    def readings(self) -> list[ConnectorReading]:
        return [reading for flow in self._flows for reading in flow.readings()]
