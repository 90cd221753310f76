import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.connect.rest.requests import (
    CONFIG_KEYS_MAX,
    VALUES_MAX,
    config_changes,
    connector_config,
    create_request,
    offsets_to_alter,
)
from sparkmirror.domain.connect import ConnectError, ConnectorOffset, TargetState


def refused(error: pytest.ExceptionInfo[ConnectError]) -> str:
    assert error.value.status == 400
    return str(error.value)


def test_numbers_and_booleans_keep_their_text() -> None:
    body = b'{"a": 1.50, "b": 1E3, "c": true, "d": 123456789012345678901234567890, "e": "x", "f": -0}'
    assert connector_config("n", body) == {
        "a": "1.50",
        "b": "1E3",
        "c": "true",
        "d": "123456789012345678901234567890",
        "e": "x",
        "f": "-0",
        "name": "n",
    }


def test_a_patch_may_have_nulls() -> None:
    assert config_changes(b'{"a": null, "b": 1}') == {"a": None, "b": "1"}


def test_a_config_may_not_have_nulls() -> None:
    with pytest.raises(ConnectError) as raised:
        connector_config("n", b'{"a": null, "b": "x", "c": null}')
    null = "Null value can not be supplied as the configuration value."
    first, *errors, last = refused(raised).splitlines()
    assert first == "Connector configuration is invalid and contains the following 2 error(s):"
    assert errors == [null, null]
    assert last.endswith("at the endpoint `/connector-plugins/{connectorType}/config/validate`")


def test_a_config_with_another_name_is_refused() -> None:
    assert connector_config("5", b'{"name": 5}') == {"name": "5"}
    with pytest.raises(ConnectError) as raised:
        connector_config("n", b'{"name": "m"}')
    assert refused(raised) == "Connector name configuration (m) doesn't match connector name in the URL (n)"


def test_a_new_connectors_name_is_trimmed() -> None:
    asked = create_request(b'{"name": "\\t n ", "config": {}, "initial_state": "Paused"}')
    assert (asked.name, asked.config, asked.initial_state) == ("n", {"name": "n"}, TargetState.PAUSED)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "not valid JSON"),
        (b" \n", "not valid JSON"),
        (b"null", "The body must be an object"),
        (b"[]", "The body must be an object"),
        (b"1", "The body must be an object"),
        (b'{"name": "n"}', '"config" must be an object'),
        (b'{"name": [], "config": {}}', '"name" must be a string'),
        (b'{"config": []}', '"config" must be an object'),
        (b'{"config": {"a": {}}}', '"a" must be a string'),
        (b'{"config": {}, "x": 1}', 'Unrecognized field "x"'),
        (b'{"name": "a/b", "config": {}}', "may not contain a slash"),
        (b'{"config": {}, "initial_state": "gone"}', "Unknown initial_state gone"),
        (b'{"config": {}} x', "not valid JSON"),
        (b'{"config": {"a": NaN}}', "NaN is no value of JSON"),
        (b'{"config": {"a": "\xff"}}', "not valid JSON"),
        (b'{"config": {"a": "\\ud800"}}', "half a character"),
        (b'{"config": {"\\ud800": ""}}', "half a character"),
        (b'{"config": ' + b"[" * 40_000, "nested too deeply"),
        (b'{"config": {"a": ' + b"9" * 10_000 + b"}, 1}", "not valid JSON"),
    ],
)
def test_malformed_create_requests_are_refused(body: bytes, reason: str) -> None:
    with pytest.raises(ConnectError) as raised:
        create_request(body)
    assert reason in refused(raised)


def test_offsets_keep_their_numbers() -> None:
    first = b'{"partition": {"a": [1, "x"], "b": {"c": 2.5}}, "offset": {"o": 9}}'
    assert offsets_to_alter(b'{"offsets": [' + first + b', {"partition": {}}]}') == [
        ConnectorOffset({"a": [1, "x"], "b": {"c": 2.5}}, {"o": 9}),
        ConnectorOffset({}, None),
    ]


@pytest.mark.parametrize("body", [b"{}", b'{"offsets": null}', b'{"offsets": []}'])
def test_missing_offsets_are_refused_with_javas_message(body: bytes) -> None:
    with pytest.raises(ConnectError) as raised:
        offsets_to_alter(body)
    assert refused(raised) == "Partitions / offsets need to be provided for an alter offsets request"


@pytest.mark.parametrize(
    "item",
    [
        b"null",
        b"1",
        b"{}",
        b'{"partition": null}',
        b'{"partition": {}, "offset": 1}',
        b'{"partition": {"a": ' + b"9" * 10_000 + b"}}",
    ],
)
def test_an_offset_without_a_partition_is_refused(item: bytes) -> None:
    with pytest.raises(ConnectError) as raised:
        offsets_to_alter(b'{"offsets": [' + item + b"]}")
    refused(raised)


@pytest.mark.parametrize("item", [b"1", b"[]", b"{}", b'"[,{"'])
def test_a_body_of_too_many_values_is_refused_before_it_is_decoded(item: bytes) -> None:
    with pytest.raises(ConnectError) as error:
        config_changes(b"[" + item + (b"," + item) * VALUES_MAX + b"]")
    assert refused(error) == f"The body is not valid JSON: it has more than {VALUES_MAX} values"


def test_what_a_text_holds_is_no_value() -> None:
    text = '[{,\\"' * VALUES_MAX + "\\"
    assert config_changes(json.dumps({"a": text, "b": "c"}).encode()) == {"a": text, "b": "c"}


def test_a_config_of_too_many_keys_is_refused() -> None:
    body = {str(number): "" for number in range(CONFIG_KEYS_MAX + 1)}
    with pytest.raises(ConnectError) as error:
        config_changes(json.dumps(body).encode())
    assert (
        refused(error) == f"A config has {CONFIG_KEYS_MAX} keys at most; this one has {CONFIG_KEYS_MAX + 1}"
    )


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
KNOWN = st.sampled_from(("name", "config", "initial_state", "offsets", "partition", "offset", "x"))
SHAPED = st.dictionaries(KNOWN, ANY_JSON | st.dictionaries(KNOWN, ANY_JSON, max_size=3), max_size=4)


@given(st.binary(max_size=60) | (SHAPED | ANY_JSON).map(lambda content: json.dumps(content).encode()))
def test_any_body_is_read_or_refused(body: bytes) -> None:
    parsers: tuple[Any, ...] = (create_request, config_changes, offsets_to_alter)
    for parse in parsers:
        with suppress(ConnectError):
            parse(body)
