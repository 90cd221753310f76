"""Defines `sparkmirror prepare`: archives the classes that brokers and Spark load, for faster starts."""

import argparse

from rich.console import Console

from sparkmirror.cli.terminal import StatusLines
from sparkmirror.clusters.local import archive_broker_classes
from sparkmirror.spark.log_files import spark_log_file
from sparkmirror.spark.required import require_spark

_DESCRIPTION = """\
Fetch the jars of local brokers, and keep the classes that brokers and Spark load in archives, about 200 MB in
the cache folder. Later starts of this Java on this machine take about half the time: run, verify, demo,
clusters. It takes a minute or two, is optional, and does nothing where the archives exist. Run it again after
an upgrade of Java.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "prepare",
        description=_DESCRIPTION,
    )
    parser.add_argument(
        "--spark-only",
        action="store_true",
        help="only Spark's classes: fetches nothing, as an image is built",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    status = StatusLines(Console(stderr=True))
    require_spark()
    from sparkmirror.spark.session import archive_spark_classes  # noqa: PLC0415 - needs PySpark, the parser does not

    with status.updates() as update:
        if not arguments.spark_only:
            update("Archiving the classes of a broker")
            archive_broker_classes(update)
        update("Archiving the classes of Spark: about a minute")
        archive_spark_classes(spark_log_file("prepare"))
    who = "Spark starts" if arguments.spark_only else "Brokers and Spark start"
    status.print(f"{who} from an archive of classes")
    return 0
