"""Declares the options that commands share which move something on a flow."""

import argparse

from sparkmirror.cli.arguments import mirror_file, not_empty, positive


def add_file_and_flow(
    parser: argparse.ArgumentParser,
    file: str = "the mirror's mm2.properties",
    flow: str = "a flow of the file, if it has several",
) -> None:
    parser.add_argument("file", type=mirror_file, metavar="FILE", help=file)
    parser.add_argument("--flow", metavar="A->B", help=flow)


def add_topics(parser: argparse.ArgumentParser, text: str, *, is_required: bool = False) -> None:
    parser.add_argument(
        "--topic",
        required=is_required,
        action="append",
        dest="topics",
        type=not_empty,
        metavar="REGEX",
        help=text,
    )


def add_still_for(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--still-for",
        type=positive,
        default=10,
        metavar="SECONDS",
        help="how long end offsets must not change until the producers count as stopped (%(default)s)",
    )


def add_execution(parser: argparse.ArgumentParser) -> None:
    """Add `--execute`, without which a command only shows its plan, and what concerns its course."""
    parser.add_argument("--execute", action="store_true", help="carry the plan out; without it, only show it")
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
