"""Defines `sparkmirror submit-file`: prints the path of the program that `spark-submit` takes."""

import argparse
import sys
from importlib.util import find_spec

_HELP = """\
Prints the path of a program that runs the commands of sparkmirror under `spark-submit`, which takes a file.
Spark's settings are then those of `spark-submit`, its pages included.

examples:
  sparkmirror submit-file    # /usr/lib/python3.11/site-packages/sparkmirror/submit.py
  spark-submit --master yarn $(sparkmirror submit-file) run mm2.properties
  spark-submit --master k8s://https://HOST --deploy-mode cluster local://$(sparkmirror submit-file) \\
    run /etc/sparkmirror/mm2.properties    # in an image with sparkmirror at the same path
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("submit-file", description=_HELP)
    parser.set_defaults(run=run)


def run(_: argparse.Namespace) -> int:
    found = find_spec("sparkmirror.submit")
    assert found is not None
    sys.stdout.write(f"{found.origin}\n")
    return 0
