"""Defines `sparkmirror convert`: converts configurations of MirrorMaker 2 between their forms."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sparkmirror.cli.arguments import input_file
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE
from sparkmirror.config.conversion import forms
from sparkmirror.config.conversion.forms import File, Form
from sparkmirror.config.conversion.model import Remarks
from sparkmirror.config.conversion.strimzi_clusters import MOUNTED_SECRETS
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from sparkmirror.files import written_whole
from sparkmirror.settings.mirror_maker_file import check_file

_READABLE_BY_OWNER: Final = 0o600
"""Configurations may hold passwords."""

_HELP = """\
Read a configuration of MirrorMaker 2 in one form and write it as properties or JSON:

  properties   the mm2.properties of connect-mirror-maker.sh and of sparkmirror run
  json         connectors for PUT requests to Kafka Connect: mm2-msc-A.json, mm2-hbc-A.json, mm2-cpc-A.json
               for a flow from A
  Strimzi      KafkaMirrorMaker2 resources, v1 and v1beta2, are read

A file's form is recognized by its content. The properties of the Connect worker that runs the connectors may
be given beside their JSON files: they name the topic of positions, so that the flows continue there.
"""

_EPILOG = """\
examples:
  sparkmirror convert mm2-*.json connect-distributed.properties --to properties -o mm2.properties
  sparkmirror convert mm2.properties --to json -o connectors/
  sparkmirror convert mirror-maker-2.yaml --to properties --secrets /run/secrets
  sparkmirror run mirror-maker-2.yaml    # needs no conversion

What the other form can't express is named on standard error as `left out`; other lines there are notes.
Placeholders like ${file:/a.properties:key} stay as they are, and Kubernetes' secrets become such
placeholders: none is resolved. Files are written for their owner only, since they may hold passwords.
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "convert",
        description=_HELP,
        epilog=_EPILOG,
    )
    parser.add_argument(
        "files", nargs="+", type=input_file, metavar="FILE", help="the files of one configuration"
    )
    parser.add_argument(
        "--to", required=True, choices=[form.value for form in forms.WRITTEN_FORMS], help="the form to write"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="the file to write, for json the folder (default: standard output, for json as one array)",
    )
    parser.add_argument(
        "--secrets",
        default=MOUNTED_SECRETS,
        metavar="FOLDER",
        help=f"where Kubernetes' secrets are mounted, a folder for each ({MOUNTED_SECRETS})",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    remarks, form = Remarks(), Form(arguments.to)
    try:
        given = [forms.read_file(file) for file in arguments.files]
        mirrors = forms.read(given, remarks, arguments.secrets)
        for file in given:
            check_file(file)
        files = forms.written(mirrors, form, remarks)
        _write(files, form, arguments)
    except (SparkmirrorError, OSError) as error:
        _say(error)
        return CANNOT_TELL
    _say(*remarks)
    return NOT_FINE if any(remark.left_out for remark in remarks) else FINE


def _say(*sentences: object) -> None:
    for sentence in sentences:
        sys.stderr.write(f"sparkmirror: {sentence}\n")


def _write(files: Sequence[File], form: Form, arguments: argparse.Namespace) -> None:
    output: Path | None = arguments.output
    if output is None:
        texts = [forms.one_json(files)] if form is Form.JSON else [file.text for file in files]
        sys.stdout.write("".join(texts))
        return
    if form is Form.JSON:
        output.mkdir(parents=True, exist_ok=True)
    inputs = {file.resolve() for file in arguments.files}
    paths = {output / file.name if output.is_dir() else output: file for file in files}
    for path in paths:
        if path.resolve() in inputs:
            raise ConfigError(str(path), None, "is an input file; write to another file")
    for path, file in paths.items():
        with written_whole(path) as draft:
            draft.touch(_READABLE_BY_OWNER)
            draft.write_text(file.text, encoding="utf-8")
