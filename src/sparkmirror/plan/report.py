"""Formats a flow's plan as text: changes, what is copied, what is left out, and what blocks it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any, Final

from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Flow
from sparkmirror.domain.quantities import as_size, as_time, counted, some_of
from sparkmirror.plan.flow_plan import Action, Change, FlowPlan, PlannedCopy, Skipped, by_task
from sparkmirror.plan.flow_plan_json import to_json

_SIGNS: Final = {Action.CREATE: "+", Action.ALTER: "~", Action.DELETE: "-"}
_WHOSE: Final = {"configs": "topic", "partitions": "topic", "quotas": "account"}
"""Kinds of changes that are counted by topics or accounts."""
_MARKS: Final = {Severity.BLOCKS: "✗", Severity.WARNS: "!", Severity.NOTE: "·"}
_SHOWN: Final = 20
"""Lines of a kind without `detail`."""
_NAMED: Final = 8
"""Topics named in a line."""


@dataclass(frozen=True, slots=True)
class Planned:
    """The plans of a file, a connector or a worker; the errors of flows without one; the file's findings."""

    plans: Sequence[FlowPlan]
    failed: Mapping[Flow, str] = field(default_factory=dict)
    file: str = ""
    findings: Sequence[Finding] = ()

    @property
    def is_blocked(self) -> bool:
        is_file_blocked = any(finding.severity is Severity.BLOCKS for finding in self.findings)
        return is_file_blocked or any(plan.is_blocked for plan in self.plans)

    @property
    def has_changes(self) -> bool:
        return any(plan.changes for plan in self.plans)

    def lines(self, *, detail: bool = False) -> Iterator[str]:
        """Return the plan as text: findings of the whole file, each flow, the summary."""
        if self.findings:
            yield from (self.file, "")
            yield from (f"  {line}" for line in _findings(self.findings, detail=detail))
            yield ""
        for plan in self.plans:
            yield from flow_lines(plan, detail=detail)
            yield ""
        yield summary(self)

    def to_json(self) -> list[dict[str, Any]]:
        """An entry for each flow; what concerns the file is among each flow's findings."""
        plans = [replace(plan, findings=(*self.findings, *plan.findings)) for plan in self.plans]
        failed = [
            {"source": flow.source, "target": flow.target, "error": error}
            for flow, error in self.failed.items()
        ]
        return [*map(to_json, plans), *failed]


def flow_lines(plan: FlowPlan, *, detail: bool = False) -> Iterator[str]:
    """Write a flow's plan. Unless `detail`, long lists are cut, with a note."""
    yield f"{plan.flow}" + ("" if plan.connector else " (only heartbeats: it is not enabled)")
    sections = (
        _changes(plan.changes, detail=detail),
        _copy(plan, detail=detail),
        _skipped(plan.skipped, detail=detail),
        _findings(plan.findings, detail=detail),
    )
    for section in sections:
        lines = list(section)
        if lines:
            yield ""
            yield from (f"  {line}" for line in lines)


def summary(planned: Planned) -> str:
    """The last line. A change or finding of several flows counts once."""
    plans, failed = planned.plans, len(planned.failed)
    missing = f"could not be made for {failed} of {counted(failed + len(plans), 'flow')}" if failed else ""
    if not plans:
        return f"Plan: {missing or 'there is no connector to plan'}."
    changes = {
        (change.action, change.kind, change.cluster, change.name, change.text)
        for plan in plans
        for change in plan.changes
    }
    counts = {action: sum(change[0] is action for change in changes) for action in Action}
    found = {finding for plan in plans for finding in plan.findings} | {*planned.findings}
    blocking = sum(finding.severity is Severity.BLOCKS for finding in found)
    what = ", ".join(f"{count:,} to {action.value}" for action, count in counts.items())
    records = sum(plan.records for plan in plans)
    if not any(counts.values()) and not records:
        what = "nothing to change, nothing to copy"
    else:
        what += f", {_about(records)} to copy"
    blocked = (
        f" {counted(blocking, 'thing')} {'blocks' if blocking == 1 else 'block'} it." if blocking else ""
    )
    return f"Plan: {what}.{blocked}" + (f" It {missing}." if missing else "")


