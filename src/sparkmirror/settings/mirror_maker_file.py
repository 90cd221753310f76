"""Reads an mm2.properties, or the Strimzi resource that stands for one, and requires Java."""

import logging
import os
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from sparkmirror.config.conversion import forms
from sparkmirror.config.conversion.model import Remarks
from sparkmirror.config.metrics_options import MetricsOptions
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.java.find_java import find_java
from sparkmirror.settings.configured import ConfiguredFlow, configured_flow
from sparkmirror.settings.rings import RingFlow, check_rings

_log = logging.getLogger(__name__)


class MirrorMakerFile(NamedTuple):
    """`spark` holds the file's `spark.*`; `config` is what it says, also of flows that are not to run."""

    flows: list[ConfiguredFlow]
    spark: dict[str, str]
    config: MirrorMakerConfig

    @property
    def shared(self) -> bool:
        """Whether other processes run the same file and share its flows (KIP-710)."""
        return self.config.internal_rest

    @property
    def metrics(self) -> MetricsOptions:
        """Raises ConfigError."""
        return self.config.metrics_options()


def read_mirror_maker_file(file: Path, into_clusters: Collection[str] | None = None) -> MirrorMakerFile:
    """Finds every error of the file. Raises ConfigError naming the file."""
    remarks = Remarks()
    properties = read_mirror_maker_properties(file, remarks)
    for remark in remarks:
        level = logging.WARNING if remark.left_out or remark.warns else logging.INFO
        _log.log(level, "%s: %s", file, remark)
    with forms.naming(str(file)):
        config = MirrorMakerConfig(properties)
        flows = [configured_flow(flow) for flow in config.flows(into_clusters)]
        _check_rings(config, flows)
        spark = dict(config.spark_properties())
        return MirrorMakerFile(flows, spark, config)


def _check_rings(config: MirrorMakerConfig, flows: Sequence[ConfiguredFlow]) -> None:
    """Check rings also with the file's other flows, which run elsewhere: their errors are reported there."""
    every = {flow.flow: flow for flow in flows}
    with suppress(ConfigError):
        every.update(
            (other.flow, configured_flow(other)) for other in config.flows() if other.flow not in every
        )
    sources = [flow.source for flow in every.values() if flow.source is not None]
    check_rings([RingFlow(source.settings, source.writes_producer_ids) for source in sources])


def read_mirror_maker_properties(file: Path, remarks: Remarks | None = None) -> Properties:
    """The properties of the file, or the equivalent of a Strimzi resource. Raises ConfigError."""
    remarks = Remarks() if remarks is None else remarks
    return forms.mirror_maker_properties_of(forms.read_file(file), remarks)


def require_java() -> None:
    """Raises JavaMissingError. Spark takes JAVA_HOME before PATH, whatever its version."""
    java, home = find_java(), os.environ.get("JAVA_HOME")
    if home and not java.executable.startswith(home):
        del os.environ["JAVA_HOME"]
