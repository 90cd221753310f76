"""Selects the flows of an mm2.properties that mirror topics."""

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.settings.configured import ConfiguredFlow, MirroringFlow


def add_flow_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--flow", action="append", metavar="A->B", help="only this flow; may be given more than once"
    )


def mirroring_flows(
    file: Path, flows: Iterable[ConfiguredFlow], wanted: Sequence[str] | None = None
) -> list[MirroringFlow]:
    """Leave out flows that only emit heartbeats.

    Raises SparkmirrorError if none is left, or one is unknown.
    """
    found = [MirroringFlow(flow, flow.source) for flow in flows if flow.source is not None]
    unknown = sorted(set(wanted or ()) - {flow.name for flow in found})
    if unknown or not found:
        missing = f"no flow {', '.join(unknown)}" if unknown else "no flow"
        names = ", ".join(flow.name for flow in found) or "none"
        raise SparkmirrorError(f"{file} has {missing} that mirrors topics (it has: {names})")
    return [flow for flow in found if wanted is None or flow.name in wanted]
