"""The OpenAPI document describes each field of the answer to `GET /mirror`."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from sparkmirror.connect.rest.worker_info import openapi
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.looks import SourceLook
from sparkmirror.storage.verified import Verified
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.view_json import Asked, view_json
from tests.support.mirror_looks import everything

ASKED: Final = (
    Asked(),
    Asked("a->b"),
    Asked("a->b", "orders"),
    Asked("a->b", groups=True),
    Asked("a->b", partitions=True),
    Asked("a->b", events=True),
    Asked("a->b", migrations=True),
    Asked("a->archive"),
)
COMPARED: Final = {TopicPartition("orders", 0): Verified(1_700_000_000.0, 1000, 0)}
TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}


def schema_of(described: dict[str, Any]) -> dict[str, Any]:
    name = described.get("$ref")
    if name is None:
        return described
    schema: dict[str, Any] = openapi()["components"]["schemas"][name.rpartition("/")[2]]
    return schema


def fields(value: Any, described: dict[str, Any], path: str, seen: set[str]) -> Iterator[str]:
    """Yield answered fields that are not described, or have another type; `seen` gets the described ones."""
    schema = schema_of(described)
    if value is None:
        if not schema.get("nullable"):
            yield f"{path} is null"
        return
    wanted = TYPES[schema["type"]]
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        yield f"{path} is {value!r}"
    elif isinstance(value, list):
        for each in value:
            yield from fields(each, schema["items"], f"{path}[]", seen)
    elif isinstance(value, dict):
        for name, each in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is None:
                yield f"{path}.{name} is not described"
                continue
            seen.add(f"{path}.{name}")
            yield from fields(each, inner, f"{path}.{name}", seen)


def described_fields(described: dict[str, Any], path: str) -> Iterator[str]:
    schema = schema_of(described)
    if "items" in schema:
        yield from described_fields(schema["items"], f"{path}[]")
    for name, inner in schema.get("properties", {}).items():
        yield f"{path}.{name}"
        yield from described_fields(inner, f"{path}.{name}")


REFUSED = Trouble(Cause(TroubleWord.NOT_CREATED, Subject.TOPIC, "no right", "give it"), "refused", since=5.0)


def test_every_field_is_described_and_every_description_has_a_field() -> None:
    answer = openapi()["paths"]["/mirror"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    known, seen = everything(), set[str]()
    assert isinstance(known[0], SourceLook)
    assert known[0].events is not None
    known[0] = replace(known[0], events=replace(known[0].events, verified=COMPARED), troubles=[REFUSED])
    view = view_of(Node("node-1", "1.0", ("http://node-1/",)), known, 1000.0)
    wrong = {wrong for asked in ASKED for wrong in fields(view_json(view, asked), answer, "", seen)}
    assert wrong == set()
    assert set(described_fields(answer, "")) - seen == set()
