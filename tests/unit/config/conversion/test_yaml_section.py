import pytest

from sparkmirror.config.conversion.yaml_section import Section, documents
from sparkmirror.domain.errors import ConfigError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("yes", "true"),
        ("False", "false"),
        ("600", "600"),
        ("-1", "-1"),
        ("0.50", "0.5"),
        ("010", "010"),
        ("1:30", "1:30"),
        ("1_000", "1_000"),
        ("2026-01-02", "2026-01-02"),
        ("'true'", "true"),
        (".*", ".*"),
    ],
)
def test_scalars(text: str, expected: str) -> None:
    (document,) = documents(f"a: {text}", "f")
    assert Section(document, "").text("a") == expected


@pytest.mark.parametrize("text", ["a: ~", "a:", "b: 1"])
def test_null_is_absent(text: str) -> None:
    (document,) = documents(text, "f")
    assert Section(document, "").text("a") is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: 1\na: 2", "the key a is there twice, line 2"),
        ("a: {b: 1, b: 2}", "the key b is there twice"),
        ("? [a]\n: 1", "a key is no text"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: [", "line 1"),
        ("a: *b", "undefined alias"),
        ("a: \x01", "ReaderError"),
        ("[" * 5_000, "is no YAML"),
    ],
)
def test_what_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        documents(text, "given.yaml")
    assert str(caught.value).startswith("given.yaml: is no YAML: ")


def test_anchors_and_merges() -> None:
    (document,) = documents("x: &x {a: '1', b: '2'}\ny:\n  <<: *x\n  b: '3'\n", "f")
    assert Section(document, "").settings("y") == {"a": "1", "b": "3"}


def test_several_documents() -> None:
    assert documents("---\na: 1\n---\n---\nb: 2\n", "f") == [{"a": 1}, {"b": 2}]


def test_keys_never_read_are_listed() -> None:
    section = Section({"a": {"b": 1, "c": 2}, "d": [{"e": 1}], "f": 1, "g": None}, "")
    inner = section.needed_section("a")
    inner.text("b")
    (item,) = section.sections("d")
    assert list(section.left_over()) == ["f", "a.c", "d[0].e"]
    section.ignore("f")
    item.ignore("e")
    assert list(section.left_over()) == ["a.c"]
