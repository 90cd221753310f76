import io
from pathlib import Path

import pytest

from sparkmirror.cli.commands.connectors.input_files import STANDARD_INPUT, Given, read_file
from sparkmirror.domain.errors import ConfigError

SETTINGS = {
    "connector.class": "Mirror",
    "tasks.max": "2",
    "sync.topic.acls.enabled": "false",
}
BARE = '{"connector.class": "Mirror", "tasks.max": 2, "sync.topic.acls.enabled": false}'


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (BARE, Given(None, SETTINGS)),
        (f"\ufeff{BARE}", Given(None, SETTINGS)),
        (f'{{"name": "msc", "config": {BARE}}}', Given("msc", SETTINGS)),
        ('{"name": "msc", "topics": "a"}', Given("msc", {"name": "msc", "topics": "a"})),
        ('{"tasks.max": 1e3}', Given(None, {"tasks.max": "1e3"})),
        ('{"a": 1, "a": "1"}', Given(None, {"a": "1"}, ("a is there twice, with one value",))),
        (
            '{"a": "1", "a": "2"}',
            Given(None, {"a": "2"}, ("a is there twice, and the last value counts, as in Java",)),
        ),
        (
            "connector.class = Mirror\ntasks.max=2\n",
            Given(None, {"connector.class": "Mirror", "tasks.max": "2"}),
        ),
    ],
)
def test_both_of_connects_forms_are_read(text: str, given: Given, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text(text, encoding="utf-8")
    assert read_file(file) == given


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(BARE))
    assert read_file(STANDARD_INPUT) == Given(None, SETTINGS)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "holds 0 connectors: one is expected"),
        ("", "is no JSON"),
        ("a: 1", "is no JSON"),
        ('{"a": }', "is no JSON: Expecting value, line 1, column 7"),
        ('{"a": NaN}', "is no JSON: NaN is no value of JSON"),
        ('{"a": {"b": 1}}', "a: is an object or an array"),
        ('{"name": "msc", "config": {}, "tasks": 1}', "has tasks beside its config"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"password": "[hidden]"}', "is the placeholder of a masked secret"),
        ('{"topics": null}', "topics: Null value can not be supplied"),
    ],
)
def test_input_that_is_no_connector_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_file(file)
    assert said in str(caught.value)


def test_a_missing_file_is_named() -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json: No such file"):
        read_file(Path("nowhere.json"))
