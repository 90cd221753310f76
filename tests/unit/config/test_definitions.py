import time

import pytest

from sparkmirror.config.definitions import (
    REQUIRED,
    Definition,
    Option,
    Password,
    Type,
    Validator,
    Value,
)
from sparkmirror.config.properties import Properties
from sparkmirror.config.validators import (
    AtLeast,
    ConnectorNameText,
    DistinctItems,
    NonEmpty,
    OneOf,
    OneOfAnyCase,
    PositiveOrDefault,
    UniqueAliases,
)
from sparkmirror.domain.errors import ConfigError, InvalidConfigError


def option(kind: Type, validator: Validator | None = None, name: str = "k") -> Option:
    return Option(name, kind, None, "doc", validator=validator)


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (Type.BOOLEAN, " TRUE\t", True),
        (Type.BOOLEAN, "False", False),
        (Type.STRING, "  a b  ", "a b"),
        (Type.STRING, "\u00a0x", "\u00a0x"),
        (Type.INT, "+5", 5),
        (Type.INT, "-2147483648", -(2**31)),
        (Type.SHORT, "32767", 32767),
        (Type.LONG, " 9223372036854775807 ", 2**63 - 1),
        (Type.DOUBLE, "1.5e3", 1500.0),
        (Type.DOUBLE, ".5f", 0.5),
        (Type.LIST, "", ()),
        (Type.LIST, " a , b,c ", ("a", "b", "c")),
        (Type.LIST, "a,,b", ("a", "", "b")),
        (Type.CLASS, " org.x.Y ", "org.x.Y"),
        (Type.PASSWORD, " p ", Password("p")),
    ],
)
def test_types(kind: Type, text: str, value: Value) -> None:
    assert option(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "reason"),
    [
        (Type.BOOLEAN, "yes", "Expected value to be either true or false"),
        (Type.BOOLEAN, "", "Expected value to be either true or false"),
        (Type.INT, "2147483648", "Not a number of type INT"),
        (Type.SHORT, "40000", "Not a number of type SHORT"),
        (Type.LONG, "abc", "Not a number of type LONG"),
        (Type.LONG, "1_000", "Not a number of type LONG"),
        (Type.LONG, "0x10", "Not a number of type LONG"),
        (Type.LONG, "1.0", "Not a number of type LONG"),
        (Type.LONG, "", "Not a number of type LONG"),
        (Type.DOUBLE, "nan()", "Not a number of type DOUBLE"),
    ],
)
def test_values_of_another_type(kind: Type, text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Definition([option(kind)]).parse(Properties({"k": text}))
    assert str(caught.value) == f"Invalid value {text} for configuration k: {reason}"


@pytest.mark.parametrize(
    ("kind", "validator", "text", "reason"),
    [
        (Type.INT, AtLeast(1), "0", "Value must be at least 1"),
        (Type.DOUBLE, AtLeast(0.5, 1.0), "1.5", "Value must be no more than 1.0"),
        (Type.SHORT, PositiveOrDefault(), "0", "Value must be a positive number, or -1"),
        (Type.STRING, OneOf(("source", "target")), "Source", "String must be one of: source, target"),
        (Type.STRING, OneOfAnyCase(("A", "B")), "c", r"String must be one of \(case insensitive\): A, B"),
        (Type.LIST, DistinctItems(), "a,,b", "Items of the list must not be empty"),
        (Type.LIST, DistinctItems(may_be_empty=False), "", "The list must not be empty"),
        (Type.LIST, DistinctItems(("a",)), "a,b", "String must be one of: a"),
        (Type.LIST, UniqueAliases(), "a,a", "Duplicate alias provided."),
        (Type.STRING, NonEmpty(), " ", "String must be non-empty"),
        (Type.STRING, ConnectorNameText(), "", "String may not be empty"),
        (Type.STRING, ConnectorNameText(), "a\x01b", "had the following ASCII chars: 1"),
    ],
)
def test_validators_refuse_bad_values(kind: Type, validator: Validator, text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        option(kind, validator).parse(text)


@pytest.mark.parametrize(
    ("kind", "validator", "text", "value"),
    [
        (Type.SHORT, PositiveOrDefault(), "-1", -1),
        (Type.STRING, OneOfAnyCase(("SSL",)), "ssl", "ssl"),
        (Type.LIST, DistinctItems(), "a,b,a", ("a", "b")),
        (Type.LIST, DistinctItems(), "", ()),
        (Type.STRING, ConnectorNameText(), "é ✓", "é ✓"),
    ],
)
def test_validators_accept_good_values(kind: Type, validator: Validator, text: str, value: Value) -> None:
    assert option(kind, validator).parse(text) == value


def test_all_errors_are_reported_together() -> None:
    table = Definition(
        [
            option(Type.INT, name="a"),
            option(Type.BOOLEAN, name="b"),
            Option("c", Type.STRING, REQUIRED, "doc"),
        ]
    )
    with pytest.raises(InvalidConfigError) as caught:
        table.parse(Properties({"a": "x", "b": "y"}))
    assert [error.key for error in caught.value.errors] == ["a", "b", "c"]
    assert str(caught.value).splitlines() == [
        "Invalid value x for configuration a: Not a number of type INT",
        "Invalid value y for configuration b: Expected value to be either true or false",
        'c: Missing required configuration "c" which has no default value.',
    ]


def test_an_error_names_the_key_that_was_written() -> None:
    properties = Properties({"A.consumer.k": "x"}).under("A.consumer.")
    with pytest.raises(ConfigError, match=r"for configuration A\.consumer\.k:"):
        Definition([option(Type.INT)]).parse(properties)


def test_secret_values_stay_out_of_errors_and_reprs() -> None:
    table = Definition([option(Type.PASSWORD, name="x.password"), option(Type.INT, name="my.secret")])
    assert "hush" not in repr(table.parse(Properties({"x.password": "hush"})))
    with pytest.raises(ConfigError) as caught:
        table.parse(Properties({"my.secret": "hush"}))
    assert "hush" not in str(caught.value)


def test_defaults_and_given_values() -> None:
    table = Definition([Option("a", Type.INT, 1, "doc"), Option("b", Type.LIST, ("x",), "doc")])
    values = table.parse(Properties({"a": "2"}))
    assert (values.integer("a"), values.strings("b")) == (2, ("x",))
    assert values.given("a")
    assert not values.given("b")


def test_an_optional_value_is_validated_only_when_given() -> None:
    table = Definition([option(Type.LONG, AtLeast(0))])
    assert table.parse(Properties())["k"] is None


def test_asking_for_another_type_is_a_bug() -> None:
    values = Definition([Option("a", Type.STRING, "1", "doc")]).parse(Properties())
    with pytest.raises(AssertionError):
        values.integer("a")


def test_a_joined_table_lets_the_later_option_win() -> None:
    joined = Definition([Option("a", Type.INT, 1, "doc")]) | Definition([Option("a", Type.INT, 2, "doc")])
    assert joined.parse(Properties()).integer("a") == 2
    assert len(list(joined)) == 1


def test_unknown_keys_come_with_the_nearest_known_one() -> None:
    table = Definition([option(Type.INT, name="offset.lag.max"), option(Type.LIST, name="topics")])
    assert table.unknown({"topics": "", "offset.lag.maks": "", "zzz": ""}) == (
        ("offset.lag.maks", "offset.lag.max"),
        ("zzz", None),
    )


def test_a_list_of_spaces_is_split_in_linear_time() -> None:
    text = "a" + " " * 200_000 + "b"
    started = time.process_time()
    assert option(Type.LIST).parse(text) == (text,)
    assert time.process_time() - started < 1.0


def test_a_long_text_that_is_no_number_is_refused_in_linear_time() -> None:
    started = time.process_time()
    with pytest.raises(ValueError, match="Not a number of type DOUBLE"):
        option(Type.DOUBLE).parse("1" * 200_000 + "x")
    assert time.process_time() - started < 1.0
