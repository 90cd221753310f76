"""Draws requests that a stranger may send to the REST API: any body, header, name and query at any path.

A seed fixes them. Most have one odd part, since what is odd in two ways is refused for the first.
"""

import json
from collections.abc import Mapping
from random import Random
from typing import Any, Final
from urllib.parse import quote

from sparkmirror.config.connector_options import CONNECTOR_NAMES
from tests.support.rest_requests import Request
from tests.support.slow_requests import CONFIG

SECRET_FILE: Final = "SECRET_FILE"
"""Marks in a body the place of a file's path whose key `planted` is a secret."""
VERBS: Final = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
_CLASSES: Final = (
    "MirrorSource",
    "MirrorCheckpoint",
    "MirrorHeartbeat",
    "java.lang.Object",
    "os:system",
    "x",
)
_PATTERNS: Final = (
    *("(a+)+$", "(.|.)*!", "((a{99}){99}){99}", "[", "(?<x>a)\\k<x>", "\\p{L}{1,1000}", "(?#", "\\Q", "*"),
    *(
        "a" * 3000,
        "a, b ,,c",
        "(a|b|ab)*c",
        "\\x{110000}",
        "[[a-z]&&[^b]]",
        "(?i)\u00df",
        ".*" * 200,
        "(" * 900,
    ),
)
_PLANTED: Final = f"${{file:{SECRET_FILE}:planted}}"
_PLACEHOLDERS: Final = (
    *(
        _PLANTED,
        f"{_PLANTED}(",
        f"{_PLANTED}${{",
        f"a:{_PLANTED}",
        "${:${:" * 50,
        "${file:/dev/zero:x}",
        "$",
        "${}",
    ),
    *(
        "${env:HOME}",
        "${directory:/:etc}",
        "${a:b:c:d}",
        "${file:\x00:x}",
        f"${{file:{SECRET_FILE}}}",
        "}" * 99,
    ),
)
_NAMES: Final = (
    "",
    " ",
    "\x00",
    "\x1b[2J",
    "\u202e",
    "\u00e9",
    "\U0001f600",
    "..",
    "a/b",
    "a;b",
    "%",
    "\u0661",
    "a" * 9000,
)
_NUMBERS: Final = (
    "0",
    "-1",
    "+1",
    "2147483648",
    "9" * 400,
    "9" * 5000,
    "1e999",
    "NaN",
    "true",
    "null",
    "0x10",
)
_ADDRESSES: Final = (
    "a:1",
    "a:99999999",
    "[::1",
    "https://[",
    "/dev/zero",
    "required x=y;",
    "a b=c",
    "\ud800",
)
_RAW: Final = (
    "1" * 5000,
    "-1e999",
    "1e-999",
    "NaN",
    "Infinity",
    "1.",
    "01",
    "-",
    '"\\ud800"',
    "[" * 5000,
    "9" * 300,
)
"""Stand in a body as they are."""
_KEYS: Final = (
    *(
        "source.cluster.bootstrap.servers",
        "target.cluster.security.protocol",
        "target.producer.sasl.jaas.config",
    ),
    *(
        "source.cluster.ssl.keystore.location",
        "admin.override.x",
        "producer.override.acks",
        "transforms",
        "name",
    ),
    *(
        "transforms.x.type",
        "predicates",
        "target.cluster.sasl.mechanism",
        "source.consumer.ssl.cipher.suites",
    ),
    *(
        "source.cluster.sasl.oauthbearer.token.endpoint.url",
        "target.cluster.ssl.keystore.type",
        "config.providers",
    ),
    *sorted(CONNECTOR_NAMES),
)
_JSON: Final = "application/json"
_HEADERS: Final = (
    *(
        {"Content-Type": kind}
        for kind in ("", "text/plain", f"{_JSON}; charset=utf-16", f"{_JSON}{';' * 5000}")
    ),
    *(
        {"Origin": origin}
        for origin in ("null", "http://[", "[", "//", "http://a:b", "http://evil.example", "x" * 5000)
    ),
    *({"Host": host} for host in ("[", "a b", "evil.example", "x" * 5000, "a:b:c", "127.0.0.1:99999999")),
    *({"Accept": text} for text in ("", "text/plain", "," * 5000, "*/*;q=x")),
    *({"Authorization": text} for text in ("Basic Og==", "Bearer x", "Basic \xe9", "x" * 5000)),
    *(
        {name: "x"}
        for name in ("Accept-Encoding", "If-None-Match", "X-Forwarded-For", "Sec-Fetch-Site", "Range")
    ),
)
_PARAMETERS: Final = (
    "expand",
    "forward",
    "includeTasks",
    "onlyFailed",
    "page",
    "flow",
    "name",
    "matching",
    "topic",
)
_FOUND: Final = {
    "{plugin}": "MirrorSourceConnector",
    "{task}": "0",
    "{logger}": "root",
    "{page}": "overview",
    "{file}": "style.css",
}
"""Values for each parameter of a path; a connector is called x."""
_ODD_SEGMENTS: Final = (
    "%ff",
    "%00",
    "%",
    ".",
    "..",
    ";",
    "a;b",
    "%2f",
    "%2e%2e%2f",
    "",
    "9" * 5000,
    "-0",
    "+0",
)


