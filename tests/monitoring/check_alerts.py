"""Every alert fires, does not fire, and says nothing of series that are not there: judged by promtool.

`apt-get install prometheus`, then `python -m pytest tests/monitoring/check_alerts.py`.
"""

import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from monitoring.alerts import every_alert
from monitoring.files import ALERTS, ROOT
from tests.monitoring.alert_cases import CASES, FIRES_WITHOUT_SERIES, Case

pytestmark = pytest.mark.skipif(shutil.which("promtool") is None, reason="not run: needs promtool")


def promtool(*arguments: str) -> str:
    result = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def judged(cases: list[Case], folder: Path) -> None:
    """Raises AssertionError with promtool's words. Cases of one alert have the same step."""
    (step,) = {f"{case.step}m" for case in cases}
    tests = [
        {
            "interval": step,
            "input_series": [{"series": series, "values": values} for series, values in case.series],
            "promql_expr_test": [
                {
                    "expr": f'count(ALERTS{{alertname="{case.alert}",alertstate="firing"}}) or vector(0)',
                    "eval_time": f"{case.minute}m",
                    "exp_samples": [{"labels": "{}", "value": int(case.fires)}],
                }
            ],
        }
        for case in cases
    ]
    file = folder / "cases.yml"
    content = {"rule_files": [str(ROOT / ALERTS)], "evaluation_interval": step, "tests": tests}
    file.write_text(yaml.safe_dump(content), encoding="utf-8")
    promtool("test", "rules", str(file))


def test_the_rules_are_valid() -> None:
    assert "SUCCESS" in promtool("check", "rules", str(ROOT / ALERTS))


@pytest.mark.parametrize("alert", [alert.name for alert in every_alert()])
def test_an_alert_fires_does_not_fire_and_is_silent_without_series(alert: str, tmp_path: Path) -> None:
    cases = [case for case in CASES if case.alert == alert]
    assert {case.fires for case in cases} == {True, False}
    nothing = Case(alert, 30, alert in FIRES_WITHOUT_SERIES, (), cases[0].step)
    judged([*cases, nothing], tmp_path)
