"""`sparkmirror convert`: written files, messages and exit codes."""

import json
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.cli.main import main
from sparkmirror.config.properties import read_properties

PROPERTIES: Final = """\
clusters = A, B
A.bootstrap.servers = a:9092
B.bootstrap.servers = b:9092
A->B.enabled = true
A->B.topics = orders
emit.heartbeats.enabled = false
"""
SECRET: Final = "hush"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "given.properties"
    path.write_text(PROPERTIES)
    return path


def test_to_a_folder_of_connectors_and_back(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "connectors"
    assert main(["convert", str(file), "--to", "json", "-o", str(folder)]) == 0
    assert sorted(path.name for path in folder.iterdir()) == ["mm2-cpc-A.json", "mm2-msc-A.json"]
    assert json.loads((folder / "mm2-msc-A.json").read_text()) == {
        "name": "mm2-msc-A",
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "A",
        "target.cluster.alias": "B",
        "key.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "value.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "header.converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
        "topics": "orders",
        "source.cluster.bootstrap.servers": "a:9092",
        "target.cluster.bootstrap.servers": "b:9092",
    }
    assert capsys.readouterr().err == (
        "sparkmirror: A->B has its positions in mm2-offsets.A.internal, as connector MirrorSourceConnector;"
        " under another name, or in a worker with another offset.storage.topic, it starts without positions\n"
    )
    back = tmp_path / "back.properties"
    files = [str(path) for path in folder.iterdir()]
    assert main(["convert", *files, "--to", "properties", "-o", str(back)]) == 0
    assert read_properties(back) == read_properties(file)


def test_on_standard_output_connectors_are_one_array(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(file), "--to", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [each["name"] for each in found] == ["mm2-msc-A", "mm2-cpc-A"]
    assert found[0]["config"]["topics"] == "orders"


def test_that_array_is_read_again(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["convert", str(file), "--to", "json"])
    array = tmp_path / "connectors.json"
    array.write_text(capsys.readouterr().out)
    assert main(["convert", str(array), "--to", "properties"]) == 0
    back = tmp_path / "back.properties"
    back.write_text(capsys.readouterr().out)
    assert read_properties(back) == read_properties(file)


def test_settings_left_out_are_named_and_end_with_3(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(PROPERTIES + "spark.master = local[2]\nB.offset.flush.interval.ms = 5\n")
    assert main(["convert", str(file), "--to", "json"]) == 1
    captured = capsys.readouterr()
    assert "left out: spark.master: belongs to a process of its own" in captured.err
    assert "left out: offset.flush.interval.ms of B: must be set in the properties file" in captured.err
    assert len(json.loads(captured.out)) == 2


def test_secrets_are_written_for_their_owner_and_not_printed(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(PROPERTIES + f"A.sasl.jaas.config = {SECRET}\nA.ssl.key.password = {SECRET}\n")
    output = tmp_path / "mm2.properties"
    output.write_text("of before")
    output.chmod(0o644)
    assert main(["convert", str(file), "--to", "properties", "-o", str(output)]) == 0
    captured = capsys.readouterr()
    assert SECRET in output.read_text()
    assert output.stat().st_mode & 0o777 == 0o600
    assert SECRET not in captured.err + captured.out


def test_the_folder_of_mounted_secrets_can_be_given(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "resource.yaml"
    file.write_text(
        """\
apiVersion: kafka.strimzi.io/v1
kind: KafkaMirrorMaker2
spec:
  target:
    alias: b
    bootstrapServers: b:9092
    authentication:
      type: plain
      username: me
      passwordSecret: {secretName: mine, password: word}
  mirrors:
    - source: {alias: a, bootstrapServers: "a:9092"}
      sourceConnector: {}
"""
    )
    assert main(["convert", str(file), "--to", "properties", "--secrets", "/run/secrets/"]) == 0
    captured = capsys.readouterr()
    assert 'username="me" password="${strimzisecrets:/run/secrets/mine:word}";' in captured.out
    assert "secret mine is expected to be mounted at /run/secrets/mine" in captured.err


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.properties", "topics = x", 'clusters: Missing required configuration "clusters"'),
        ("a.json", '{"name": "x",}', "is no JSON: "),
        ("a.json", '{"name": "x"}', "has no connector.class, so it's no connector"),
        ("a.json", '{"connector.class": "MirrorSource", "topics": null}', "topics: Null value can not be"),
        ("a.json", '{"connector.class": "org.example.Jdbc"}', "hold no flow to convert"),
        ("a.yaml", "kind: [", "is no YAML: "),
        ("a.yaml", "kind: ConfigMap", "holds no resource with kind: KafkaMirrorMaker2"),
        ("a.yaml", "kind: KafkaMirrorMaker2", "spec: is missing"),
    ],
)
def test_unreadable_input_is_one_line_and_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, said: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    assert main(["convert", str(file), "--to", "properties"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("sparkmirror: ")
    assert said in captured.err
    assert captured.err.count("\n") == 1


def test_a_missing_file_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(tmp_path / "gone"), "--to", "json"]) == 2
    assert "No such file" in capsys.readouterr().err


def test_the_input_is_never_overwritten(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(file), "--to", "properties", "-o", str(file)]) == 2
    assert "is an input file" in capsys.readouterr().err
    assert file.read_text() == PROPERTIES


def test_wrong_usage_ends_with_2(file: Path) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["convert", str(file)])
    assert caught.value.code == 2
