"""Lists the commands of `sparkmirror` in groups, each with the module that defines it.

Help, typos and `--version` are answered from this list alone: importing every module takes two seconds.
"""

import re
from difflib import get_close_matches
from typing import Final, NamedTuple


class Command(NamedTuple):
    module: str
    """The command's module, below `sparkmirror.cli.commands`."""
    help: str


GROUPS: Final = {
    "mirror clusters": {
        "run": Command("run", "mirror clusters as configured in an mm2.properties"),
        "plan": Command("plan.command", "what a mirror would do, and what blocks it"),
        "status": Command("status", "how a mirror is: flows, lag, failures, groups"),
        "top": Command("top.command", "what a mirror does now, in the terminal"),
        "watch": Command("watch", "pages and metrics of a mirror anywhere, Java's included"),
        "lag": Command("lag", "how far a mirror is behind; wait until it has caught up"),
        "events": Command("events", "what happened: starts, failures, incidents, outages"),
        "verify": Command("verify.command", "prove that a mirror is exact, record by record"),
    },
    "move applications": {
        "migrate": Command("migrate.command", "move consumer groups and producers, step by step"),
        "promote": Command("migrate.promote", "make copies with preserved offsets the originals"),
        "failback": Command("migrate.failback", "let the old source of promoted copies follow them"),
        "offsets": Command("migrate.preserve", "give mirrored topics their source's offsets"),
        "groups": Command("groups", "explain a consumer group's offsets on a target"),
        "translate-offsets": Command(
            "mirror_records", "where groups and Spark queries continue after a move"
        ),
        "group-offset-sync": Command("group_offset_sync", "keep a group's offsets at its checkpoints"),
    },
    "see what mirrors leave on a cluster": {
        "topics": Command("mirror_records", "the replicated topics, or why one is mirrored or not"),
        "checkpoints": Command("mirror_records", "the checkpoints of an upstream cluster's groups"),
        "heartbeats": Command("mirror_records", "the heartbeats of the flows into a cluster"),
        "offset-syncs": Command("mirror_records", "the offset syncs that are stored on a cluster"),
    },
    "Kafka Connect": {
        "worker": Command("worker", "run MirrorMaker's connectors behind Connect's REST API"),
        "connectors": Command("connectors.command", "list, put, pause, restart … connectors of any worker"),
        "deploy": Command("deploy", "run a mirror's three connectors, by their files"),
        "redeploy": Command("deploy", "remove a mirror's connectors, and run them again"),
        "undeploy": Command("deploy", "remove a mirror's connectors"),
    },
    "set up and try out": {
        "demo": Command("demo.command", "two real clusters, live mirroring, proof: a minute"),
        "clusters": Command("clusters", "local Kafka clusters for trying things out"),
        "transform": Command("transform", "what a mirror's transforms make of live records"),
        "convert": Command("convert", "connector JSON or a Strimzi resource to mm2.properties"),
        "prepare": Command("prepare", "halve the time of later starts"),
        "archive": Command("archive", "Python packages for the executors of a Spark cluster"),
        "submit-file": Command("submit_file", "the program that spark-submit runs, as a path"),
        "completion": Command("completion", "complete commands in bash and zsh with Tab"),
    },
}
COMMANDS: Final = {name: command for group in GROUPS.values() for name, command in group.items()}
MODULES: Final = tuple(dict.fromkeys(command.module for command in COMMANDS.values()))

_EXAMPLES: Final = """\
begin with:
  sparkmirror demo                   # see it work, without a file or a cluster
  sparkmirror plan mm2.properties    # what a mirror would do; changes nothing
  sparkmirror run mm2.properties     # and do it
  sparkmirror status mm2.properties  # how it is, from any machine
  sparkmirror run -h                 # all about a command, with examples
"""
_OTHER_WORDS: Final = {
    "version": "sparkmirror --version prints it",
    "topics list": "sparkmirror topics lists them without it",
    "groups list": "kafka-consumer-groups.sh lists groups",
    "groups describe": "did you mean explain? kafka-consumer-groups.sh describes groups",
    "connectors ls": "did you mean list?",
    "connectors describe": "did you mean status?",
}
"""The commands that correspond to words of other programs."""
_COLUMN: Final = max(map(len, COMMANDS)) + 4


def overview() -> str:
    """List every command with a line about it, in 80 columns."""
    lines = ["Kafka MirrorMaker 2 on Spark: copies record batches between Kafka clusters.", ""]
    for title, commands in GROUPS.items():
        lines += [f"{title}:", *(f"  {name:<{_COLUMN}}{each.help}" for name, each in commands.items()), ""]
    return "\n".join(["usage: sparkmirror [-h] [--version] COMMAND ...", "", *lines, _EXAMPLES])


def suggestion(typed: str) -> str:
    """The error for a word that is no command, with the command that was probably meant."""
    near = get_close_matches(typed, COMMANDS, n=1)
    hint = f"did you mean {near[0]}?" if near else "sparkmirror -h lists all"
    return f"no command {typed!r}: {_OTHER_WORDS.get(typed, hint)}"


def usage_hint(command: str, error: str) -> str | None:
    """Return what to write instead, where argparse only says what is wrong."""
    if "--bootstrap-server" in error:
        return "the clusters are those of its mm2.properties"
    if "required: FILE" in error:
        return "FILE comes before options that take several values"
    typed = re.search("invalid choice: '([^']*)'", error)
    return None if typed is None else _OTHER_WORDS.get(f"{command} {typed[1]}")
