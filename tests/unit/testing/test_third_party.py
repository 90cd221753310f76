"""The package shown in docs/plugins.md passes its tests in another Python process."""

import os
import subprocess
import sys
from pathlib import Path

from tests.support.documented_plugins import install


def test_documented_package_passes_its_suites(tmp_path: Path) -> None:
    folder = install(tmp_path / "acme")
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_acme.py"]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", ""))),
    }
    ended = subprocess.run(run, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "19 passed" in ended.stdout
