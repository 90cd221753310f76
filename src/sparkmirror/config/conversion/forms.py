"""Recognizes the form of a configuration file, and converts between the forms."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.config.connector_texts import WrittenConnector, written_connectors
from sparkmirror.config.conversion.connector_json import (
    JsonConnector,
    connector_files,
    flows_of,
    mirror_connector,
    parse_connectors,
    worker_of,
)
from sparkmirror.config.conversion.mirror_maker_properties import (
    mirror_maker_properties,
    mirrors_of,
    properties_text,
)
from sparkmirror.config.conversion.model import Kind, MirroredFlow, Mirrors, Remarks
from sparkmirror.config.conversion.strimzi import is_resource, parse_resources
from sparkmirror.config.conversion.strimzi_clusters import MOUNTED_SECRETS
from sparkmirror.config.file_kinds import (
    CONNECTOR_WAYS,
    check_mirror_maker,
    check_rendered,
    is_connector,
    is_worker,
)
from sparkmirror.config.properties import Properties, parse_properties, read_bytes, read_text
from sparkmirror.config.text_files import Text, check_not_utf_16, decoded_properties
from sparkmirror.config.two_policies import difference
from sparkmirror.domain.errors import ConfigError, InFileError


class Form(Enum):
    """The forms of a configuration; resources of Strimzi are only read."""

    PROPERTIES = "properties"
    JSON = "json"
    STRIMZI = "strimzi"


WRITTEN_FORMS: Final = (Form.PROPERTIES, Form.JSON)


class File(NamedTuple):
    """`odd_line` is the first line for which a properties file is not UTF-8."""

    name: str
    text: str
    odd_line: int | None = None


_YAML: Final = (".yaml", ".yml")
_LATIN_MARK: Final = "\xef\xbb\xbf"
"""UTF-8's byte order mark, read as Latin-1."""


@contextmanager
def naming(file: str) -> Iterator[None]:
    """Let a ConfigError begin with the file, unless it is about the file itself."""
    try:
        yield
    except ConfigError as error:
        if error.key == file or isinstance(error, InFileError):
            raise
        raise InFileError(file, error) from error


def read_file(path: Path) -> File:
    """Raises ConfigError naming the file for what can't be read, UTF-16, and a template."""
    content, name = read_bytes(path), str(path)
    found = File(name, content.decode("latin-1"))
    check_not_utf_16(content, name)
    if form_of(found) is Form.PROPERTIES:
        found = File(name, *decoded_properties(content, name))
    else:
        found = File(name, read_text(path))
    check_rendered(found.text, name)
    return found


def form_of(file: File) -> Form:
    """The form of a file by its content, or else by its name."""
    if is_resource(file.text) or file.name.endswith(_YAML):
        return Form.STRIMZI
    begin = file.text.lstrip(f"\ufeff{_LATIN_MARK} \t\r\n")
    if begin.startswith("{{"):  # a template of any form
        return Form.PROPERTIES
    return Form.JSON if begin.startswith(("{", "[")) else Form.PROPERTIES


def properties_of(file: File) -> Properties:
    """The properties of a file of that form. Raises ConfigError."""
    return parse_properties(Text(file.text, file.odd_line), file.name)


def connectors_in(file: File) -> list[WrittenConnector]:
    """The connectors of a JSON file, or of a properties file. Raises ConfigError for other files."""
    if form_of(file) is Form.JSON:
        return written_connectors(file.text, file.name)
    properties = properties_of(file)
    if form_of(file) is Form.STRIMZI or not is_connector(properties):
        raise ConfigError(file.name, None, "is no JSON, and no properties with a connector.class")
    return [_written(properties)]


def _written(properties: Properties) -> WrittenConnector:
    return WrittenConnector(properties.get("name"), properties)


