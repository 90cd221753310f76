"""Formats a node's new storage as `kafka-storage.sh format` does, without its JVM.

That tool takes nearly a second to write the features of its Kafka version, which are always the same. They
are beside this file, as it wrote them. Where settings may change what it writes, the tool is run.
"""

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from importlib.resources import files
from pathlib import Path
from typing import Final
from uuid import uuid4

from sparkmirror.java.jars import KAFKA_VERSION

_META: Final = "meta.properties"
_BOOTSTRAP: Final = "bootstrap.checkpoint"
_MATTERS_TO_FORMAT: Final = (
    "process.",
    "node.id",
    "controller.quorum.",
    "log.dir",
    "metadata.log.",
    "unstable.",
)
"""Settings of a node's storage, its role in the quorum, and its features."""


def is_formatted(folder: Path) -> bool:
    return (folder / _META).exists()


def needs_tool(settings: Iterable[str]) -> bool:
    """Whether settings with these names, over our own, need storage that only the tool can format."""
    return any(name.startswith(_MATTERS_TO_FORMAT) for name in settings)


def format_storage(folder: Path, cluster_id: str, node_id: int) -> None:
    """Make the folder a new node's `log.dirs`, with the features of this Kafka version at their defaults."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _BOOTSTRAP).write_bytes(_recorded_bootstrap())
    meta = {"version": 1, "cluster.id": cluster_id, "node.id": node_id, "directory.id": random_id()}
    lines = "".join(f"{key}={value}\n" for key, value in meta.items())
    (folder / _META).write_text(lines, encoding="ascii")  # last: with it the storage counts as formatted


def _recorded_bootstrap() -> bytes:
    """Record batches, as in a snapshot (KIP-630): its header, a record for each feature, its footer."""
    return files(__package__).joinpath(f"kafka-{KAFKA_VERSION}.{_BOOTSTRAP}").read_bytes()


def random_id() -> str:
    """22 characters as Kafka makes them; a leading dash would look like an option to its tools.

    Ids that Kafka reserves are not version 4 (KIP-858).
    """
    while (text := urlsafe_b64encode(uuid4().bytes).decode().rstrip("=")).startswith("-"):
        pass
    return text
