"""Defines `sparkmirror topics explain`: why a topic is mirrored or not, and its progress."""

import argparse
from collections.abc import Collection, Sequence
from typing import Any, Final

from rich.console import Console

from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE
from sparkmirror.cli.mirroring_flows import add_explain_arguments, explained
from sparkmirror.cli.terminal import aligned
from sparkmirror.plan.topic_facts import topic_facts
from sparkmirror.setup.topic_explanation import PartitionExplanation, TopicExplanation, explain

_HELP: Final = """\
Explains for a topic of a flow's source, rule by rule, why it is mirrored or not, its name on the target,
what blocks it there (rights, names, replicas), which configs and ACLs differ and whether they are synced, and
the progress of each partition. Changes nothing; the mirror, Java's or this one, may be running.

the rules, in their order:
  filter      topics, topics.exclude; heartbeats are always included (heartbeats.replication.enabled)
  internal    Kafka's own topics and MirrorMaker's are never mirrored
  cycle       a topic that came from the target, by its name, is not sent back

examples:
  sparkmirror topics explain orders mm2.properties
  sparkmirror topics explain orders mm2.properties --flow 'us-west->us-east' -o json
"""


def add_command(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "explain",
        help="why a topic is mirrored or not, rule by rule, and its progress",
        description=_HELP,
    )
    parser.add_argument("topic", metavar="TOPIC", help="a topic, by its name on the source")
    add_explain_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    found = explained(
        arguments,
        "topics explain",
        lambda flow: explain(topic_facts(flow.settings, flow.connector, arguments.topic)),
        show,
        to_json,
    )
    if found is None:
        return CANNOT_TELL
    return FINE if all(each.is_mirrored for each in found) else NOT_FINE


def show(console: Console, found: TopicExplanation) -> None:
    facts = found.facts
    console.print(f"[bold]{facts.topic}[/]  {facts.flow}  as {facts.remote}", highlight=False, soft_wrap=True)
    for verdict in facts.verdicts:
        _print(console, f"{'✓' if verdict.passes else '✗'} {verdict.rule}: {verdict.why}")
    for line in found.obstacles:
        _print(console, f"✗ {line}")
    for line in found.notes:
        _print(console, line)
    if found.partitions:
        _print_table(console, _partitions(found), right=(1, 2, 3, 4, 6))
    for partition in found.partitions:
        _print(console, f"{'✓' if partition.is_fine else '✗'} {partition.facts.source}: {partition.why}")
    if facts.configs:
        _print_table(console, _configs(found))
    for acl in facts.acls:
        _print(console, f"ACL that {facts.flow.target} lacks until the next sync: {acl}")


def _print(console: Console, line: str) -> None:
    console.print(f"  {line}".rstrip(), highlight=False, markup=False, soft_wrap=True)


def _print_table(console: Console, rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> None:
    for line in ("", *aligned(rows, right), ""):
        _print(console, line)


def _partitions(found: TopicExplanation) -> list[tuple[str, ...]]:
    flow = found.facts.flow
    rows = [
        (
            str(each.facts.source),
            _number(each.facts.start),
            _number(each.facts.end),
            _number(each.facts.mirrored_to),
            _number(each.lag),
            str(each.facts.target),
            _number(each.facts.target_end),
        )
        for each in found.partitions
    ]
    return [(f"on {flow.source}", "first", "end", "mirrored to", "lag", f"on {flow.target}", "end"), *rows]


def _configs(found: TopicExplanation) -> list[tuple[str, ...]]:
    flow = found.facts.flow
    rows = [(each.name, _text(each.source), _text(each.target), each.why) for each in found.facts.configs]
    return [("config that differs", f"on {flow.source}", f"on {flow.target}", ""), *rows]


def _number(number: int | None) -> str:
    return "-" if number is None else str(number)


def _text(value: str | None) -> str:
    return "-" if value is None else value


def to_json(found: TopicExplanation) -> dict[str, Any]:
    facts = found.facts
    return {
        "flow": str(facts.flow),
        "topic": facts.topic,
        "target_topic": facts.remote,
        "mirrored": found.is_mirrored,
        "rules": [
            {"rule": verdict.rule, "passes": verdict.passes, "why": verdict.why} for verdict in facts.verdicts
        ],
        "obstacles": list(found.obstacles),
        "notes": list(found.notes),
        "source_partitions": facts.source_partitions,
        "target_partitions": facts.target_partitions,
        "configs": [
            {"name": each.name, "source": each.source, "target": each.target, "why": each.why}
            for each in facts.configs
        ],
        "missing_acls": list(facts.acls),
        "partitions": [_partition_to_json(partition) for partition in found.partitions],
    }


def _partition_to_json(partition: PartitionExplanation) -> dict[str, Any]:
    facts = partition.facts
    return {
        "source": str(facts.source),
        "target": str(facts.target),
        "why": partition.why,
        "first_offset": facts.start,
        "end_offset": facts.end,
        "mirrored_to": facts.mirrored_to,
        "lag": partition.lag,
        "target_end_offset": facts.target_end,
        "state": facts.state,
        "error": facts.error,
        "notice": facts.notice,
        "incidents": dict(facts.incidents),
    }
