"""Makes a table of what flows would do, a row for each change, copy, finding, and topic left out. Pure."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from sparkmirror.plan.flow_plan import FlowPlan
from sparkmirror.plan.report import copied

SCHEMA = pa.schema([(name, pa.string()) for name in ("flow", "action", "kind", "cluster", "name", "text")])
"""`action` is create, alter, delete, copy or skip; for findings blocks, warns or note."""


def plan_table(plans: Iterable[FlowPlan]) -> pa.Table:
    rows = [(str(plan.flow), *row) for plan in plans for row in _rows(plan)]
    columns = zip(*rows, strict=True) if rows else [()] * len(SCHEMA)
    return pa.table([list(column) for column in columns], schema=SCHEMA)


def _rows(plan: FlowPlan) -> Iterator[tuple[str, ...]]:
    source, target = plan.flow
    for change in plan.changes:
        yield change.action.value, change.kind, change.cluster, change.name, change.text
    for copy in plan.copies:
        yield "copy", "partition", target, str(copy.source), copied(copy)
    for skipped in plan.skipped:
        yield "skip", skipped.rule, source, skipped.topic, skipped.why
    for finding in plan.findings:
        text = f"{finding.text} {finding.remedy}" if finding.remedy else finding.text
        yield finding.severity.name.lower(), "finding", "", finding.subject, text
