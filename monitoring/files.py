"""The text of each file that `python -m monitoring` writes."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from monitoring.alerts import ALERTS as PLAIN
from monitoring.alerts import Alert, burn_alerts, every_alert, recording_rules
from monitoring.boards import BOARDS, dashboard

ROOT: Final = Path(__file__).parents[1]
ALERTS: Final = Path("monitoring/alerts.yml")
PROMETHEUS_RULE: Final = Path("deploy/kubernetes/prometheus/prometheusrule.yaml")
RUNBOOKS: Final = Path("docs/runbooks.md")

_MADE: Final = "# Made by `python -m monitoring`. The job that scrapes the mirror is called `mirror`.\n"
_HEAD: Final = """\
# Runbooks

What each alert of `monitoring/alerts.yml` means, what to look at, and what to do. [metrics.md](metrics.md) describes the metrics, [troubleshooting.md](troubleshooting.md) states,
log lines and incidents. `python -m monitoring` writes this page, the rules and the dashboards.
"""


def rendered() -> Mapping[Path, str]:
    """The files by their paths below the repository's root."""
    boards = {
        Path(f"monitoring/dashboards/{board.name}.json"): json.dumps(
            dashboard(board), indent=2, ensure_ascii=False
        )
        + "\n"
        for board in BOARDS
    }
    rules = {
        "groups": [
            {"name": "sparkmirror", "rules": [_rule(alert) for alert in PLAIN]},
            {"name": "sparkmirror-freshness", "rules": [*recording_rules(), *map(_rule, burn_alerts())]},
        ]
    }
    resource = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "sparkmirror"},
        "spec": rules,
    }
    return {ALERTS: _yaml(rules), PROMETHEUS_RULE: _yaml(resource), RUNBOOKS: _runbooks(), **boards}


def _yaml(content: Mapping[str, Any]) -> str:
    return _MADE + yaml.safe_dump(content, sort_keys=False, width=1000, allow_unicode=True)


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "runbook": f"{RUNBOOKS}#{alert.section.lower()}"},
    }


def _runbooks() -> str:
    sections = [
        f"## {alert.section}\n\n{alert.means}\n\n**Look at.** {alert.look}\n\n**Do.** {alert.do}\n"
        for alert in every_alert()
    ]
    return "\n".join((_HEAD, *dict.fromkeys(sections)))
