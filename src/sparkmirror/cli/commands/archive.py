"""Defines `sparkmirror archive`: packs the Python packages that executors need into one file."""

import argparse
from collections.abc import Callable, Collection
from pathlib import Path

from rich.console import Console

from sparkmirror.cli.terminal import StatusLines
from sparkmirror.spark.executor_archive import (
    ArchiveContents,
    archive_contents,
    binary_suffix,
    python_version,
    write_archive,
)
from sparkmirror.spark.shipping import ARCHIVE

_DESCRIPTION = """\
Write sparkmirror and the packages that its tasks import into one archive (about 60 MB) for the executors of a
Spark cluster. Commands that run on a cluster make and ship one by themselves. Make your own to store it
nearer to the cluster than the driver's machine is, or to inspect it.

Executors need a Python of the driver's minor version and platform, and nothing else.
"""

_EXAMPLES = f"""\
examples:
  sparkmirror archive sparkmirror.tar.gz
  hdfs dfs -put sparkmirror.tar.gz /apps/
  # and in mm2.properties:
  {ARCHIVE} = hdfs:///apps/sparkmirror.tar.gz
  {ARCHIVE} = none        # executors have sparkmirror installed, for example in an image
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "archive",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
    )
    parser.add_argument("file", type=_archive_name, metavar="OUT.tar.gz", help="the archive to write")
    parser.add_argument(
        "--with",
        dest="more",
        action="append",
        default=[],
        metavar="DISTRIBUTION",
        help="an installed distribution to pack too, with its requirements",
    )
    parser.set_defaults(run=run)


def run(
    arguments: argparse.Namespace,
    contents_with: Callable[[Collection[str]], ArchiveContents] = archive_contents,
) -> int:
    status = StatusLines(Console(stderr=True))
    contents = contents_with(arguments.more)
    with status.updates() as update:
        update(f"Packing {len(contents.files):,} files")
        write_archive(contents, arguments.file)
    size_mb = arguments.file.stat().st_size / 1e6
    status.print(
        f"{arguments.file}: {size_mb:.0f} MB for Python {python_version()} (modules *{binary_suffix()})"
    )
    status.print(f"Contents: sparkmirror, {', '.join(contents.distributions)}")
    return 0


def _archive_name(text: str) -> Path:
    if not text.endswith((".tar.gz", ".tgz")):
        raise argparse.ArgumentTypeError(f"{text} must end in .tar.gz: Spark unpacks it by its name")
    return Path(text)
