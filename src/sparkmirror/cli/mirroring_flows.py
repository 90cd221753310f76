"""The flows of an mm2.properties that mirror topics, and those of them that an option names."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from sparkmirror.connectors.flow_settings import FlowSettings, SourceConfig
from sparkmirror.domain.errors import SparkmirrorError


class MirroringFlow(NamedTuple):
    settings: FlowSettings
    connector: SourceConfig

    @property
    def name(self) -> str:
        return str(self.settings.flow)


def add_flow_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--flow", action="append", metavar="A->B", help="only this flow; may be given more than once"
    )


def mirroring_flows(
    file: Path, flows: Iterable[FlowSettings], wanted: Sequence[str] | None = None
) -> list[MirroringFlow]:
    """Others emit heartbeats only. Raises SparkmirrorError when there is none, or none of a wanted name."""
    found = [MirroringFlow(flow, flow.source) for flow in flows if flow.source is not None]
    unknown = sorted(set(wanted or ()) - {flow.name for flow in found})
    if unknown or not found:
        missing = f"no flow {', '.join(unknown)}" if unknown else "no flow"
        names = ", ".join(flow.name for flow in found) or "none"
        raise SparkmirrorError(f"{file} has {missing} that mirrors topics (it has: {names})")
    return [flow for flow in found if wanted is None or flow.name in wanted]
