"""Defines `sparkmirror topics explain`: why a topic is mirrored or not, and its progress."""

import argparse
from typing import Any, Final

from rich.console import Console

from sparkmirror.cli.explanations import (
    Columns,
    Explained,
    add_explain_arguments,
    explain_flows,
    print_line,
    print_table,
)
from sparkmirror.domain.explanation import Explanation
from sparkmirror.plan.topic_facts import topic_facts
from sparkmirror.setup.topic_explanation import TopicFacts, explain

COLUMNS: Final = Columns(
    {"first_offset": "first", "end_offset": "end", "mirrored_to": "mirrored to", "lag": "lag"},
    {"target_end_offset": "end"},
)

_HELP: Final = """\
Explains for a topic of a flow's source, rule by rule, why it is mirrored or not, its name on the target,
what blocks it there (rights, names, replicas), which configs and ACLs differ and whether they are synced, and
the progress of each partition. Changes nothing; the mirror, Java's or this one, may be running.

the rules, in their order:
  filter      topics, topics.exclude; heartbeats are always included (heartbeats.replication.enabled)
  internal    Kafka's own topics and MirrorMaker's are never mirrored
  cycle       a topic that came from the target, by its name, is not sent back

examples:
  sparkmirror topics explain mm2.properties orders
  sparkmirror topics explain mm2.properties orders --flow 'us-west->us-east' -o json
"""


def add_command(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = verbs.add_parser(
        "explain",
        help="why a topic is mirrored or not, rule by rule, and its progress",
        description=_HELP,
    )
    add_explain_arguments(parser)
    parser.add_argument("topic", metavar="TOPIC", help="a topic, by its name on the source")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    return explain_flows(
        arguments,
        "topics explain",
        COLUMNS,
        lambda flow: explained(topic_facts(flow.settings, flow.connector, arguments.topic)),
    )


def explained(facts: TopicFacts) -> Explained:
    found = explain(facts)
    title = f"{facts.topic}  {facts.flow}  as {facts.remote}"
    return Explained(found, title, _to_json(facts, found), lambda console: _show_rest(console, facts))


def _show_rest(console: Console, facts: TopicFacts) -> None:
    flow = facts.flow
    if facts.configs:
        heading = ("config that differs", f"on {flow.source}", f"on {flow.target}", "")
        rows = [(each.name, _text(each.source), _text(each.target), each.why) for each in facts.configs]
        print_table(console, [heading, *rows])
    for acl in facts.acls:
        print_line(console, f"ACL that {flow.target} lacks until the next sync: {acl}")


def _text(value: str | None) -> str:
    return "-" if value is None else value


def _to_json(facts: TopicFacts, found: Explanation) -> dict[str, Any]:
    return {
        "topic": facts.topic,
        "target_topic": facts.remote,
        "mirrored": found.is_fine,
        "rules": [
            {"rule": verdict.rule, "passes": verdict.passes, "why": verdict.why} for verdict in facts.verdicts
        ],
        "source_partitions": facts.source_partitions,
        "target_partitions": facts.target_partitions,
        "configs": [
            {"name": each.name, "source": each.source, "target": each.target, "why": each.why}
            for each in facts.configs
        ],
        "missing_acls": list(facts.acls),
    }
