from pathlib import Path

import pytest

from sparkmirror.config.properties import HIDDEN, Properties, is_sensitive, parse_properties, read_properties
from sparkmirror.domain.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=1", {"a": "1"}),
        ("  a : 1 ", {"a": "1 "}),
        ("a 1", {"a": "1"}),
        ("a", {"a": ""}),
        ("# x\n! y\n\na=1", {"a": "1"}),
        ("a=b \\\n    c", {"a": "b c"}),
        ("a=1\na=2", {"a": "2"}),
        (r"a\:b\=c\ d = x\ty", {"a:b=c d": "x\ty"}),
        (r"a=\u00e9\ud83d\ude00", {"a": "é😀"}),
        (r"a = C:\dir", {"a": "C:dir"}),
        ("A->B.enabled = true", {"A->B.enabled": "true"}),
        ("a=x=y:z", {"a": "x=y:z"}),
    ],
)
def test_java_syntax(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text, "f") == expected


def test_a_malformed_escape_names_the_file_and_hides_the_text() -> None:
    with pytest.raises(ConfigError, match=r"mm2\.properties \(line 1\): Malformed") as caught:
        parse_properties(r"a.password=\u12zz", "mm2.properties")
    assert "12zz" not in str(caught.value)


@pytest.mark.parametrize(
    "content", ["a=é".encode(), "a=é".encode("latin-1"), b"\xef\xbb\xbf" + "a=é".encode()]
)
def test_encodings(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "mm2.properties"
    file.write_bytes(content)
    assert read_properties(file) == {"a": "é"}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"gone\.properties: No such file"):
        read_properties(tmp_path / "gone.properties")


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        read_properties(tmp_path)


def test_the_later_map_wins_and_origins_travel() -> None:
    written = Properties({"A.consumer.x": "1", "consumer.x": "2"})
    merged = written.under("consumer.") | written.under("A.consumer.").below("")
    assert merged == {"x": "1"}
    assert merged.origin("x") == "A.consumer.x"
    assert merged.origin("absent") == "absent"
    assert str(merged.error("x", "bad")) == "Invalid value 1 for configuration A.consumer.x: bad"
    assert str(merged.error("absent", "bad")) == "absent: bad"


def test_under_needs_more_than_the_prefix() -> None:
    assert Properties({"a.": "1", "a.b": "2", "ab": "3"}).under("a.") == {"b": "2"}


def test_starting_accepts_the_prefix_itself() -> None:
    assert Properties({"task": "1", "tasks.max": "2", "x": "3"}).starting("task") == {
        "task": "1",
        "tasks.max": "2",
    }


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        ("ssl.keystore.password", True),
        ("A.consumer.ssl.key.password", True),
        ("sasl.jaas.config", True),
        ("ssl.truststore.certificates", True),
        ("ssl.keystore.key", True),
        ("ssl.keystore.certificate.chain", True),
        ("sasl.oauthbearer.client.credentials.client.secret", True),
        ("spark.hadoop.fs.s3a.access.key", True),
        ("A.auth.token", True),
        ("spark.ui.apiToken", True),
        ("sasl.oauthbearer.token.endpoint.url", False),
        ("ssl.keystore.location", False),
        ("topics", False),
        ("key.converter", False),
    ],
)
def test_secret_keys_are_recognized(key: str, secret: bool) -> None:
    assert is_sensitive(key) is secret


def test_secrets_are_never_printed() -> None:
    properties = Properties({"B.sasl.jaas.config": "s3cret", "B.auth.token": "s3cret", "topics": "t"})
    moved = properties.under("B.").below("producer.") | properties
    errors = [repr(moved.error(key, "bad")) for key in ("producer.sasl.jaas.config", "producer.auth.token")]
    for text in (repr(properties), str(moved), *errors):
        assert "s3cret" not in text
    assert HIDDEN in repr(moved)
    assert "topics=t" in repr(moved)


def test_errors_do_not_show_the_password_of_a_url() -> None:
    given = Properties({"a.url": "https://user:s3cret@idp.example/token", "b": "orders@x"})
    assert str(given.error("a.url", "no")) == (
        "Invalid value https://[hidden]@idp.example/token for configuration a.url: no"
    )
    assert "s3cret" not in repr(given)
    assert given.hides("a.url")
    assert not given.hides("b")
