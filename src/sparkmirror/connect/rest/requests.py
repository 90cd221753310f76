"""Reads requests: their JSON bodies, their query and who sends them.

Clients send numbers and booleans where a config has strings: each becomes its own text, as in Java. Unknown
fields and values of other types are refused (400).
"""

import math
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from starlette.requests import Request

from sparkmirror.config.connector_texts import NULL, json_value
from sparkmirror.connect.rest.authentication import login_of
from sparkmirror.connect.rest.responses import bad_request
from sparkmirror.domain.connect import ConnectError, ConnectorOffset, TargetState

BODY_BYTES_MAX: Final = 1024 * 1024
"""The limit of a record in a config topic; about 6,000 offsets."""
CONFIG_KEYS_MAX: Final = 2000
"""Several times the number of options."""

VALUES_MAX: Final = 50_000
"""The most values of a body, more than 6,000 offsets have. Other threads wait while a body is decoded."""

_STATES: Final = {state.name: state for state in TargetState}
_INVALID: Final = (
    "Connector configuration is invalid and contains the following {count} error(s):\n{errors}\n"
    "You can also find the above list of errors at the endpoint "
    "`/connector-plugins/{{connectorType}}/config/validate`"
)


class CreateRequest(NamedTuple):
    """The body of `POST /connectors`."""

    name: str
    config: dict[str, str]
    initial_state: TargetState | None


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


def create_request(body: bytes) -> CreateRequest:
    fields = _object(_parsed(body), "The body")
    _require_known(fields, ("name", "config", "initial_state"))
    name = _text(fields["name"], "name").strip() if fields.get("name") is not None else ""
    if "/" in name:
        raise bad_request("The name of a connector may not contain a slash: no URL could address it")
    config = named_config(name, _texts(fields.get("config"), '"config"'))
    state = fields.get("initial_state")
    return CreateRequest(name, config, None if state is None else _state(_text(state, "initial_state")))


def connector_config(name: str, body: bytes) -> dict[str, str]:
    """Parse the body of `PUT /connectors/{name}/config`, and add the name if it has none."""
    return named_config(name, config_changes(body))


def named_config(name: str, config: Mapping[str, str | None]) -> dict[str, str]:
    """Raises ConnectError when the config has another name, or nulls."""
    require_same_name(name, config)
    without = [key for key, value in config.items() if value is None and key != "name"]
    if without:
        raise bad_request(_INVALID.format(count=len(without), errors="\n".join([f"{NULL}."] * len(without))))
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
    return _texts(_parsed(body), "The body")


def offsets_to_alter(body: bytes) -> Sequence[ConnectorOffset]:
    """Parse the body of `PATCH /connectors/{name}/offsets`."""
    fields = _object(_parsed(body, parse_int=int, parse_float=_finite), "The body")
    _require_known(fields, ("offsets",))
    listed = fields.get("offsets")
    if not listed:
        raise bad_request("Partitions / offsets need to be provided for an alter offsets request")
    if not isinstance(listed, list):
        raise bad_request('"offsets" must be a list')
    return [_offset(_object(item, "An offset")) for item in listed]


def _offset(item: Mapping[str, Any]) -> ConnectorOffset:
    _require_known(item, ("partition", "offset"))
    offset = item.get("offset")
    partition = _object(item.get("partition"), '"partition"')
    return ConnectorOffset(partition, None if offset is None else _object(offset, '"offset"'))


def flag(request: Request, name: str, *, default: bool) -> bool:
    """Parse a query parameter: all but `true` is false; absent, the default."""
    text = request.query_params.get(name)
    return default if not text else text.lower() == "true"


def requested(action: str, request: Request) -> str:
    """Say what is asked for and by whom, for the events of a connector."""
    user = login_of(request.scope).user
    client = request.scope.get("client")
    address = "" if client is None else f" from {client[0]}"
    by = "a client that need not log in" if user is None else repr(user)
    return f"{action}, asked for by {by}{address}"


def _parsed(body: bytes, **numbers: Any) -> object:
    """Raises ConnectError for anything but JSON in UTF-8."""
    try:
        text = body.decode()
        _require_few_values(text)
        return json_value(text, **numbers)
    except RecursionError:
        raise bad_request("The body is not valid JSON: it is nested too deeply") from None
    except ValueError as error:
        raise bad_request(f"The body is not valid JSON: {error}") from None


def _require_few_values(text: str) -> None:
    """Count values before decoding: each begins a list or object, or follows a comma outside of strings."""
    outside_strings = "".join(text.replace("\\\\", "").replace('\\"', "").split('"')[::2])
    if sum(map(outside_strings.count, ",[{")) > VALUES_MAX:
        raise ValueError(f"it has more than {VALUES_MAX} values")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text[:20]} is too large")
    return number


def _object(content: object, place: str) -> Mapping[str, Any]:
    if not isinstance(content, dict):
        raise bad_request(f"{place} must be an object")
    return content


def _require_known(fields: Mapping[str, Any], known: Sequence[str]) -> None:
    unknown = next((name for name in fields if name not in known), None)
    if unknown is not None:
        raise bad_request(f'Unrecognized field "{unknown}" (known properties: {", ".join(known)})')


def _texts(content: object, place: str) -> dict[str, str | None]:
    texts = _object(content, place)
    if len(texts) > CONFIG_KEYS_MAX:
        raise bad_request(f"A config has {CONFIG_KEYS_MAX} keys at most; this one has {len(texts)}")
    return {_text(key, key): None if text is None else _text(text, key) for key, text in texts.items()}


def _state(text: str) -> TargetState:
    if text.upper() not in _STATES:
        raise bad_request(f"Unknown initial_state {text}: it is one of {', '.join(_STATES)}")
    return _STATES[text.upper()]


def _text(value: object, key: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        raise bad_request(f'"{key}" must be a string, a number or a boolean')
    try:
        value.encode()  # JSON can escape half a surrogate pair, which can't be written to Kafka
    except UnicodeEncodeError as error:
        raise bad_request(f"The body has half a character: {error.object[error.start]!a}") from None
    return value
