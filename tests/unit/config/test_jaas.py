"""`sasl.jaas.config` and JAAS files, read as Java reads them, or refused."""

import contextlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.config.jaas import JaasEntry, parse_jaas, parse_jaas_file

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"

SENTENCES = {
    "",
    "must name exactly one login module",
    "must begin with the class of a login module",
    "lacks `required` behind the login module",
    "has an option without a value, or a value that needs quotes",
    "must end with a semicolon",
    "has something at index N that is not supported there, or needs quotes",
}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ('username="token" password="am_x";', {"username": "token", "password": "am_x"}),
        ("username=alice password='it's';", None),
        ("username=alice password='a;b=c' ;", {"username": "alice", "password": "a;b=c"}),
        ('a="\\\\ \\" \\n \\x";', {"a": '\\ " \n x'}),
        ('a="\\101";', None),
        ("a=b-c_d$e.f1;", {"a": "b-c_d$e.f1"}),
        ("a=12;", None),
        ("a=-;", None),
        ("a=b // behind\n c=d;", {"a": "b", "c": "d"}),
        ("a=b /* ; */ c=d;", {"a": "b", "c": "d"}),
        ("a=b / c\n;", None),
        ("a=\u00e9\u4e2d;", {"a": "\u00e9\u4e2d"}),
        ('a="never closed\n;', None),
        ("a=a/b;", None),
        ("a;", None),
        ("a=b", None),
        (";", {}),
        ("; another required;", None),
    ],
)
def test_options(options: str, expected: dict[str, str] | None) -> None:
    config = f"{MODULE} required {options}"
    if expected is None:
        with pytest.raises(ValueError, match=r"option|semicolon|exactly one|needs quotes"):
            parse_jaas(config)
    else:
        assert parse_jaas(config) == (MODULE, expected)


@pytest.mark.parametrize("config", ["", "  ", MODULE, f"{MODULE} wanted;", "= required;", "12 required;"])
def test_what_is_no_login_module(config: str) -> None:
    with pytest.raises(ValueError, match=r"login module|needs quotes"):
        parse_jaas(config)


@given(st.text(st.characters(exclude_characters="\r\n")))
def test_quoted_values_are_read_whole(value: str) -> None:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_jaas(f'{MODULE} required a="{escaped}";').options == {"a": value}


@given(st.text(alphabet="ab=;\"'\\/*-_.$ 17\n"))
def test_any_text_is_read_or_refused_without_its_content(text: str) -> None:
    said = ""
    try:
        parse_jaas(text)
    except ValueError as error:
        said = str(error)
    assert re.sub(r"[0-9]+", "N", said) in SENTENCES


def test_a_file_has_entries_of_login_modules() -> None:
    text = """
    // of another program
    Client { a.Module required useTicketCache=true; };
    KafkaConnect {
      b.Module optional
        file="/etc/first users";
      b.Module sufficient file="/etc/second" debug="true";
    };
    Empty { };
    """
    assert parse_jaas_file(text) == {
        "Client": (JaasEntry("a.Module", {"useTicketCache": "true"}),),
        "KafkaConnect": (
            JaasEntry("b.Module", {"file": "/etc/first users"}),
            JaasEntry("b.Module", {"file": "/etc/second", "debug": "true"}),
        ),
        "Empty": (),
    }


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a.Module required;", "must have entries of the form"),
        ("Client { a.Module required; }", "lacks a semicolon"),
        ("Client { a.Module required;", "lacks the brace"),
        ("Client { a.Module file=x; };", "lacks `required`"),
        ("Client", "must have entries of the form"),
        ("Client { a.Module required file=/etc/users; };", "at index 32 .* needs quotes"),
    ],
)
def test_a_broken_file_is_refused_without_its_text(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        parse_jaas_file(text)


@given(st.text('aK{};="\\\n /*1.-', max_size=60))
def test_any_text_of_a_file_is_read_or_refused_by_a_sentence(text: str) -> None:
    with contextlib.suppress(ValueError):
        for modules in parse_jaas_file(text).values():
            assert all(isinstance(module, JaasEntry) for module in modules)