def _changes(changes: Sequence[Change], *, detail: bool) -> Iterator[str]:
    """Format the changes by kind, in the order in which they are made."""
    for _, same in groupby(changes, key=lambda change: (change.action, change.kind, change.cluster)):
        found = list(same)
        first = found[0]
        whose = _WHOSE.get(first.kind)
        what = (
            counted(len(found), first.kind)
            if whose is None
            else f"the {first.kind} of {counted(len(found), whose)}"
        )
        yield f"{_SIGNS[first.action]} {first.action.value} {what} on {first.cluster}"
        yield from _some([f"    {change.name}: {change.text}" for change in found], detail=detail)


def _copy(plan: FlowPlan, *, detail: bool) -> Iterator[str]:
    if not plan.copies:
        return
    topics = len({copy.source.topic for copy in plan.copies})
    yield (
        f"copy {counted(len(plan.copies), 'partition')} of {counted(topics, 'topic')} "
        f"in {counted(plan.tasks, 'task')}, if Spark has slots for them"
    )
    size = plan.bytes
    words = [
        _about(plan.records),
        "of unknown size" if size is None else f"about {as_size(size)}",
    ]
    if plan.seconds is not None and plan.rate is not None and size:
        words.append(f"about {as_time(plan.seconds)} at {as_size(plan.rate.bytes_s)}/s ({plan.rate.origin})")
    yield f"    {', '.join(words)}" if plan.records else "    nothing is left to copy"
    if detail:
        for task in by_task(plan.copies):
            yield f"    task {task[0].task}: {counted(len(task), 'partition')}"
            yield from (f"        {copied(copy)}" for copy in task)


def copied(copy: PlannedCopy) -> str:
    if copy.records is None:
        return f"{copy.source} -> {copy.target_topic}: its offsets are unknown"
    size = "" if copy.bytes is None else f", about {as_size(copy.bytes)}"
    what = (
        f"{counted(copy.records, 'record')} from offset {copy.begin}{size}"
        if copy.records
        else "nothing left"
    )
    return f"{copy.source} -> {copy.target_topic}: {what}"


def _skipped(skipped: Sequence[Skipped], *, detail: bool) -> Iterator[str]:
    """Format the skipped topics by reason, the most frequent first."""
    if not skipped:
        return
    yield f"leave out {counted(len(skipped), 'topic')}"
    reasons: dict[str, list[str]] = {}
    for each in skipped:
        reasons.setdefault(each.why, []).append(each.topic)
    for why, topics in sorted(reasons.items(), key=lambda each: -len(each[1])):
        shown = topics if detail else topics[:_NAMED]
        more = len(topics) - len(shown)
        yield f"    {len(topics):,}: {why}: {', '.join(shown)}{f' and {more:,} more' if more else ''}"


def _findings(findings: Sequence[Finding], *, detail: bool) -> Iterator[str]:
    """Return a line for all that have one text, and one for their remedy."""
    for severity in Severity:
        subjects: dict[tuple[str, str], list[str]] = {}
        for finding in findings:
            if finding.severity is severity:
                subjects.setdefault((finding.text, finding.remedy), []).append(finding.subject)
        lines = []
        for (text, remedy), of in subjects.items():
            lines.append(f"{_MARKS[severity]} {', '.join(of) if detail else some_of(of)}: {text}")
            lines += [f"    {remedy}"] if remedy else []
        yield from _some(lines, detail=detail)


def _some(lines: Sequence[str], *, detail: bool) -> Iterable[str]:
    if detail or len(lines) <= _SHOWN:
        return lines
    return [*lines[:_SHOWN], f"    … and {len(lines) - _SHOWN:,} lines more: see --detail"]


def _about(records: int) -> str:
    return f"at most {records:,} {'record' if records == 1 else 'records'}"
