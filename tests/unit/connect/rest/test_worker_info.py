"""Checks that the OpenAPI description and the served routes are the same."""

import re
from typing import Any

from sparkmirror.config.properties import Properties
from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.app import Node, routes
from sparkmirror.connect.rest.dispatch import Endpoint
from sparkmirror.connect.rest.rest_settings import rest_settings
from sparkmirror.connect.rest.worker_info import openapi
from sparkmirror.connect.validation import KAFKA_VERSION
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view import making
from tests.support.memory_herder import MemoryHerder

BESIDE = {("GET", "/openapi.json"), ("GET", "/docs")}
PAGES = "/ui"
INTERNAL = {("POST", "/connectors/{}/tasks"), ("PUT", "/connectors/{}/fence")}


def served() -> set[tuple[str, str]]:
    view = CurrentView(lambda: making.Node("node", "1"), list)
    node = Node(MemoryHerder(), LogLevels(), view=view)
    main, admin = routes(node, rest_settings(Properties()))
    found = set()
    for route in (*main, *admin):
        if route.path.startswith(PAGES):
            continue
        assert isinstance(route.endpoint, Endpoint)
        verbs = route.endpoint.verbs - {"HEAD", "OPTIONS"}
        found |= {(verb, unnamed(route.path)) for verb in verbs}
    return found


def unnamed(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path)


def references(content: Any) -> set[str]:
    match content:
        case {"$ref": str(name)}:
            return {name}
        case dict():
            return set().union(*map(references, content.values()))
        case list():
            return set().union(*map(references, content))
        case _:
            return set()


def test_everything_that_is_served_is_described() -> None:
    described = {
        (verb.upper(), unnamed(path)) for path, verbs in openapi()["paths"].items() for verb in verbs
    }
    assert described == served() - BESIDE - INTERNAL


def test_the_description_has_the_version_of_the_api() -> None:
    assert openapi()["info"]["version"] == KAFKA_VERSION


def test_every_object_is_described_and_used() -> None:
    schemas = {f"#/components/schemas/{name}" for name in openapi()["components"]["schemas"]}
    assert references(openapi()) == schemas


def test_every_operation_has_a_name_of_its_own() -> None:
    names = [
        operation["operationId"] for verbs in openapi()["paths"].values() for operation in verbs.values()
    ]
    assert len(set(names)) == len(names)


def test_placeholders_of_paths_are_parameters() -> None:
    for path, verbs in openapi()["paths"].items():
        for operation in verbs.values():
            named = [one["name"] for one in operation.get("parameters", []) if one["in"] == "path"]
            assert named == re.findall(r"\{(\w+)\}", path)
