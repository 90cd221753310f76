"""The files of others that pages load are those of the locked releases."""

import hashlib
import json
from importlib.resources import files
from typing import Final

from sparkmirror.ui.static_files import TYPES

STATIC: Final = files("sparkmirror.ui") / "static"
OWN: Final = {"ui.css", "ui.js", "icon.svg", "lock.json"}
SCRIPT_BYTES_MAX: Final = 130_000


def test_every_file_is_ours_or_that_of_a_locked_release() -> None:
    lock = json.loads((STATIC / "lock.json").read_text())
    locked = {name: sha256 for package in lock.values() for name, (_, sha256) in package["files"].items()}
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in STATIC.iterdir()}
    assert {name: sha256 for name, sha256 in found.items() if name not in OWN} == locked
    assert found.keys() >= OWN


def test_each_release_comes_with_its_licence() -> None:
    lock = json.loads((STATIC / "lock.json").read_text())
    for package in lock.values():
        assert any(name.endswith(".LICENSE") for name in package["files"])


def test_everything_that_is_served_is_there_and_scripts_are_small() -> None:
    sizes = {name: len((STATIC / name).read_bytes()) for name in TYPES}
    assert sum(size for name, size in sizes.items() if name.endswith(".js")) <= SCRIPT_BYTES_MAX
