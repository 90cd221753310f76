"""Declares the options that commands share which move something on a flow."""

import argparse
from pathlib import Path

from sparkmirror.cli.arguments import not_empty, positive


def add_file(parser: argparse.ArgumentParser, text: str = "the mirror's mm2.properties") -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help=text)


def add_flow_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--flow", metavar="SOURCE->TARGET", help="a flow of the file, if it has several")


def add_topics(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--topics", action="append", type=not_empty, metavar="REGEX", help=text)


def add_execute(parser: argparse.ArgumentParser) -> None:
    """Add `--execute` to a command that only plans without it, and asks nothing with it."""
    parser.add_argument("--execute", dest="dry_run", action="store_false", help="carry the plan out")
    parser.set_defaults(yes=True)


def add_still_for(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--still-for",
        type=positive,
        default=10,
        metavar="SECONDS",
        help="how long end offsets must not change until the producers count as stopped (%(default)s)",
    )


def add_timeout_and_output(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--timeout",
        type=positive,
        default=300,
        metavar="SECONDS",
        help="for all the waiting together (%(default)s)",
    )
    parser.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="the result's form (text)"
    )
