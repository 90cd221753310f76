"""Requests that once occupied a worker for seconds: bodies up to the limit, at every path that takes one."""

import itertools
import json
from collections.abc import Iterator
from typing import Final

from sparkmirror.connect.logger_levels import LogLevels
from sparkmirror.connect.rest.app import Node, routes
from sparkmirror.connect.rest.dispatch import Endpoint
from tests.support.memory_herder import MemoryHerder
from tests.support.rest_requests import Request
from tests.support.rest_serving import settings

JSON: Final = {"Content-Type": "application/json"}
VALIDATE: Final = "/connector-plugins/MirrorSourceConnector/config/validate"
CONFIG: Final = {
    "name": "x",
    "connector.class": "MirrorSource",
    "source.cluster.alias": "a",
    "target.cluster.alias": "b",
    "source.cluster.bootstrap.servers": "a:1",
    "target.cluster.bootstrap.servers": "b:1",
}
CHANGES: Final = {
    "placeholders": {"topics": "${:" * 330},
    "spaces": {"topics": "a" + " " * 60_000 + "b"},
    "classes": {"topics": "\\p{L}" * 12_000},
    "backtracking": {"topics": "(.|.)*[!?]"},
    "repetitions": {"topics": "(((a{1000}){1000}){1000}){1000}"},
    "tasks": {"tasks.max": "2000000000"},
    "device": {"topics": "${file:/dev/zero:x}", "config.providers": "file"},
    "megabyte": {"topics": "a," * 500_000},
}


MIB: Final = 1 << 20
BODIES: Final = {
    "nested": b'{"config":' + b"[" * (MIB - 100),
    "keys": b"{" + b",".join(b'"%d":"${a:b}"' % number for number in range(50_000)) + b"}",
    "offsets": b'{"offsets":[' + b",".join([b'{"partition":{"p":1},"offset":{"o":1}}'] * 5_000) + b"]}",
    "numbers": b"[" + b"1," * 500_000 + b"1]",
    "lists": b"[" + b"[]," * 300_000 + b"[]]",
}


def changing_requests() -> list[tuple[str, str]]:
    """Every verb of every path that may have a body."""
    found = []
    for route in itertools.chain(*routes(Node(MemoryHerder(), LogLevels()), settings())):
        assert isinstance(route.endpoint, Endpoint)
        path = route.path.replace("{plugin}", "MirrorSourceConnector").replace("{task}", "0")
        verbs = sorted(route.endpoint.verbs - {"GET", "HEAD", "OPTIONS"})
        found += [(verb, path.replace("{connector}", "x").replace("{logger}", "x")) for verb in verbs]
    return found


def validated(changes: dict[str, str]) -> Request:
    return Request("PUT", VALIDATE, json.dumps({**CONFIG, **changes}).encode(), JSON)


def occupying_requests() -> Iterator[tuple[str, Request]]:
    """All of them, with names."""
    for name, changes in CHANGES.items():
        yield f"validate {name}", validated(changes)
    for verb, path in changing_requests():
        for name, body in BODIES.items():
            yield f"{verb} {path} {name}", Request(verb, path, body, JSON)