class _Raw(str):
    __slots__ = ()


class AnyRequests:
    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def draw(self, verb: str, path: str) -> Request:
        """Draw a request for a path of the route table, whose parameters are in braces."""
        odd = self._random.choice(("body", "body", "body", "segment", "header", "query", "nothing"))
        segments = [self._segment(part, odd) if part.startswith("{") else part for part in path.split("/")]
        query = f"?{self._query()}" if odd == "query" else ""
        body = None if verb in {"GET", "HEAD"} else self._body(path, is_odd=odd == "body")
        headers = {} if body is None else {"Content-Type": _JSON}
        if odd == "header":
            headers |= self._random.choice(_HEADERS)
        return Request(verb, f"{'/'.join(segments)}{query}", body, headers)

    def _segment(self, parameter: str, odd: str) -> str:
        if odd != "segment":
            return _FOUND.get(parameter, "x")
        return self._random.choice((*_ODD_SEGMENTS, quote(self._text(), safe="", errors="replace")[:9000]))

    def _query(self) -> str:
        text = quote(self._text(), errors="replace")[:5000]
        given = (text, text, "true", "info", "%ff", "%", "9" * 5000, "info&expand=" * 300)
        return f"{self._random.choice(_PARAMETERS)}={self._random.choice(given)}"

    def _text(self) -> str:
        listed = self._random.choice((_PATTERNS, _PLACEHOLDERS, _NAMES, _NUMBERS, _ADDRESSES, None))
        if listed is not None:
            return self._random.choice(listed)
        letters = self._random.choice(
            ("ab", "${:}", "()[]*+?{}|\\^", "\x00\x1b\n\r\u2028\u202e\ud800", ",= \t")
        )
        return "".join(self._random.choices(letters, k=self._random.randrange(200)))

    def _value(self) -> Any:
        kinds: tuple[Any, ...] = (
            self._text(),
            _Raw(self._random.choice(_RAW)),
            None,
            True,
            1.5,
            -(2**70),
            [self._text()],
            {},
        )
        return self._random.choice((self._text(), *kinds))

    def _anything(self, depth: int = 4) -> Any:
        size = self._random.randrange(4)
        match self._random.choice(("value", "list", "object")) if depth else "value":
            case "list":
                return [self._anything(depth - 1) for _ in range(size)]
            case "object":
                return {self._text(): self._anything(depth - 1) for _ in range(size)}
            case _:
                return self._value()

    def _body(self, path: str, *, is_odd: bool) -> bytes:
        if not is_odd:
            return json.dumps(self._shape(path, {})).encode()
        body = self._written(self._shape(path, self._changes())).encode("utf-8", "surrogatepass")
        if self._random.random() < 0.7:
            return body
        return self._random.choice(
            (
                body[: self._random.randrange(len(body) + 1)],
                body + self._random.choice((b"\xff", b"}", b"\0", b"[]")),
                body.decode("utf-8", "replace").encode(
                    self._random.choice(("utf-8-sig", "utf-16", "utf-32-le"))
                ),
                self._random.randbytes(40),
                self._written(self._anything()).encode("utf-8", "replace"),
                b"",
            )
        )

    def _changes(self) -> Mapping[str, Any]:
        changes = {self._random.choice(_KEYS): self._value() for _ in range(self._random.randrange(1, 4))}
        if self._random.random() < 0.2:
            changes[self._text()] = self._value()
        if self._random.random() < 0.4:
            changes["connector.class"] = self._random.choice(_CLASSES)
        return changes

    def _shape(self, path: str, changes: Mapping[str, Any]) -> Any:
        config = {**CONFIG, **changes}
        if path == "/connectors":
            states = ("RUNNING", "STOPPED", "PAUSED") if not changes else (self._value(), "stopped")
            name = self._value() if changes and self._random.random() < 0.2 else "x"
            return {"name": name, "config": config, "initial_state": self._random.choice(states)}
        if path.endswith("/offsets"):
            offset = {"partition": self._anything(), "offset": self._anything()} if changes else {}
            good = {"partition": {"cluster": "a", "topic": "t", "partition": 0}, "offset": {"offset": 1}}
            return {"offsets": [good, {**good, **offset}]}
        if path.startswith("/admin"):
            return {"level": self._value() if changes else "INFO"}
        return config

    def _written(self, value: Any) -> str:
        match value:
            case _Raw():
                return str(value)
            case dict():
                pairs = (f"{json.dumps(key)}:{self._written(item)}" for key, item in value.items())
                return f"{{{','.join(pairs)}}}"
            case list():
                return f"[{','.join(map(self._written, value))}]"
            case _:
                return json.dumps(value)
