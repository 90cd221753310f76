"""Reads compose files: services with their words, environment, mounts and health checks."""

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.package.container_process import Container

_MODULE: Final = "github.com/compose-spec/compose-go/v2"
_VERSION: Final = "v2.16.2"
_SCHEMA: Final = "schema/compose-spec.json"
_VARIABLE: Final = re.compile(r"\$(?:\$|\{(\w+):-([^}]*)\})")

Service = Mapping[str, Any]


def schema_of_the_specification() -> Path:
    """The compose specification's JSON schema, from the Go module that Docker reads it with."""
    return Path(json.loads(_go("mod", "download", "-json", f"{_MODULE}@{_VERSION}"))["Dir"]) / _SCHEMA


def read_by_docker(file: Path) -> Mapping[str, Any]:
    """The file as Docker Compose reads it, by the program of the same module."""
    content: Mapping[str, Any] = yaml.safe_load(
        _go("run", f"{_MODULE}/cmd@{_VERSION}", file.name, folder=file.parent)
    )
    return content


def _go(*words: str, folder: Path | None = None) -> str:
    """Run Go, which fetches the module; the test is skipped where that is not possible."""
    if shutil.which("go") is None:
        pytest.skip("not run: needs go, which fetches the compose specification")
    done = subprocess.run(["go", *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode != 0 and ("dial tcp" in done.stderr or "Forbidden" in done.stderr):
        pytest.skip(f"not run: {_MODULE} can't be fetched: {done.stderr[-300:]}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class ComposeFile:
    """Variables have their defaults."""

    def __init__(self, file: Path) -> None:
        self.folder = file.parent
        self.content: Mapping[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))

    def service(self, name: str) -> Service:
        service: Service = self.content["services"][name]
        return service

    def container(self, name: str) -> Container:
        service = self.service(name)
        command = service.get("command", [])
        words = shlex.split(command) if isinstance(command, str) else command
        environment = service.get("environment", {})
        return Container(
            [given(word) for word in words],
            {key: given(str(value)) for key, value in environment.items()},
            {target: self.folder / source for source, target in mounts(service)},
        )


def given(text: str) -> str:
    """The text as compose gives it to a container."""
    return _VARIABLE.sub(lambda found: "$" if found[1] is None else found[2], text)


def mounts(service: Service) -> list[tuple[str, str]]:
    """Source and target of each path of the host that is mounted; not of named volumes."""
    pairs = (volume.split(":")[:2] for volume in service.get("volumes", ()))
    return [(source, target) for source, target in pairs if source.startswith(".")]


def health_check(service: Service) -> list[str]:
    """The command of a health check."""
    test = service["healthcheck"]["test"]
    if isinstance(test, str):
        return ["sh", "-c", given(test)]
    assert test[0] == "CMD", test
    return [given(word) for word in test[1:]]
