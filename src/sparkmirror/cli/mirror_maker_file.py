"""What every command does that is given an mm2.properties: read it, and make ready for Spark."""

import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from sparkmirror.clusters.java import find_java
from sparkmirror.config.known_keys import UnknownKey
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import read_properties
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.engine.session import log_directory
from sparkmirror.runtime.flow_settings import FlowSettings, flow_settings


class MirrorMakerFile(NamedTuple):
    """`spark` holds the file's `spark.*`; `unknown_keys` those that nothing reads."""

    flows: list[FlowSettings]
    spark: dict[str, str]
    unknown_keys: tuple[UnknownKey, ...]


def read_mirror_maker_file(file: Path, into_clusters: Collection[str] | None = None) -> MirrorMakerFile:
    """Everything that can be wrong with the file is found here. Raises SparkmirrorError naming it."""
    properties = read_properties(file)
    try:
        config = MirrorMakerConfig(properties)
        flows = [flow_settings(flow) for flow in config.flows(into_clusters)]
        return MirrorMakerFile(flows, dict(config.spark_properties()), config.unknown_keys())
    except SparkmirrorError as error:
        raise SparkmirrorError(f"{file}: {error}") from error


def require_java() -> None:
    """Raises JavaMissingError. Spark takes JAVA_HOME before PATH, whatever its version."""
    java, home = find_java(), os.environ.get("JAVA_HOME")
    if home and not java.executable.startswith(home):
        del os.environ["JAVA_HOME"]


def spark_log_file(command: str) -> Path:
    """Where Spark's own words go when the user names no file."""
    return log_directory() / f"spark-{command}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
