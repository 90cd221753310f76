"""Parses the JSON bodies of requests as Connect's Jackson does for each kind of request.

Numbers and booleans become their own text where a string is expected; unknown fields, anything after the
value and values of other types are refused. A body that makes Java respond with 500 by accident gets a 400.
"""

import json
import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Final, NoReturn

from starlette.requests import Request

from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.connect.rest.responses import bad_request
from sparkmirror.domain.connect import ConnectError, ConnectorOffset, TargetState

BODY_BYTES_MAX: Final = 1024 * 1024
"""As much as a record of a config topic may have; about 6,000 offsets."""

VALUES_MAX: Final = 50_000
"""More than 6,000 offsets have. Other threads wait while a body is decoded."""
CONFIG_KEYS_MAX: Final = 2000
"""Several times as many as there are options."""

_STATES: Final = {state.name: state for state in TargetState}
_NULL_VALUE: Final = "Null value can not be supplied as the configuration value."
_INVALID: Final = (
    "Connector configuration is invalid and contains the following {count} error(s):\n{errors}\n"
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{{connectorType}}/config/validate`"
)


class _Number(str):
    """The text of a JSON number."""

    __slots__ = ()


async def read_body(request: Request) -> bytes:
    """Raises ConnectError (413) for more than BODY_BYTES_MAX."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise ConnectError(
                HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The body is larger than {BODY_BYTES_MAX} bytes"
            )
    return bytes(body)


class CreateRequest:
    """The body of `POST /connectors`."""

    __slots__ = ("config", "initial_state", "name")

    def __init__(self, name: str, config: dict[str, str], initial_state: TargetState | None) -> None:
        self.name = name
        self.config = config
        self.initial_state = initial_state


def create_request(body: bytes) -> CreateRequest:
    fields = _object(_parsed(body), ("name", "config", "initial_state"))
    name = fields.get("name")
    config = fields.get("config")
    state = fields.get("initial_state")
    if config is None:
        raise bad_request('The field "config" is missing: {"name": …, "config": {…}} is expected')
    trimmed = "" if name is None else _text(name, "name").strip(JAVA_WHITESPACE)
    return CreateRequest(
        trimmed,
        named_config(trimmed, _texts(config, "config")),
        None if state is None else _state(_text(state, "initial_state")),
    )


def connector_config(name: str, body: bytes) -> dict[str, str]:
    """Parse the body of `PUT /connectors/{name}/config`, and add the name if it has none."""
    return named_config(name, config_changes(body))


def named_config(name: str, config: Mapping[str, str | None]) -> dict[str, str]:
    """Raises ConnectError when the config has another name, or nulls."""
    require_same_name(name, config)
    without = [key for key, value in config.items() if value is None and key != "name"]
    if without:
        raise bad_request(_INVALID.format(count=len(without), errors="\n".join(_NULL_VALUE for _ in without)))
    return {**{key: value for key, value in config.items() if value is not None}, "name": name}


def require_same_name(name: str, config: Mapping[str, str | None]) -> None:
    """Raises ConnectError when the config has another name."""
    included = config.get("name")
    if included is not None and included != name:
        raise bad_request(
            f"Connector name configuration ({included}) doesn't match connector name in the URL ({name})"
        )


def config_changes(body: bytes) -> dict[str, str | None]:
    """Parse a map of strings and nulls."""
    return _texts(_parsed(body), None)


def offsets_to_alter(body: bytes) -> Sequence[ConnectorOffset]:
    """The body of `PATCH /connectors/{name}/offsets`."""
    listed = _object(_parsed(body), ("offsets",)).get("offsets")
    if listed is None or listed == []:
        raise bad_request("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(listed, list):
        _wrong(listed, "offsets", "a list")
    return [_offset(item) for item in listed]


def _offset(item: object) -> ConnectorOffset:
    fields = _object(item, ("partition", "offset"))
    partition, offset = fields.get("partition"), fields.get("offset")
    if not isinstance(partition, dict):
        _wrong(partition, "partition", "an object")
    if offset is not None and not isinstance(offset, dict):
        _wrong(offset, "offset", "an object or null")
    return ConnectorOffset(_numbered(partition), None if offset is None else _numbered(offset))


def _numbered(content: Mapping[str, object]) -> dict[str, object]:
    """Convert the texts of numbers to numbers."""
    return {key: _number(value) for key, value in content.items()}


def _number(value: object) -> object:
    match value:
        case _Number():
            return _as_number(value)
        case dict():
            return _numbered(value)
        case list():
            return [_number(item) for item in value]
        case _:
            return value


def _as_number(text: str) -> object:
    try:
        number: object = json.loads(text)
    except ValueError:
        raise bad_request(f"The number {text[:20]}… has too many digits") from None
    if isinstance(number, float) and math.isinf(number):
        raise bad_request(f"The number {text[:20]} is too large")  # JSON has no infinity to answer with
    return number


def _parsed(body: bytes) -> object:
    """Raises ConnectError for anything but JSON. UTF-16 and UTF-32 are recognized (RFC 4627)."""
    if not body.strip():
        raise bad_request("The request has no body, JSON is expected")
    encoding = json.detect_encoding(body)
    try:
        text = body.decode("utf-8-sig" if encoding == "utf-8" else encoding)
        _require_few_values(text)
        content: object = json.loads(
            text, parse_int=_Number, parse_float=_Number, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise bad_request(f"The body is not valid {encoding.upper()}: byte {error.start}") from None
    except RecursionError:
        raise bad_request("The body is not valid JSON: it is nested too deeply") from None
    except ValueError as error:
        raise bad_request(f"The body is not valid JSON: {error}") from None
    return content


def _require_few_values(text: str) -> None:
    """Each value is the first of a list or object, or stands behind a comma; strings have none."""
    outside_strings = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    if sum(map(outside_strings.count, ",[{")) > VALUES_MAX:
        raise bad_request(f"The body has more than {VALUES_MAX} values")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no value of JSON")


def _object(content: object, known: Sequence[str]) -> Mapping[str, object]:
    if not isinstance(content, dict):
        _wrong(content, None, "an object")
    unknown = next((name for name in content if name not in known), None)
    if unknown is not None:
        listed = ", ".join(f'"{name}"' for name in known)
        raise bad_request(f'Unrecognized field "{unknown}" (known properties: {listed})')
    return content


def _texts(content: object, place: str | None) -> dict[str, str | None]:
    if not isinstance(content, dict):
        _wrong(content, place, "an object")
    if len(content) > CONFIG_KEYS_MAX:
        raise bad_request(f"A config has {CONFIG_KEYS_MAX} keys at most; this one has {len(content)}")
    return {_whole(key): None if value is None else _text(value, key) for key, value in content.items()}


def _text(value: object, place: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _whole(str(value))
    return _wrong(value, place, "a text, a number or a boolean")


def _whole(text: str) -> str:
    """Half a surrogate pair can be escaped in JSON, but not written to Kafka."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise bad_request(f"The body has half a character: {error.object[error.start]!a}") from None
    return text


def _state(text: str) -> TargetState:
    state = _STATES.get(text.upper())
    if state is None:
        raise bad_request(f"Unknown initial_state {text}: it is one of {', '.join(_STATES)}")
    return state


def _wrong(value: object, place: str | None, expected: str) -> NoReturn:
    where = "The body" if place is None else f'The value of "{place}"'
    raise bad_request(f"{where} is {_kind(value)}, {expected} is expected")


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case _Number():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"