def mirror_maker_properties_of(file: File, remarks: Remarks) -> Properties:
    """Read an mm2.properties, or make one of a resource. Raises ConfigError for files of another kind."""
    match form_of(file):
        case Form.STRIMZI:
            return mirror_maker_properties(read([file], remarks), remarks)
        case Form.JSON:
            raise ConfigError(
                file.name, None, f"holds a connector as JSON, not an mm2.properties: {CONNECTOR_WAYS}"
            )
        case Form.PROPERTIES:
            properties = properties_of(file)
            with naming(file.name):
                check_mirror_maker(properties)
            return properties


def read(files: Sequence[File], remarks: Remarks, secrets: str = MOUNTED_SECRETS) -> Mirrors:
    """Read several files as one configuration. Raises ConfigError naming the file that can't be used."""
    connectors: list[JsonConnector] = []
    workers: list[tuple[str, Properties]] = []
    found: list[Mirrors] = []
    for file in files:
        name, text, _ = file
        match form_of(file):
            case Form.JSON:
                connectors += parse_connectors(text, name, remarks)
            case Form.STRIMZI:
                with naming(name):
                    found.append(parse_resources(text, name, secrets, remarks))
            case Form.PROPERTIES:
                properties = properties_of(file)
                if is_worker(properties):
                    workers.append((name, properties))
                elif is_connector(properties):
                    connectors += filter(None, [mirror_connector(_written(properties), name, remarks)])
                else:
                    with naming(name):
                        check_mirror_maker(properties)
                        found.append(mirrors_of(properties, remarks))
    found.append(_connect_cluster(connectors, workers, remarks))
    mirrors = _together(found, files[-1].name, remarks)
    for flow in mirrors.flows:
        _compare_policies(flow, remarks)
    return mirrors


def written(mirrors: Mirrors, form: Form, remarks: Remarks) -> list[File]:
    """Write a configuration as the files of a form."""
    match form:
        case Form.PROPERTIES:
            found = mirror_maker_properties(mirrors, remarks)
            return [File("mm2.properties", properties_text(found))] if found["clusters"] else []
        case Form.JSON:
            files = connector_files(mirrors, remarks)
            return [File(f"{name}.json", _json(settings)) for name, settings in files.items()]
        case Form.STRIMZI:
            raise ConfigError("--to", form.value, "is a form that is only read")


def one_json(files: Sequence[File]) -> str:
    """Several connectors in one text: an array of what `POST /connectors` takes."""
    connectors = [json.loads(file.text) for file in files]
    return _json([{"name": each["name"], "config": each} for each in connectors])


def _json(content: object) -> str:
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


def _connect_cluster(
    connectors: list[JsonConnector], workers: list[tuple[str, Properties]], remarks: Remarks
) -> Mirrors:
    if len(workers) > 1:
        raise ConfigError(workers[1][0], None, "is a second Connect worker; convert the clusters one by one")
    if workers and not connectors:
        raise ConfigError(workers[0][0], None, "is a Connect worker's; give the files of its connectors too")
    worker = Properties()
    for name, properties in workers:
        worker = worker_of(properties, connectors, name, remarks)
    return flows_of(connectors, worker, remarks)


def _compare_policies(flow: MirroredFlow, remarks: Remarks) -> None:
    if flow.connectors.keys() >= {Kind.SOURCE, Kind.CHECKPOINT}:
        found = difference(flow.flow, flow.connectors[Kind.SOURCE], flow.connectors[Kind.CHECKPOINT])
        if found is not None:
            remarks.warn(f"{found}. An mm2.properties, and run, take the source connector's for both")


def _together(found: Sequence[Mirrors], last: str, remarks: Remarks) -> Mirrors:
    flows = tuple(flow for mirrors in found for flow in mirrors.flows)
    process = Properties()
    for mirrors in found:
        process |= mirrors.process
    if not flows:
        reasons = "".join(f"; {remark.text}" for remark in remarks if remark.left_out)
        raise ConfigError(last, None, f"and whatever was given with it hold no flow to convert{reasons}")
    names = [flow.flow for flow in flows]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ConfigError(str(twice), None, "is in two of the files")
    return Mirrors(flows, process)
