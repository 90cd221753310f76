"""Makes the plan of a flow when a page asks for it: one at a time, since a plan asks both clusters a lot."""

import threading
from collections.abc import Callable, Sequence
from http import HTTPStatus
from typing import NamedTuple

from sparkmirror.domain.connect import ConnectError
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.plan.flow_plan import FlowPlan
from sparkmirror.plan.flow_planning import plan_flow
from sparkmirror.plan.report import Planned, flow_lines, summary
from sparkmirror.settings.configured import ConfiguredFlow

PlanOf = Callable[[str, str], FlowPlan]
"""Returns the plan of a flow `A->B`, or of a connector by its name. Raises SparkmirrorError, ConnectError."""


class PlanLines(NamedTuple):
    """Has the lines that `sparkmirror plan` prints, the last of which is `summary`."""

    lines: Sequence[str]
    summary: str


class Plans:
    """Makes one plan at a time. Thread-safe."""

    def __init__(self, plan_of: PlanOf) -> None:
        self._plan_of = plan_of
        self._making = threading.Lock()

    def lines(self, flow: str, connector: str) -> PlanLines:
        """Raises ConnectError."""
        if not self._making.acquire(blocking=False):
            raise ConnectError(HTTPStatus.CONFLICT, "Another plan is being made: ask again when it is done")
        try:
            plan = self._plan_of(flow, connector)
        except SparkmirrorError as error:
            raise ConnectError(HTTPStatus.BAD_GATEWAY, f"There is no plan: {error}") from error
        finally:
            self._making.release()
        return PlanLines(list(flow_lines(plan)), summary(Planned([plan])))


def plans_of(flows: Sequence[ConfiguredFlow]) -> Plans:
    """Make the plans of a file's flows."""
    by_name = {str(settings.flow): settings for settings in flows}

    def plan_of(flow: str, _connector: str) -> FlowPlan:
        if flow not in by_name:
            raise ConnectError(HTTPStatus.NOT_FOUND, f"There is no flow {flow}")
        return plan_flow(by_name[flow])

    return Plans(plan_of)
