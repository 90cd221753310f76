"""`sparkmirror events`: how an event is printed."""

import json

import pytest

from sparkmirror.cli.commands.events import _show
from sparkmirror.storage.events import Event, EventKind

SETTINGS = ", ".join(f"some.setting.{number}=value" for number in range(40))


def printed(capsys: pytest.CaptureFixture[str], kind: EventKind, text: str, *, is_json: bool = False) -> str:
    _show(Event(0.0, kind, "mm2", "", text, "node"), "A->B", is_json=is_json)
    return capsys.readouterr().out


def test_settings_are_shortened_in_a_line_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    line = printed(capsys, EventKind.CONFIGURED, SETTINGS)
    assert line.startswith("1970-01-01 00:00:00  A->B  configured    some.setting.0=value, some.setting.1=")
    assert line.endswith("some.setting.8=value and 31 more; -o json has all\n")
    assert json.loads(printed(capsys, EventKind.CONFIGURED, SETTINGS, is_json=True))["text"] == SETTINGS


@pytest.mark.parametrize(
    ("kind", "text"),
    [(EventKind.FAILED, SETTINGS), (EventKind.CONFIGURED, "all settings have their defaults")],
)
def test_other_events_are_whole(capsys: pytest.CaptureFixture[str], kind: EventKind, text: str) -> None:
    assert printed(capsys, kind, text).endswith(f"{text}\n")
