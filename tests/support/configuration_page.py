"""Renders docs/configuration.md from the declarations of sparkmirror's own options.

`python -m tests.support.configuration_page` writes it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from sparkmirror.config.connector_options import (
    CHECKPOINT_CONNECTOR,
    HEARTBEAT_CONNECTOR,
    OWN_OPTIONS,
    SOURCE_CONNECTOR,
)
from sparkmirror.config.definitions import Option, Required
from sparkmirror.config.metrics_options import METRICS
from sparkmirror.config.worker_options import OWN_WORKER
from sparkmirror.connect.validation.descriptions import shown, without_package

PAGE: Final = Path(__file__).parents[2] / "docs" / "configuration.md"

_HEAD: Final = """\
# sparkmirror's own options

Kafka's options of MirrorMaker 2, of Connect workers and of their clients are read as in Kafka 4.3, and
[Kafka's documentation](https://kafka.apache.org/documentation/#mirrormakerconfigs) describes them;
[parity.md](parity.md) lists those that are supported in part or not at all. This page has the options that
sparkmirror adds; `GET /connector-plugins/NAME/config` describes those of the connectors too.
"""
_CONNECTOR: Final = (
    "In `mm2.properties` at the top level or for one flow (`A->B.OPTION`), or in the connector's config."
)
_WORKER: Final = (
    "In the worker's properties. `standby.spark.session` also in `mm2.properties`, below the target's alias "
    "(`B.OPTION`)."
)
_METRICS: Final = "At the top level of `mm2.properties`, and in the worker's properties."


def rendered() -> str:
    """The text of the page."""
    connectors = [
        _section(without_package(name), _CONNECTOR, OWN_OPTIONS[name])
        for name in (SOURCE_CONNECTOR, CHECKPOINT_CONNECTOR, HEARTBEAT_CONNECTOR)
    ]
    worker = _section("Connect worker", _WORKER, OWN_WORKER)
    return "\n".join((_HEAD, *connectors, worker, _section("`/metrics`", _METRICS, METRICS)))


def _section(title: str, place: str, options: Iterable[Option]) -> str:
    head = "| option | type | default | values | |\n|---|---|---|---|---|"
    return "\n".join((f"## {title}\n", f"{place}\n", head, *_rows(options), ""))


def _rows(options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        assert not isinstance(option.default, Required)
        values = "" if option.validator is None else str(option.validator)
        cells = (
            f"`{option.name}`",
            option.type.value.lower(),
            shown(option.default) or "",
            values,
            option.doc,
        )
        yield f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
