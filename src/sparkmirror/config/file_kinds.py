"""Says what a file is that a command does not take, and which command takes it. Pure."""

import re
from collections.abc import Iterable
from typing import Final

from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError

_MARK: Final = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|<%.*?%>", re.DOTALL)
_BLANK: Final = re.compile(r"<[A-Za-z][\w .-]*>")
_BROKER: Final = {"broker.id", "node.id", "process.roles", "log.dirs", "zookeeper.connect"}
_WORKER: Final = {"group.id", "offset.storage.topic"}
_STANDALONE: Final = "offset.storage.file.filename"
CLASS: Final = "connector.class"


def check_rendered(text: str, name: str) -> None:
    """Raises ConfigError for a template that was not rendered."""
    lines = [line for line in text.splitlines() if not line.lstrip().startswith(("#", "!"))]
    mark = _MARK.search("\n".join(lines))
    if mark is not None:
        line = text[: text.index(mark[0].splitlines()[0])].count("\n") + 1
        shown = mark[0].splitlines()[0]
        reason = f"holds template marks ({shown}, line {line}): render it first, as with helm template"
        raise ConfigError(name, None, reason)


def is_connector(properties: Properties) -> bool:
    return CLASS in properties and "clusters" not in properties


def is_worker(properties: Properties) -> bool:
    """Whether these are a worker's: mm2.properties have `clusters`."""
    return "clusters" not in properties and properties.keys() >= _WORKER


def check_mirror_maker(properties: Properties) -> None:
    """Raises ConfigError for properties that are no mm2.properties, and for blanks of a template in one."""
    if "clusters" not in properties:
        kind = _kind(properties)
        if kind is not None:
            raise ConfigError(*kind)
        return
    for key, value in properties.items():
        blank = _BLANK.search(value) if key.endswith("bootstrap.servers") else None
        if blank is not None:
            raise properties.error(key, f"{blank[0]} is a blank to fill in")


def _kind(properties: Properties) -> tuple[str, None, str] | None:
    """The key by which the kind is known, and what it is."""
    keys = properties.keys()
    if CLASS in keys:
        return CLASS, None, f"this file holds a connector, not an mm2.properties: {CONNECTOR_WAYS}"
    if keys >= _WORKER:
        return "offset.storage.topic", None, _OF_WORKER
    if _STANDALONE in keys:
        return (
            _STANDALONE,
            None,
            "this file holds the settings of connect-standalone.sh, not an mm2.properties",
        )
    broker = sorted(_BROKER & keys)
    if broker:
        return broker[0], None, "this file holds the settings of a broker, not an mm2.properties"
    if "bootstrap.servers" in keys:
        return (
            "clusters",
            None,
            "is missing: this file holds the settings of one client or worker, not an mm2.properties",
        )
    return None


_OF_WORKER: Final = (
    "this file holds the settings of a Connect worker, not an mm2.properties: run it (sparkmirror worker "
    "FILE), or give it to convert beside its connectors"
)
CONNECTOR_WAYS: Final = (
    "put it on a worker (sparkmirror connectors put NAME FILE), show what it would do (sparkmirror plan FILE "
    "--worker WORKER_FILE), or convert it (sparkmirror convert FILE --to properties)"
)


def no_resource(kinds: Iterable[str], wanted: str) -> str:
    """The reason why a YAML file holds nothing to mirror."""
    found = sorted({kind for kind in kinds if kind})
    if "KafkaMirrorMaker" in found:
        return f"holds a KafkaMirrorMaker, MirrorMaker 1, which was removed: write a {wanted}"
    if "KafkaConnector" in found:
        return f"holds a KafkaConnector, and the kind that is read is {wanted}: {CONNECTOR_WAYS}, as JSON"
    held = f": it holds {', '.join(found)}" if found else ""
    return f"holds no resource with kind: {wanted} and its spec{held}"
