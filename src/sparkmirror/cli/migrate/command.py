"""`sparkmirror migrate`: its arguments."""

import argparse
from pathlib import Path

from sparkmirror.cli.arguments import positive
from sparkmirror.cli.migrate import consumers, producers

_ENDING = """\
Nothing is stored but what was overwritten, on the target: a run that was interrupted is begun again, finds
what is done already, and goes on.

exit codes: 0 done (or a plan that can be carried out), 1 not possible, or not within the time-out, with the
reason; 2 wrong usage
"""

_CONSUMERS_HELP = f"""\
Moves consumer groups to the target of a flow, so that they go on there exactly where they are:
  check    what the group has committed on the source, and how much it has not read yet
  wait     until its consumers on the source are stopped
  mirror   until the mirror has copied, and told of, all that the group has read
  sync     write the translated offsets for the group on the target; it is never set back there
  verify   read them back, print the position of every partition
Then the consumers can be started on the target. --roll-back restores the offsets that were there before.

examples:
  sparkmirror migrate consumers --group billing --dry-run mm2.properties
  sparkmirror migrate consumers --group billing --group shipping mm2.properties
  sparkmirror migrate consumers --group billing --yes --timeout 600 -o json mm2.properties
  sparkmirror migrate consumers --group billing --roll-back mm2.properties

{_ENDING}"""

_PRODUCERS_HELP = f"""\
Says when the producers of some topics can go on at the target of a flow:
  check      which partitions these are, and how much of them is not mirrored yet
  stop       until nobody writes to them on the source any more: stop the producers
  drain      until all of it is on the target
  heartbeat  the flow's last one there: that its mirror still runs
  verify     compare the end offsets of both clusters, print which offset is which
Then the producers can be started on the target, and the records keep their order. Nothing is written.

examples:
  sparkmirror migrate producers --topic 'orders.*' --dry-run mm2.properties
  sparkmirror migrate producers --topic orders --topic payments --still-for 30 mm2.properties

{_ENDING}"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "migrate",
        help="move consumer groups and producers to the target of a flow",
        description="Move consumer groups and producers to the target of a flow, step by step.",
    )
    kinds = parser.add_subparsers(title="what moves", metavar="WHAT", required=True)
    _add_consumers(kinds)
    _add_producers(kinds)


def _add_consumers(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = kinds.add_parser(
        "consumers",
        help="consumer groups, exactly to where they are",
        description=_CONSUMERS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--group", required=True, action="append", dest="groups", metavar="GROUP", help="may be repeated"
    )
    _add_common(parser)
    parser.add_argument(
        "--leave-untranslated",
        action="store_true",
        help="move a group although some of its offsets are older than all that the mirror tells of: there "
        "its consumers begin as their auto.offset.reset says",
    )
    parser.add_argument(
        "--roll-back",
        action="store_true",
        help="restore the offsets that the groups had on the target, and remove those that they had not",
    )
    parser.set_defaults(run=consumers.run, prog=parser.prog)


def _add_producers(kinds: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = kinds.add_parser(
        "producers",
        help="producers, once all that they wrote is there",
        description=_PRODUCERS_HELP,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--topic",
        required=True,
        action="append",
        dest="topics",
        metavar="REGEX",
        help="whole names of topics on the source; may be repeated",
    )
    _add_common(parser)
    parser.add_argument(
        "--still-for",
        type=positive,
        default=10,
        metavar="SECONDS",
        help="how long the end offsets must stand still until the producers count as stopped (%(default)s)",
    )
    parser.set_defaults(run=producers.run, prog=parser.prog)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help="the mirror's mm2.properties")
    parser.add_argument("--flow", metavar="SOURCE->TARGET", help="which flow of the file, if it has several")
    parser.add_argument("--dry-run", action="store_true", help="show the plan, do nothing")
    parser.add_argument("--yes", action="store_true", help="begin without being asked")
    parser.add_argument(
        "--timeout",
        type=positive,
        default=300,
        metavar="SECONDS",
        help="for all the waiting together (%(default)s)",
    )
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="(text)")
