"""`sparkmirror archive`: what executors of a Spark cluster need of Python, in one file."""

import argparse
from pathlib import Path

from rich.console import Console

from sparkmirror.cli.terminal import StatusLines
from sparkmirror.spark.executor_archive import archive_contents, binary_suffix, python_version, write_archive
from sparkmirror.spark.shipping import ARCHIVE

_DESCRIPTION = """\
Write sparkmirror and the packages that its tasks import into one archive (about 60 MB) for the executors of a
Spark cluster. Commands that run on a cluster make and bring one by themselves. Make your own to put it where
the cluster gets it faster than from the machine of the driver, or to see what is in it.

Executors need a Python of the driver's minor version and platform, and nothing else.
"""

_EXAMPLES = f"""\
examples:
  sparkmirror archive sparkmirror.tar.gz
  hdfs dfs -put sparkmirror.tar.gz /apps/
  # and in mm2.properties:
  {ARCHIVE} = hdfs:///apps/sparkmirror.tar.gz
  {ARCHIVE} = none        # executors have sparkmirror installed, in an image say
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "archive",
        help="pack what executors of a Spark cluster need of Python",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=_archive_name, metavar="OUT.tar.gz", help="the archive to write")
    parser.add_argument(
        "--with",
        dest="more",
        action="append",
        default=[],
        metavar="DISTRIBUTION",
        help="an installed distribution to pack too, with what it requires",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    status = StatusLines(Console(stderr=True))
    contents = archive_contents(arguments.more)
    with status.updates() as update:
        update(f"Packing {len(contents.files):,} files")
        write_archive(contents, arguments.file)
    size_mb = arguments.file.stat().st_size / 1e6
    status.print(
        f"{arguments.file}: {size_mb:.0f} MB for Python {python_version()} (modules *{binary_suffix()})"
    )
    status.print(f"In it: sparkmirror, {', '.join(contents.distributions)}")
    return 0


def _archive_name(text: str) -> Path:
    if not text.endswith((".tar.gz", ".tgz")):
        raise argparse.ArgumentTypeError(f"{text} must end in .tar.gz: Spark unpacks it by its name")
    return Path(text)
