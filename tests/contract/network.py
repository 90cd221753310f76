"""Proxies between a copy task and its clusters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sparkmirror.copy.copy_plan import TaskPlan
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import TopicPartition
from tests.contract.copying import Bench
from tests.support.proxy import Proxy

REQUEST_TIMEOUT_S: Final = 0.5


@dataclass(frozen=True, slots=True)
class Network:
    """The proxies that a copy task connects to instead of brokers."""

    source: Sequence[Proxy]
    target: Sequence[Proxy]

    def plan(
        self, bench: Bench, *partitions: TopicPartition, request_timeout_s: float = REQUEST_TIMEOUT_S
    ) -> TaskPlan:
        plan = bench.plan(*partitions)
        source, target = (
            ConnectionSettings(
                tuple(proxy.address for proxy in proxies),
                request_timeout_s=request_timeout_s,
                connect_timeout_s=request_timeout_s,
            )
            for proxies in (self.source, self.target)
        )
        assert plan.offset_syncs is not None
        return replace(
            plan,
            consumer=replace(plan.consumer, connection=source),
            producer=replace(plan.producer, connection=target),
            state=replace(plan.state, connection=target),
            offset_syncs=replace(plan.offset_syncs, connection=source),
        )

    def await_disconnected(self) -> None:
        """Wait until every connection is closed and all held requests have been delivered."""
        for proxy in (*self.source, *self.target):
            proxy.restore()
            proxy.await_figures(lambda figures: figures.connections == 0)
