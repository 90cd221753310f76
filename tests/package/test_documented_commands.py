"""Every command that README and documents show is run by a test, or named here with the reason why not.

That each parses as it is written is shown by `tests/unit/cli/test_examples.py`.
"""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from release.artefacts import ROOT
from sparkmirror.cli.command_list import COMMANDS

DOCUMENTS: Final = sorted(
    {ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")}
)
RUNNING: Final = ("contract", "faults", "package", "rest", "spark", "system")
"""Folders of tests that start programs."""

OTHERS: Final = {
    "curl": "tests/system/rest_cases.py",
    "kafka-acls.sh": "tests/contract/test_plan_rights.py",
    "pip": "tests/package/test_install.py",
    "python3": "tests/package/test_install.py",
    "systemctl": "tests/package/test_systemd.py",
    "spark-submit": "tests/spark/test_submit.py",
    "uv": "tests/package/test_pythons.py",
}
"""Programs other than ours, and the test that does the same."""
OF_ANY_SHELL: Final = {"cp", "echo", "seq"}
NOT_RUN: Final = {
    "docker": "needs Docker's engine; tests/package starts what the compose file says",
    "journalctl": "needs systemd's journal; tests/package reads the units' logs from files",
    "hdfs": "needs a Hadoop cluster",
    "kubectl": "needs a Kubernetes cluster; tests/package starts what the manifests say",
    "make": "what developers run; the target exists",
}


def commands(document: Path) -> Iterator[list[str]]:
    """The words of each line in a block without a language, or with a shell's."""
    language: str | None = None
    for line in document.read_text(encoding="utf-8").splitlines():
        if line.lstrip().startswith("```"):
            language = line.strip().strip("`") if language is None else None
        elif language in ("", "sh", "bash", "console"):
            for part in re.split(r" (?:\\||&&) ", line.partition(" #")[0]):
                yield part.split()


def shown() -> set[tuple[str, ...]]:
    return {tuple(words) for document in DOCUMENTS for words in commands(document) if words}


OURS: Final = sorted({words[1] for words in shown() if words[0] == "sparkmirror" and words[1] in COMMANDS})
MAKE: Final = sorted({words[1] for words in shown() if words[0] == "make" and len(words) > 1})


IN_IMAGES: Final = {
    words[0] for words in shown() if words[0].startswith(("/opt/", "/etc/confluent/", "/docker-entrypoint"))
}
"""Paths that exist in the image only, whose tests type them."""


@pytest.mark.parametrize("command", OURS)
def test_our_commands_are_run(command: str) -> None:
    files = (file for folder in RUNNING for file in (ROOT / "tests" / folder).rglob("*.py"))
    assert any(f'"{command}"' in file.read_text(encoding="utf-8") for file in files if file != Path(__file__))


def test_the_others_are_run_or_named() -> None:
    programs = {words[0] for words in shown() if shutil.which(words[0]) or words[0].endswith(".sh")}
    known = {"sparkmirror", *OTHERS, *NOT_RUN, *OF_ANY_SHELL, *IN_IMAGES}
    assert sorted(programs - known) == []
    assert [test for test in OTHERS.values() if not (ROOT / test).exists()] == []


@pytest.mark.parametrize("target", MAKE)
def test_targets_of_make_exist(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE)
