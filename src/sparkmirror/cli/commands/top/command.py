"""Defines `sparkmirror top`: what a mirror does now, as tables in a terminal."""

import argparse
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from sparkmirror.cli.arguments import is_url, not_empty
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE
from sparkmirror.cli.mirroring_flows import mirroring_flows
from sparkmirror.cli.mirrors import Ask, MirrorApi, answers_of
from sparkmirror.cli.rest_access import add_login_arguments, connected
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.extras import how_to_install
from sparkmirror.domain.printable import printable
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file
from sparkmirror.status.mirror_watch import MirrorWatch
from sparkmirror.ui.current_view import CurrentView, this_process

_HELP: Final = """\
Shows topics, partitions, consumer groups and events of a mirror, the worst
first, again each second: of a URL (a worker, `run --http`, `watch`) as the mirror
says it, of a FILE from Kafka alone, Java's mirrors included, every 5 s. Changes
nothing.

keys: t topics, p partitions, g groups, e events, f the next flow, s sort by the
next column, r reverse, / filter, Escape no filter, q quit

examples:
  sparkmirror top http://mirror-host:8080
  sparkmirror top https://mirror-host:8080 --user ops --password-file ops.txt
  sparkmirror top mm2.properties

needs textual: pip install 'sparkmirror[top]'
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser("top", description=_HELP)
    parser.add_argument(
        "of", type=not_empty, metavar="FILE | URL", help="the mirror's mm2.properties, or its URL"
    )
    add_login_arguments(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    try:
        _run(arguments)
    except (SparkmirrorError, OSError) as error:
        sys.stderr.write(f"sparkmirror top: {printable(str(error))}\n")
        return CANNOT_TELL
    return FINE


def _run(arguments: argparse.Namespace) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SparkmirrorError("needs a terminal; `sparkmirror status` and `lag` print to files and pipes")
    sys.stderr.write(f"asking {printable(arguments.of)} …\n")  # loading and connecting take seconds
    try:
        from sparkmirror.cli.commands.top.app import TopApp  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise SparkmirrorError(f"needs {error.name}: {how_to_install('top')}") from error
    if not is_url(arguments.of):
        with _watching(Path(arguments.of)) as ask:
            TopApp(ask).run()
    else:
        with connected(arguments, arguments.of) as rest:
            api = MirrorApi(rest)
            api.flows()  # a wrong URL ends here, with its error
            TopApp(api.asked).run()


@contextmanager
def _watching(file: Path) -> Iterator[Ask]:
    flows = mirroring_flows(file, read_mirror_maker_file(file).flows)
    watch = MirrorWatch([(flow.settings, flow.connector) for flow in flows])
    view = CurrentView(this_process, watch.looks)
    logging.disable()  # what fails is in the view; lines of a log would tear the tables
    watch.start()
    try:
        yield answers_of(view.get)
    finally:
        watch.stop()
        logging.disable(logging.NOTSET)
