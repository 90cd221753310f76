"""A flow's plan as JSON: what `plan -o json` prints, and what `/connectors/NAME/plan` answers."""

from collections.abc import Mapping
from typing import Any

from sparkmirror.domain.findings import Finding, Severity
from sparkmirror.domain.ids import Alias, ConnectorName, Flow, TopicPartition
from sparkmirror.plan.flow_plan import Action, Change, FlowPlan, PlannedCopy, Rate, Skipped


def to_json(plan: FlowPlan) -> dict[str, Any]:
    return {
        "source": plan.flow.source,
        "target": plan.flow.target,
        "target_cluster_id": plan.target_id,
        "connector": plan.connector,
        "blocked": plan.is_blocked,
        "counts": {action.value: plan.count(action) for action in Action},
        "changes": [_change_to_json(change) for change in plan.changes],
        "copy": {
            "tasks": plan.tasks,
            "partitions": len(plan.copies),
            "records": plan.records,
            "bytes": plan.bytes,
            "seconds": None if plan.seconds is None else round(plan.seconds, 1),
            "rate": None if plan.rate is None else _rate_to_json(plan.rate),
            "of": [_copy_to_json(copy) for copy in plan.copies],
        },
        "skipped": [
            {"topic": skipped.topic, "rule": skipped.rule, "why": skipped.why} for skipped in plan.skipped
        ],
        "findings": [_finding_to_json(finding) for finding in plan.findings],
    }


def from_json(data: Mapping[str, Any]) -> FlowPlan:
    """Read the output of `to_json`. Raises KeyError, TypeError, ValueError for anything else."""
    copy = data["copy"]
    rate = copy["rate"]
    return FlowPlan(
        Flow(Alias(data["source"]), Alias(data["target"])),
        None if data["connector"] is None else ConnectorName(data["connector"]),
        str(data["target_cluster_id"]),
        tuple(map(_change_from_json, data["changes"])),
        tuple(map(_copy_from_json, copy["of"])),
        None if rate is None else Rate(float(rate["bytes_per_second"]), str(rate["origin"])),
        tuple(Skipped(each["topic"], each["rule"], each["why"]) for each in data["skipped"]),
        tuple(map(_finding_from_json, data["findings"])),
    )


def _change_to_json(change: Change) -> dict[str, Any]:
    return {
        "action": change.action.value,
        "kind": change.kind,
        "cluster": change.cluster,
        "name": change.name,
        "text": change.text,
        "details": dict(change.details),
    }


def _change_from_json(data: Mapping[str, Any]) -> Change:
    return Change(
        Action(data["action"]),
        data["kind"],
        Alias(data["cluster"]),
        data["name"],
        data["text"],
        dict(data["details"]),
    )


def _rate_to_json(rate: Rate) -> dict[str, Any]:
    return {"bytes_per_second": round(rate.bytes_s), "origin": rate.origin}


def _copy_to_json(copy: PlannedCopy) -> dict[str, Any]:
    return {
        "topic": copy.source.topic,
        "partition": copy.source.partition,
        "target_topic": copy.target_topic,
        "task": copy.task,
        "begin": copy.begin,
        "end": copy.end,
        "records": copy.records,
        "bytes": copy.bytes,
    }


def _copy_from_json(data: Mapping[str, Any]) -> PlannedCopy:
    return PlannedCopy(
        TopicPartition(data["topic"], data["partition"]),
        data["target_topic"],
        data["task"],
        data["begin"],
        data["end"],
        data["bytes"],
    )


def _finding_to_json(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "severity": finding.severity.value,
        "subject": finding.subject,
        "text": finding.text,
        "remedy": finding.remedy,
    }


def _finding_from_json(data: Mapping[str, Any]) -> Finding:
    return Finding(data["kind"], Severity(data["severity"]), data["subject"], data["text"], data["remedy"])
