"""The committed dashboards, rules and runbooks are those of `python -m monitoring`; their metrics exist."""

import re

import pytest

from monitoring.alerts import STALE_RATIO, every_alert, recording_rules
from monitoring.boards import queries
from monitoring.files import ROOT, RUNBOOKS, rendered
from sparkmirror.metrics.families import families
from sparkmirror.metrics.mbeans import mbeans
from sparkmirror.metrics.naming import Naming
from sparkmirror.metrics.settings import default_settings
from tests.support.metric_readings import EVERY_CONNECTOR, NODE

_NAME = re.compile(r"\b(?:sparkmirror|kafka)_[a-z_]+")


def metric_names() -> set[str]:
    java = Naming(default_settings().name).metrics(mbeans(EVERY_CONNECTOR, NODE))
    ours = families(EVERY_CONNECTOR, NODE)
    return {"sparkmirror_build_info", *(each.name for each in java), *(each.name for each in ours)}


@pytest.mark.parametrize("path", rendered(), ids=str)
def test_committed_files_are_what_the_program_makes(path: object) -> None:
    (made,) = (text for of, text in rendered().items() if of == path)
    assert (ROOT / str(path)).read_text(encoding="utf-8") == made, "run `python -m monitoring`"


def test_rules_and_dashboards_ask_for_metrics_that_are_there() -> None:
    asked = [
        *queries(),
        *(alert.expr for alert in every_alert()),
        *(rule["expr"] for rule in recording_rules()),
    ]
    names = {name for query in asked for name in _NAME.findall(query)}
    assert names
    assert names <= metric_names()


def test_recorded_names_that_are_asked_for_are_recorded() -> None:
    recorded = {rule["record"] for rule in recording_rules()}
    asked = re.findall(rf"{STALE_RATIO}\w*", " ".join(alert.expr for alert in every_alert()))
    assert set(asked) <= recorded


def test_alerts_have_runbooks_and_runbooks_link_to_runbooks() -> None:
    text = (ROOT / RUNBOOKS).read_text(encoding="utf-8")
    sections = {line.removeprefix("## ").lower() for line in text.splitlines() if line.startswith("## ")}
    assert sections == {alert.section.lower() for alert in every_alert()}
    assert set(re.findall(r"\(#([a-z0-9]+)\)", text)) <= sections
