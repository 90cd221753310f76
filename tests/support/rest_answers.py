"""Responds to requests of a REST client without a network."""

import io
import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from urllib3 import HTTPResponse


class Asked(NamedTuple):
    method: str
    path: str
    body: Any
    headers: Mapping[str, str]


class Answering:
    """Replaces urllib3's PoolManager: returns the function's response, or raises it if it is an exception."""

    def __init__(self, answer: Callable[[Asked], HTTPResponse | Exception]) -> None:
        self.asked: list[Asked] = []
        self._answer = answer

    def request(
        self, method: str, url: str, *, body: bytes | None, headers: Mapping[str, str], **_: Any
    ) -> HTTPResponse:
        path = "/" + url.split("/", 3)[3]
        self.asked.append(Asked(method, path, None if body is None else json.loads(body), headers))
        answer = self._answer(self.asked[-1])
        if isinstance(answer, Exception):
            raise answer
        return answer

    def clear(self) -> None:
        pass


def in_turn(*answers: HTTPResponse | Exception) -> Answering:
    left = iter(answers)
    return Answering(lambda _: next(left))


def answer(status: int, content: object = None) -> HTTPResponse:
    return raw(status, b"" if content is None else json.dumps(content).encode())


def raw(status: int, body: bytes, kind: str = "application/json") -> HTTPResponse:
    return HTTPResponse(io.BytesIO(body), status=status, headers={"Content-Type": kind})


def refusal(status: int, message: str) -> HTTPResponse:
    return answer(status, {"error_code": status, "message": message})
