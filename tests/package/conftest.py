"""The image, built once for all tests of it."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from sparkmirror.clusters.ports import ReservedPort
from tests.support.containers import ROOT, STORAGE_VARIABLE, Engine, why_not


@pytest.fixture(scope="session")
def image() -> Engine:
    """Build the image; skips the test where the programs are missing."""
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    engine = Engine(Path(os.environ.get(STORAGE_VARIABLE, ROOT / "build" / "image")))
    engine.prepare()
    engine.build()
    return engine


@pytest.fixture
def port() -> Iterator[int]:
    reserved = ReservedPort()
    yield reserved.number
    reserved.release()
