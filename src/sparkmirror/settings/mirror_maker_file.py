"""Reads an mm2.properties, or a Strimzi resource in its place."""

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.config.connector_options import CHECKPOINT_CONNECTOR, HEARTBEAT_CONNECTOR, SOURCE_CONNECTOR
from sparkmirror.config.conversion import forms
from sparkmirror.config.conversion.model import Remarks
from sparkmirror.config.file_kinds import is_connector, is_worker
from sparkmirror.config.metrics_options import MetricsOptions
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.settings.configured import ConfiguredFlow, configured_flow, with_opposite
from sparkmirror.settings.parsing import (
    mirror_checkpoint_settings,
    mirror_heartbeat_settings,
    mirror_source_settings,
)
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
        return parsed_mirror_maker(properties, into_clusters)


def parsed_mirror_maker(
    properties: Properties, into_clusters: Collection[str] | None = None
) -> MirrorMakerFile:
    """Finds every error of an mm2.properties that was read. Raises ConfigError."""
    config = MirrorMakerConfig(properties)
    flows = [configured_flow(flow) for flow in config.flows(into_clusters)]
    every = _every_flow(config, flows)
    _check_rings(every)
    paired = [with_opposite(flow, every) for flow in flows]
    return MirrorMakerFile(paired, dict(config.spark_properties()), config)


def check_file(file: forms.File) -> None:
    """Finds the errors that `run`, or a worker, would find in a file that can be converted.

    What placeholders stand for is not known here. Raises ConfigError naming the file.
    """
    match forms.form_of(file):
        case forms.Form.JSON:
            _check_connectors(file)
        case forms.Form.STRIMZI:
            _check_mirror_maker(file)
        case forms.Form.PROPERTIES:
            properties = forms.properties_of(file)
            if is_connector(properties):
                _check_connectors(file)
            elif not is_worker(properties):
                _check_mirror_maker(file)


def _check_mirror_maker(file: forms.File) -> None:
    properties = forms.mirror_maker_properties_of(file, Remarks())
    with _but_for_placeholders(properties, file.name):
        config = MirrorMakerConfig(properties, resolves=False)
        _check_rings([configured_flow(flow) for flow in config.flows()])


def _check_connectors(file: forms.File) -> None:
    for connector in forms.connectors_in(file):
        settings = Properties({"name": connector.name or file.name}) | connector.settings
        parse = _PARSERS.get(settings.get("connector.class", ""))
        if parse is not None:
            with _but_for_placeholders(settings, file.name):
                parse(settings)


_PARSERS: Final[Mapping[str, Callable[[Properties], object]]] = {
    SOURCE_CONNECTOR: mirror_source_settings,
    CHECKPOINT_CONNECTOR: mirror_checkpoint_settings,
    HEARTBEAT_CONNECTOR: mirror_heartbeat_settings,
}


@contextmanager
def _but_for_placeholders(properties: Properties, file: str) -> Iterator[None]:
    try:
        with forms.naming(file):
            yield
    except ConfigError as error:
        if "${" not in properties.get(error.key, ""):
            raise


def _every_flow(config: MirrorMakerConfig, flows: Sequence[ConfiguredFlow]) -> Sequence[ConfiguredFlow]:
    """Add the file's flows that run elsewhere, unless they have errors: those are reported there."""
    every = {flow.flow: flow for flow in flows}
    with suppress(ConfigError):
        every.update((it.flow, configured_flow(it)) for it in config.flows() if it.flow not in every)
    return list(every.values())


def _check_rings(flows: Iterable[ConfiguredFlow]) -> None:
    sources = [flow.source for flow in flows if flow.source is not None]
    check_rings([RingFlow(source.settings, source.writes_producer_ids) for source in sources])


def read_mirror_maker_properties(file: Path, remarks: Remarks | None = None) -> Properties:
    """The properties of the file, or the equivalent of a Strimzi resource. Raises ConfigError."""
    remarks = Remarks() if remarks is None else remarks
    return forms.mirror_maker_properties_of(forms.read_file(file), remarks)
