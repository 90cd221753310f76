import io
import json
from pathlib import Path

import pytest

from sparkmirror.cli.commands.connectors.input_files import Given, read_file, read_given, read_offsets
from sparkmirror.domain.errors import ConfigError

SETTINGS: dict[str, str | None] = {
    "connector.class": "Mirror",
    "tasks.max": "2",
    "sync.topic.acls.enabled": "false",
}
BARE = '{"connector.class": "Mirror", "tasks.max": 2, "sync.topic.acls.enabled": false}'
YAML = "connector.class: Mirror\ntasks.max: 2\nsync.topic.acls.enabled: false\n"
WRAPPED_YAML = f"name: msc\ninitial_state: paused\nconfig:\n  {'  '.join(YAML.splitlines(keepends=True))}"


@pytest.mark.parametrize(
    ("text", "given"),
    [
        (BARE, Given(None, SETTINGS)),
        (f"\ufeff{BARE}", Given(None, SETTINGS)),
        (YAML, Given(None, SETTINGS)),
        (f'{{"name": "msc", "config": {BARE}}}', Given("msc", SETTINGS)),
        (WRAPPED_YAML, Given("msc", SETTINGS, "paused")),
        ('{"name": "msc", "topics": null}', Given("msc", {"name": "msc", "topics": None})),
    ],
)
def test_both_of_connects_forms_are_read_in_json_and_yaml(text: str, given: Given, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text(text, encoding="utf-8")
    assert read_given([str(file)]) == given == read_file(file)


def test_a_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(BARE))
    assert read_given(["-"]) == Given(None, SETTINGS)


def test_pairs_override_the_file_in_any_order(tmp_path: Path) -> None:
    file = tmp_path / "a=b.json"
    file.write_text(f'{{"name": "msc", "config": {BARE}}}')
    given = read_given(["tasks.max=4", str(file), "topics=a=b, c", "name=other", "empty="])
    assert given.name == "other"
    assert given.config == {**SETTINGS, "tasks.max": "4", "topics": "a=b, c", "name": "other", "empty": ""}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "holds no connector"),
        ("", "holds 0 documents"),
        ("a: 1\n---\nb: 2", "holds 2 documents"),
        ('{"a": }', "is no JSON: Expecting value, line 1, column 7"),
        ('{"a": 1, "a": 2}', "has a key twice"),
        ('{"a": {"b": 1}}', "a: is an object or an array"),
        ('{"name": "msc", "config": {}, "tasks": 1}', "has tasks beside its config"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"password": "[hidden]"}', "is the placeholder of a secret: see --show-secrets"),
    ],
)
def test_input_that_is_no_connector_is_refused(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "given"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        read_given([str(file)])
    assert said in str(caught.value)


def test_a_secret_on_the_command_line_is_refused_and_a_placeholder_accepted() -> None:
    with pytest.raises(ConfigError, match="put it into a file") as caught:
        read_given(["source.cluster.sasl.jaas.config=s3cret"])
    assert "s3cret" not in str(caught.value)
    placeholder = "${file:/secrets.properties:jaas}"
    assert read_given([f"sasl.jaas.config={placeholder}"]).config == {"sasl.jaas.config": placeholder}


def test_missing_or_several_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere\.json: No such file"):
        read_given(["nowhere.json"])
    with pytest.raises(ConfigError, match=r"a\.json, b\.json: are several files"):
        read_given(["a.json", "b.json"])


def test_null_removes_a_setting() -> None:
    with pytest.raises(ConfigError, match="topics: is null"):
        Given("msc", {"topics": None}).texts()


def test_offsets_are_read_as_shown_or_as_a_list(tmp_path: Path) -> None:
    offsets = [
        {"partition": {"topic": "t", "partition": 0}, "offset": {"offset": 9}},
        {"partition": {}, "offset": None},
    ]
    file = tmp_path / "offsets"
    for content in ({"offsets": offsets}, offsets):
        file.write_text(json.dumps(content))
        found: object = read_offsets(str(file))
        assert found == offsets
    file.write_text("offsets:\n  - partition: {topic: t, partition: 0}\n    offset: null\n")
    assert read_offsets(str(file))[0]["partition"] == {"topic": "t", "partition": 0}


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        '[{"partition": {}}]',
        '[{"partition": 1, "offset": {}}]',
        '[{"partition": {}, "offset": 3}]',
        "[1]",
    ],
)
def test_input_that_is_no_list_of_offsets_is_refused(text: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets"
    file.write_text(text)
    with pytest.raises(ConfigError, match="offset"):
        read_offsets(str(file))
