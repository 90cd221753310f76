"""Chains read from properties as Connect reads them; what it refuses, and what only Java has, is refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError
from sparkmirror.transforms.chain import (
    Chain,
    DropHeaders,
    Filter,
    Function,
    HasHeaderKey,
    InsertHeader,
    Link,
    RecordIsTombstone,
    TopicNameMatches,
)
from sparkmirror.transforms.parsing import chain_of, function_keys

JAVA: Final = "org.apache.kafka.connect.transforms."
HERE: Final = __name__


def keep(records: object) -> object:
    return records


NO_FUNCTION: Final = 3


def chain(properties: Mapping[str, str]) -> Chain | None:
    return chain_of(Properties(properties))


def test_there_is_no_chain_without_transforms() -> None:
    assert chain({}) is None
    assert chain({"transforms": " ", "transforms.a.type": "nobody reads it"}) is None
    assert chain({"predicates": "p", "predicates.p.type": "RecordIsTombstone"}) is None


def test_a_chain_of_all_that_java_s_have_here() -> None:
    properties = {
        "transforms": "eu, gone, drop ,mark",
        "transforms.eu.type": f"{JAVA}Filter",
        "transforms.eu.predicate": "is-eu",
        "transforms.eu.negate": "true",
        "transforms.gone.type": "Filter",
        "transforms.gone.predicate": "gone",
        "transforms.drop.type": f"{JAVA}DropHeaders",
        "transforms.drop.headers": "trace, span",
        "transforms.drop.predicate": "named",
        "transforms.mark.type": f"{JAVA}InsertHeader",
        "transforms.mark.header": "from",
        "transforms.mark.value.literal": " us ",
        "predicates": "is-eu,gone,named",
        "predicates.is-eu.type": f"{JAVA}predicates.HasHeaderKey",
        "predicates.is-eu.name": "eu",
        "predicates.gone.type": f"{JAVA}predicates.RecordIsTombstone",
        "predicates.named.type": f"{JAVA}predicates.TopicNameMatches",
        "predicates.named.pattern": r"us\.orders.*",
        "errors.tolerance": "all",
    }
    named = TopicNameMatches(r"us\.orders.*", "predicates.named.pattern")
    assert chain(properties) == Chain(
        (
            Link(Filter(), HasHeaderKey("eu"), negates=True),
            Link(Filter(), RecordIsTombstone()),
            Link(DropHeaders(frozenset({"trace", "span"})), named),
            Link(InsertHeader("from", b"us")),
        ),
        tolerates=True,
    )


@pytest.mark.parametrize(
    ("literal", "value"),
    [("us", b"us"), ("", b""), ("null", None), ('"null"', b'"null"'), ("größe", "größe")],
)
def test_literals_of_headers(literal: str, value: bytes | str | None) -> None:
    found = chain({**one("InsertHeader"), "transforms.a.header": "h", "transforms.a.value.literal": literal})
    expected = value.encode() if isinstance(value, str) else value
    assert found == Chain((Link(InsertHeader("h", expected)),))


def one(kind: str) -> dict[str, str]:
    return {"transforms": "a", "transforms.a.type": JAVA + kind if kind[0].isupper() else kind}


def function(reference: str) -> dict[str, str]:
    return {**one("sparkmirror.transforms.Function"), "transforms.a.function": reference}


def test_a_function_is_found_when_it_is_read() -> None:
    assert chain(function(f"{HERE}:keep")) == Chain((Link(Function(f"{HERE}:keep")),))
    assert function_keys(function("a:b")) == ["transforms.a.function"]


PREDICATE: Final = {"predicates": "p", "predicates.p.type": f"{JAVA}predicates.HasHeaderKey"}


@pytest.mark.parametrize(
    ("properties", "key", "reason"),
    [
        ({"transforms": "a"}, "transforms.a.type", "is missing"),
        ({**one("Filter"), "transforms.a.predicate": "p"}, "transforms.a.predicate", "is none of those"),
        ({**one("Filter"), "transforms.a.negate": "true"}, "transforms.a.negate", "there is no"),
        (
            {
                **PREDICATE,
                **one("Filter"),
                "predicates.p.name": "x",
                "transforms.a.predicate": "p",
                "transforms.a.negate": "perhaps",
            },
            "transforms.a.negate",
            "Expected value to be either true or false",
        ),
        ({**PREDICATE, **one("Filter")}, "predicates.p.name", "is missing"),
        ({**PREDICATE, "predicates.p.name": ""}, "predicates.p.name", "must not be empty"),
        ({"predicates": "p", "predicates.p.type": "Mine"}, "predicates.p.type", "is no Predicate here"),
        (
            {
                "predicates": "p",
                "predicates.p.type": "TopicNameMatches",
                "predicates.p.pattern": "(",
            },
            "predicates.p.pattern",
            "not a usable Java regular expression",
        ),
        (one("DropHeaders"), "transforms.a.headers", "is missing"),
        ({**one("InsertHeader"), "transforms.a.header": "h"}, "transforms.a.value.literal", "is missing"),
        (one("HoistField$Value"), "transforms.a.type", "A function does it (transforms.a.type="),
        (one("MaskField$Value"), "transforms.a.type", "replace_substring_regex"),
        (one("TimestampRouter"), "transforms.a.type", "gives records of one topic to several topics"),
        (
            one("io.debezium.transforms.ByLogicalTableRouter"),
            "transforms.a.type",
            "is no Transformation here",
        ),
        (function("keep"), "transforms.a.function", "is not of the form package.module:name"),
        (function("no_such_module:keep"), "transforms.a.function", "there is no module no_such_module"),
        (function(f"{HERE}:lost"), "transforms.a.function", "there is no lost in the module"),
        (function(f"{HERE}:NO_FUNCTION"), "transforms.a.function", "is of type int; it must be a function"),
    ],
)
def test_refusals(properties: dict[str, str], key: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(properties)
    assert caught.value.key == key
    assert reason in caught.value.reason


def test_every_transform_of_java_s_is_known_or_has_a_function() -> None:
    """The transforms are those of Kafka 4.3."""
    for kind in (
        *("Cast", "ExtractField", "Flatten", "HeaderFrom", "HoistField", "InsertField", "MaskField"),
        *("ReplaceField", "SetSchemaMetadata", "TimestampConverter", "ValueToKey"),
    ):
        with pytest.raises(ConfigError, match="A function does it"):
            chain(one(kind))


def test_a_module_that_fails_when_it_is_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "failing_filter.py").write_text("raise RuntimeError('no licence')\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ConfigError, match="importing failing_filter raised RuntimeError: no licence"):
        chain(function("failing_filter:keep"))


def router(regex: str, replacement: str) -> dict[str, str]:
    return {**one("RegexRouter"), "transforms.a.regex": regex, "transforms.a.replacement": replacement}


@pytest.mark.parametrize(
    ("regex", "replacement", "topic", "name"),
    [
        (r"us\.(.*)", "$1", "us.orders", "orders"),
        (r"us\.(.*)", "$1", "eu.orders", "eu.orders"),
        (r"us\.(.*)", "$1", "xus.orders", "xus.orders"),
        ("(.*)-(.*)", "$2_$1", "a-b-c", "c_a-b"),
        # Java asks whether the whole matches, and then replaces what it finds first.
        ("a|ab", "x", "ab", "xb"),
        ("us.orders", "", "us.orders", ""),
    ],
)
def test_a_router_names_topics_as_java_does(regex: str, replacement: str, topic: str, name: str) -> None:
    found = chain(router(regex, replacement))
    assert found is not None
    assert found.route(topic) == name
    assert found.of_topic(topic) is None
    assert found.routes


def test_behind_a_router_a_topic_has_its_new_name() -> None:
    properties = {
        **router(r"us\.(.*)", "$1"),
        "transforms": "before,a,behind,old",
        "transforms.before.type": "Filter",
        "transforms.before.predicate": "old",
        "transforms.behind.type": "DropHeaders",
        "transforms.behind.headers": "h",
        "transforms.behind.predicate": "new",
        "transforms.old.type": "Filter",
        "transforms.old.predicate": "old",
        "predicates": "old,new",
        "predicates.old.type": "TopicNameMatches",
        "predicates.old.pattern": r"us\.orders",
        "predicates.new.type": "TopicNameMatches",
        "predicates.new.pattern": "orders",
    }
    found = chain(properties)
    assert found is not None
    changing = found.of_topic("us.orders")
    assert changing is not None
    assert [type(link.transform) for link in changing.links] == [Filter, DropHeaders]
    assert found.route("us.orders") == "orders"


@pytest.mark.parametrize(
    ("properties", "key", "reason"),
    [
        (router("(", "x"), "transforms.a.regex", "not a usable Java regular expression"),
        (router("a", "$1"), "transforms.a.replacement", "the pattern has no group 1"),
        (
            {
                **router("a", "b"),
                **PREDICATE,
                "predicates.p.name": "h",
                "transforms.a.predicate": "p",
            },
            "transforms.a.predicate",
            "must be TopicNameMatches",
        ),
    ],
)
def test_wrong_routers(properties: dict[str, str], key: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        chain(properties)
    assert (caught.value.key, reason in caught.value.reason) == (key, True)
