"""Recognizes the form of a configuration file, and converts between the forms."""

import json
from collections.abc import Sequence
from enum import Enum
from typing import Final, NamedTuple

from sparkmirror.config.connector_options import MIRROR_SOURCE
from sparkmirror.config.conversion.connector_json import (
    JsonConnector,
    connector_files,
    flows_of,
    is_worker,
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
from sparkmirror.config.properties import Properties, parse_properties
from sparkmirror.domain.errors import ConfigError


class Form(Enum):
    """The forms of a configuration; resources of Strimzi are only read."""

    PROPERTIES = "properties"
    JSON = "json"
    STRIMZI = "strimzi"


WRITTEN_FORMS: Final = (Form.PROPERTIES, Form.JSON)


class File(NamedTuple):
    name: str
    text: str


_YAML: Final = (".yaml", ".yml")
_POLICY: Final = {
    option.name: str(option.default).lower() if isinstance(option.default, bool) else str(option.default)
    for option in MIRROR_SOURCE
    if option.name.startswith("replication.policy.")
}


def form_of(file: File) -> Form:
    """The form of a file by its content, or else by its name."""
    if is_resource(file.text) or file.name.endswith(_YAML):
        return Form.STRIMZI
    return Form.JSON if file.text.lstrip("\ufeff \t\r\n").startswith(("{", "[")) else Form.PROPERTIES


def read(files: Sequence[File], remarks: Remarks, secrets: str = MOUNTED_SECRETS) -> Mirrors:
    """Read several files as one configuration. Raises ConfigError naming the file that can't be used."""
    connectors: list[JsonConnector] = []
    workers: list[tuple[str, Properties]] = []
    found: list[Mirrors] = []
    for name, text in files:
        match form_of(File(name, text)):
            case Form.JSON:
                connectors += parse_connectors(text, name, remarks)
            case Form.STRIMZI:
                found.append(parse_resources(text, name, secrets, remarks))
            case Form.PROPERTIES:
                properties = parse_properties(text, name)
                if is_worker(properties):
                    workers.append((name, properties))
                else:
                    found.append(_mirrors_of(name, properties, remarks))
    found.append(_connect_cluster(connectors, workers, remarks))
    mirrors = _together(found, files[-1].name)
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


def _mirrors_of(name: str, properties: Properties, remarks: Remarks) -> Mirrors:
    try:
        return mirrors_of(properties, remarks)
    except ConfigError as error:
        raise ConfigError(f"{name}: {error.key}", error.value, error.reason) from error


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
    if not flow.connectors.keys() >= {Kind.SOURCE, Kind.CHECKPOINT}:
        return
    source, checkpoint = (
        {key: flow.connectors[kind].get(key, default) for key, default in _POLICY.items()}
        for kind in (Kind.SOURCE, Kind.CHECKPOINT)
    )
    for key, value in source.items():
        if checkpoint[key] != value:
            remarks.note(
                f"{flow.flow}: {key} is {value} for its MirrorSourceConnector and {checkpoint[key]} for its"
                " MirrorCheckpointConnector, so checkpoints are of topics that no flow writes; both need one"
            )


def _together(found: Sequence[Mirrors], last: str) -> Mirrors:
    flows = tuple(flow for mirrors in found for flow in mirrors.flows)
    process = Properties()
    for mirrors in found:
        process |= mirrors.process
    if not flows:
        raise ConfigError(last, None, "and whatever was given with it hold no flow to convert")
    names = [flow.flow for flow in flows]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise ConfigError(str(twice), None, "is in two of the files")
    return Mirrors(flows, process)
