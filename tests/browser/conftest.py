"""Leaves this folder out where there is no browser, whose library the files import."""

from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import pytest

from tests.browser.chromium import program
from tests.tiers import Tier, chosen

HAS_BROWSER: Final = find_spec("playwright") is not None and program().exists()


class NotRun(pytest.Module):
    def collect(self) -> Iterable[pytest.Item]:
        if Tier.ALL not in chosen(self.config.getoption("tiers")):
            return []
        pytest.skip("not run: needs Playwright and Chromium", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: pytest.Collector) -> pytest.Module | None:
    return None if HAS_BROWSER else NotRun.from_parent(parent, path=module_path)
