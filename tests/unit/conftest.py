import pytest

from sparkmirror.settings.source import MirrorSourceSettings
from tests.support.source_settings import SETTINGS


@pytest.fixture
def settings() -> MirrorSourceSettings:
    """MM2's defaults for the flow source->target."""
    return SETTINGS
