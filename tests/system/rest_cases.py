"""Lists requests to compare between Java's Connect worker and ours, and intended differences.

BOOTSTRAP in a body stands for a cluster's address.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from tests.support.rest_requests import (
    Answer,
    Request,
    calm,
    connector_is,
    running,
    with_offsets,
    without_offsets,
)

Reduce = Callable[[Any], Any]
"""Removes the parts of a JSON body that may differ between the two workers."""

_JSON: Final = {"Content-Type": "application/json"}
_MIRROR: Final = "org.apache.kafka.connect.mirror"
_HEARTBEAT: Final = f"{_MIRROR}.MirrorHeartbeatConnector"
_CONVERTER: Final = "org.apache.kafka.connect.converters.ByteArrayConverter"
_PARTITION: Final = {"sourceClusterAlias": "a", "targetClusterAlias": "b"}
_OFFSETS: Final = {"offsets": [{"partition": _PARTITION, "offset": {"offset": 0}}]}


@dataclass(frozen=True, slots=True)
class Case:
    """A request to compare. `ours` is our status where it differs on purpose; then only the form is compared.

    `java_until` is a condition that Java's worker meets after a while and ours at once.
    """

    request: Request
    until: Callable[[Answer], bool] = calm
    java_until: Callable[[Answer], bool] | None = None
    ours: int | None = None
    reduce: Reduce | None = None

    def __str__(self) -> str:
        return str(self.request)


def ask(method: str, path: str, body: object = None, **said: Any) -> Case:
    """Make a request; a given body is sent as JSON."""
    headers: Mapping[str, str] = said.pop("headers", _JSON if body is not None else {})
    raw = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    return Case(Request(method, path, raw, headers), **said)


def cases() -> list[Case]:
    return [_without_chance(case) for case in _all_cases()]


def _without_chance(case: Case) -> Case:
    """Leave out of responses to changes what depends on how far a worker has come by then."""
    if case.request.method not in ("POST", "PUT", "PATCH") or case.reduce is not None:
        return case
    path = case.request.path.partition("?")[0]
    if path.endswith(("/connectors", "/config")):
        return replace(case, reduce=_without_tasks)
    return replace(case, reduce=_without_versions) if path.endswith("/restart") else case


def _without_tasks(content: Any) -> Any:
    """Leave out which tasks are started."""
    is_info = isinstance(content, dict) and "tasks" in content
    return {**content, "tasks": type(content["tasks"]).__name__} if is_info else content


def _without_versions(content: Any) -> Any:
    """Leave out the versions, which Java doesn't know while a restart before this one goes on."""
    match content:
        case {"connector": connector, "tasks": tasks}:
            instances = [dict(each, version=None) for each in (connector, *tasks)]
            return {**content, "connector": instances[0], "tasks": instances[1:]}
        case _:
            return content


def _all_cases() -> list[Case]:
    return [
        *root(),
        *creation(),
        *looking(),
        *bad_creations(),
        *configs(),
        *seeds(),
        *media_types(),
        *verbs(),
        *paths(),
        *states(),
        *offsets(),
        *names(),
        *plugins(),
        *loggers(),
        *internal(),
        *deletion(),
    ]


def heartbeat(**more: object) -> dict[str, object]:
    return {
        "connector.class": _HEARTBEAT,
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "BOOTSTRAP",
        "target.cluster.bootstrap.servers": "BOOTSTRAP",
        "heartbeats.topic.replication.factor": 1,
        "key.converter": _CONVERTER,
        "value.converter": _CONVERTER,
        **more,
    }


def root() -> Iterator[Case]:
    yield ask("GET", "/", reduce=sorted)
    yield ask("GET", "/health")
    yield ask("GET", "/connectors")
    yield ask("GET", "/connectors/")


def creation() -> Iterator[Case]:
    numbers = b'"tasks.max": 1, "emit.heartbeats.enabled": true, "x.float": 1.50, "x.exponent": 1E3'
    config = json.dumps(heartbeat()).encode()[:-1] + b", " + numbers + b"}"
    yield ask("POST", "/connectors", b'{"name": "hb", "config": ' + config + b"}")
    yield ask("GET", "/connectors/hb/status", until=running(1))
    yield ask("POST", "/connectors", {"name": "hb", "config": heartbeat()})
    yield ask("GET", "/connectors/hb/config")


def looking() -> Iterator[Case]:
    for query in ("", "?expand=status", "?expand=info", "?expand=info&expand=status"):
        yield ask("GET", f"/connectors{query}")
    for query in ("?expand=bogus", "?expand", "?expand=", "?expand=INFO"):
        yield ask("GET", f"/connectors{query}")
    for rest in ("", "/config", "/status", "/offsets", "/tasks/0/status", "/", "/status/"):
        yield ask("GET", f"/connectors/hb{rest}")
    yield ask("GET", "/connectors/hb/tasks", reduce=_task_ids)
    yield ask("GET", "/connectors/hb/topics", until=lambda answer: b"heartbeats" in answer.body)
    for task in ("7", "abc", "-1", "99999999999", "+0", "00"):
        yield ask("GET", f"/connectors/hb/tasks/{task}/status")
    for rest in ("/tasks/0", "/tasks-config", "/foo"):
        yield ask("GET", f"/connectors/hb{rest}")
    for rest in ("", "/config", "/tasks", "/status", "/topics", "/offsets", "/tasks/0/status"):
        yield ask("GET", f"/connectors/none{rest}")


def bad_creations() -> Iterator[Case]:
    """Java answers most of these with 500; here a client's error is a 400."""
    for body in (b"", b"   ", b"null", b"{", b"[]", b'"x"', b"1", b"{}", b'{"name":null}', b"{'name':'x'}"):
        yield ask("POST", "/connectors", body, ours=400)
    for config in ("null", "[]", '"x"', '{"a":{"b":1}}', '{"a":[1]}', '{"a":NaN}', '{"a":01}', '{"a":}'):
        yield ask("POST", "/connectors", b'{"name":"n1","config":' + config.encode() + b"}", ours=400)
    for more in (
        b',"bogus":1}',
        b',"Name":"x"}',
        b',"initial_state":"bogus"}',
        b',"initial_state":1}',
        b"} trailing",
        b"}{}",
        b",}",
        b"/*c*/}",
    ):
        yield ask("POST", "/connectors", b'{"name":"n1","config":{}' + more, ours=400)
    for name in (b'["a"]', b'{"a":1}', b'"\xff"', b'"\x01"', b"tru"):
        yield ask("POST", "/connectors", b'{"config":{},"name":' + name + b"}", ours=400)
    # For the following ones Java has a message too.
    for name in (b'"n1"', b"null", b'""', b"1", b"true", b'"n1","name":"n2"', b'"  n1 \\t"'):
        yield ask("POST", "/connectors", b'{"config":{},"name":' + name + b"}")
    yield ask("POST", "/connectors", b'\xef\xbb\xbf{"name":"n1","config":{}}')
    yield ask("POST", "/connectors", '{"name":"n1","config":{}}'.encode("utf-16"))
    yield ask("POST", "/connectors", {"name": "n1", "config": {"name": "n2"}})
    yield ask("POST", "/connectors", {"name": "n1", "config": {}, "initial_state": None})
    yield ask(
        "POST", "/connectors", {"name": "n1", "config": {"connector.class": "Nope"}}, reduce=_unknown_class
    )


def configs() -> Iterator[Case]:
    for body in (b"", b"{", b"[]", b'"x"', b"null", b'{"a":{}}'):
        yield ask("PUT", "/connectors/n1/config", body, ours=400)
        yield ask("PATCH", "/connectors/hb/config", body, ours=400)
    yield ask("PUT", "/connectors/n1/config", {})
    yield ask("PUT", "/connectors/n1/config", {"a": 1}, reduce=_without_a_type)
    yield ask("PUT", "/connectors/n1/config", {"name": "other"})
    yield ask("PUT", "/connectors/n1/config", {"name": 5})
    yield ask("PUT", "/connectors/n1/config", {"connector.class": "Nope"}, reduce=_unknown_class)
    yield ask(
        "PUT", "/connectors/n1/config", {"connector.class": "MirrorHeartbeat", "target.cluster.alias": "b"}
    )
    yield ask("PUT", "/connectors/n1/config", heartbeat(**{"some.null": None}))
    yield ask("PATCH", "/connectors/none/config", {"a": "b"})
    yield ask("PATCH", "/connectors/hb/config", {})
    yield ask("PATCH", "/connectors/hb/config", {"not.there": None})
    yield ask("PATCH", "/connectors/hb/config", {"tasks.max": "x"})
    # Java would rename the connector.
    yield ask("PATCH", "/connectors/hb/config", {"name": "other"}, ours=400)
    yield ask("PATCH", "/connectors/hb/config", {"name": "hb"})
    yield ask(
        "PATCH", "/connectors/hb/config", {"x.float": None, "x.new": 2.0, "emit.heartbeats.enabled": False}
    )
    yield ask("GET", "/connectors/hb/status", until=connector_is("RUNNING"))
    yield ask("PATCH", "/connectors/hb/config", {"emit.heartbeats.enabled": "true"})
    yield ask("GET", "/connectors/hb/status", until=running(1))
    yield ask("GET", "/connectors/hb/config")
    yield ask("PUT", "/connectors/hb/config", heartbeat(name="hb"))
    yield ask("GET", "/connectors/hb/config")
    yield ask("GET", "/connectors/hb/status", until=running(1))


def seeds() -> Iterator[Case]:
    """The three connectors as PUT bodies with JSON booleans."""
    clusters = {
        "key.converter": _CONVERTER,
        "value.converter": _CONVERTER,
        "source.cluster.alias": "source-0",
        "source.cluster.bootstrap.servers": "BOOTSTRAP",
        "target.cluster.alias": "target-0",
        "target.cluster.bootstrap.servers": "BOOTSTRAP",
    }
    source = {
        "sync.topic.acls.enabled": False,
        "sync.topic.configs.enabled": False,
        "topics": "nothing-that-is-there",
        "replication.factor": "1",
        "offset-syncs.topic.replication.factor": "1",
        "tasks.max": "2",
    }
    files: dict[str, dict[str, object]] = {
        "cpc": {
            "connector.class": f"{_MIRROR}.MirrorCheckpointConnector",
            "checkpoints.topic.replication.factor": 1,
        },
        "hbc": {"connector.class": _HEARTBEAT, "heartbeats.topic.replication.factor": 1},
        "msc": {"connector.class": f"{_MIRROR}.MirrorSourceConnector", **source},
    }
    for kind, config in files.items():
        name = f"mm2-{kind}-source-0"
        yield ask("GET", f"/connectors/{name}/status")
        yield ask("PUT", f"/connectors/{name}/config", {"name": name, **config, **clusters})
    for kind in files:
        yield ask("DELETE", f"/connectors/mm2-{kind}-source-0")


def media_types() -> Iterator[Case]:
    body = json.dumps({"name": "hb", "config": heartbeat()}).encode()
    for said in ("text/plain", "application/x-www-form-urlencoded", "application/vnd.x+json", "*/*"):
        yield ask("POST", "/connectors", body, headers={"Content-Type": said})
    yield ask("POST", "/connectors", body, headers={})
    for said in ("application/json;charset=utf-8", "application/JSON", "application/json;charset=iso-8859-1"):
        yield ask("POST", "/connectors", body, headers={"Content-Type": said})
    for said in ("bogus", ""):
        yield ask("POST", "/connectors", body, headers={"Content-Type": said}, ours=415)
    for accepted in (
        "text/html",
        "*/*",
        "text/html, */*;q=0.1",
        "application/*",
        "bogus",
        "",
        "application/json;q=0",
        "application/vnd.x+json",
    ):
        yield ask("GET", "/connectors/hb/status", headers={"Accept": accepted})
        yield ask("GET", "/connectors/none/status", headers={"Accept": accepted})
    yield ask("GET", "/", headers={"Content-Type": "text/plain"})
    yield ask("GET", "/connectors", headers={"Content-Type": "text/plain"})
    yield ask("PUT", "/connectors/hb/pause", headers={"Content-Type": "text/plain"})
    yield ask("PUT", "/connectors/hb/resume", b"junk")


def verbs() -> Iterator[Case]:
    for method, path in (
        ("DELETE", "/connectors"),
        ("PUT", "/connectors"),
        ("PATCH", "/connectors/hb"),
        ("POST", "/connectors/hb"),
        ("TRACE", "/connectors"),
        ("FOO", "/connectors"),
        ("get", "/connectors"),
        ("GET", "/connectors/hb/restart"),
        ("POST", "/connectors/hb/pause"),
        ("POST", "/"),
        ("DELETE", "/health"),
        ("POST", "/connector-plugins"),
        ("DELETE", "/admin/loggers"),
        ("GET", "/connectors/hb/fence"),
        ("GET", "/connectors/hb/tasks/0/restart"),
        ("POST", "/connectors/hb/config"),
        ("PROPFIND", "/foo"),
        ("OPTIONS", "/foo"),
        ("OPTIONS", "/"),
        ("OPTIONS", "/connectors"),
        ("OPTIONS", "/connectors/hb"),
        ("HEAD", "/connectors/none"),
    ):
        yield ask(method, path)


def paths() -> Iterator[Case]:
    for path in (
        "/foo",
        "/admin",
        "/admin/",
        "/connector-plugins/",
        "/connectors/a%20b/status",
        "/connectors/a+b/status",
        "/connectors/hb;x=1/status",
        "/connectors/%C3%A9/status",
        "/connectors/%E2%82%AC%F0%9F%98%80/status",
        "/connectors/a%3Bb/status",
        "/connectors/a%3Fb/status",
        "/connectors/.../status",
        "/connectors/../status",
        "/connectors/HB/status",
        "/connectors/%68b/status",
        "/CONNECTORS",
        "/connectors/hb/status?forward=maybe",
        "/connectors?forward=1",
        "/connectors/hb/status?%zz",
        "/connectors/" + "a" * 300 + "/status",
        "http://other/connectors/hb/status",
        "/favicon.ico",
    ):
        yield ask("GET", path)
    # Jetty answers with HTML pages, sparkmirror with JSON errors.
    for path in (
        "//connectors",
        "/connectors//status",
        "/connectors/%00/status",
        "/connectors/%zz/status",
        "/connectors/%ff/status",
        "/connectors/hb%0A/status",
    ):
        yield ask("GET", path, ours=400)
    # Jetty refuses names with these characters in any encoding.
    for name in ("a%2Fb", "%25", "a%5Cb", "%2E%2E", "a|b", "{x}"):
        yield ask("GET", f"/connectors/{name}/status", ours=404)


def states() -> Iterator[Case]:
    for method, what in (
        ("PUT", "pause"),
        ("PUT", "resume"),
        ("PUT", "stop"),
        ("POST", "restart"),
        ("POST", "restart?includeTasks=true"),
        ("PUT", "topics/reset"),
        ("POST", "tasks/0/restart"),
    ):
        yield ask(method, f"/connectors/none/{what}")
    for task in ("7", "x"):
        yield ask("POST", f"/connectors/hb/tasks/{task}/restart")
    yield ask("GET", "/connectors/hb/status", until=running(1))
    yield ask("POST", "/connectors/hb/tasks/0/restart?forward=true")
    yield ask("GET", "/connectors/hb/status", until=running(1))
    for query in ("includeTasks=TRUE&onlyFailed=true", "onlyFailed=true"):
        yield ask("POST", f"/connectors/hb/restart?{query}")
    for query in ("", "?includeTasks=bogus&onlyFailed=1", "?includeTasks=", "?includeTasks"):
        yield ask("POST", f"/connectors/hb/restart{query}")
        yield ask("GET", "/connectors/hb/status", until=running(1))
    for query in ("includeTasks=true&onlyFailed=false", "includeTasks=true&includeTasks=false"):
        yield ask("POST", f"/connectors/hb/restart?{query}")
        yield ask("GET", "/connectors/hb/status", until=running(1))
    yield ask("PUT", "/connectors/hb/pause")
    yield ask("GET", "/connectors/hb/status", until=connector_is("PAUSED", 1))
    yield ask("PUT", "/connectors/hb/resume")
    yield ask("GET", "/connectors/hb/status", until=running(1))
    for name, state, shown in (("st", "stopped", "STOPPED"), ("pa", "Paused", "PAUSED")):
        body = {"name": name, "config": heartbeat(), "initial_state": state}
        yield ask("POST", "/connectors", body)
        yield ask("GET", f"/connectors/{name}/status", until=connector_is(shown))
    yield ask("PUT", "/connectors/pa/resume")
    yield ask("GET", "/connectors/pa/status", until=running(1))
    yield ask("DELETE", "/connectors/pa")


def offsets() -> Iterator[Case]:
    yield ask("PATCH", "/connectors/hb/offsets", _OFFSETS)
    yield ask("DELETE", "/connectors/hb/offsets")
    yield ask("PATCH", "/connectors/none/offsets", _OFFSETS)
    yield ask("DELETE", "/connectors/none/offsets")
    yield ask("PUT", "/connectors/hb/stop")
    yield ask("GET", "/connectors/hb/status", until=connector_is("STOPPED"))
    yield ask("GET", "/connectors/hb")
    yield ask("GET", "/connectors/hb/tasks")
    for body in (b"{}", b'{"offsets":null}', b'{"offsets":[]}'):
        yield ask("PATCH", "/connectors/hb/offsets", body)
    for body in (
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"bogus":1}',
        b'{"offsets":[],"bogus":1}',
        b'{"offsets":{"a":1}}',
    ):
        yield ask("PATCH", "/connectors/hb/offsets", body, ours=400)
    for item in ("null", "1", "{}", '{"partition":null,"offset":null}', '{"partition":"x","offset":{}}'):
        yield ask("PATCH", "/connectors/hb/offsets", f'{{"offsets":[{item}]}}'.encode(), ours=400)
    yield ask("PATCH", "/connectors/hb/offsets", _OFFSETS)
    yield ask("GET", "/connectors/hb/offsets", java_until=with_offsets)
    yield ask("DELETE", "/connectors/hb/offsets")
    yield ask("GET", "/connectors/hb/offsets", java_until=without_offsets)
    yield ask("POST", "/connectors/hb/restart")
    yield ask("POST", "/connectors/hb/restart?includeTasks=true")
    yield ask("PUT", "/connectors/hb/topics/reset")


def names() -> Iterator[Case]:
    for name in ("  trimmed ", "a b+c", "é€😀", "..", "hash#?"):
        asked = {"name": name, "config": heartbeat(), "initial_state": "STOPPED"}
        yield ask("POST", "/connectors", asked)
    for path in ("trimmed", "a%20b+c", "%C3%A9%E2%82%AC%F0%9F%98%80", "..", "hash%23%3F"):
        yield ask("GET", f"/connectors/{path}/config")
        yield ask("DELETE", f"/connectors/{path}")
    # Java stores the connector and then fails to build the Location header.
    yield ask("PUT", "/connectors/a%7Bb%7D/config", heartbeat(), ours=201)
    yield ask("DELETE", "/connectors/a%7Bb%7D")
    yield ask("PUT", "/connectors/slash%2F%25%5C/config", heartbeat(), ours=201)
    yield ask("DELETE", "/connectors/slash%2F%25%5C", ours=204)
    yield ask("GET", "/connectors")


def plugins() -> Iterator[Case]:
    for query in ("", "?connectorsOnly=true", "?connectorsOnly=", "?connectorsOnly=TRUE"):
        yield ask("GET", f"/connector-plugins{query}")
    for plugin in ("Nope", "ByteArrayConverter", _CONVERTER):
        yield ask("GET", f"/connector-plugins/{plugin}/config")
    for plugin in ("MirrorHeartbeatConnector", _HEARTBEAT, "MirrorHeartbeat"):
        yield ask("GET", f"/connector-plugins/{plugin}/config", reduce=lambda listed: listed[0])
    for plugin in ("MirrorHeartbeatConnector", _HEARTBEAT, "t"):
        settings = heartbeat(name="v", **{"tasks.max": "x"})
        yield ask("PUT", f"/connector-plugins/{plugin}/config/validate", settings, reduce=_errors)
    for plugin in ("Nope", "Connector"):
        settings = {"connector.class": _HEARTBEAT}
        yield ask("PUT", f"/connector-plugins/{plugin}/config/validate", settings)
    null = {"connector.class": _HEARTBEAT, "a": None, "name": 5}
    yield ask("PUT", "/connector-plugins/MirrorHeartbeat/config/validate", null, reduce=_errors)
    # Java has the same message in a different error.
    for body in (b"", b"{", b"null", b"[]", b"{}", b'{"connector.class":null}'):
        yield ask("PUT", "/connector-plugins/MirrorHeartbeat/config/validate", body, ours=400)
    yield ask("PUT", "/connector-plugins/Nope/config/validate", {"connector.class": "Nope"}, ours=400)


def loggers() -> Iterator[Case]:
    yield ask("GET", "/admin/loggers/root", reduce=sorted)
    yield ask("GET", "/admin/loggers/ROOT", reduce=sorted)
    yield ask("GET", "/admin/loggers/nope")
    for level in ("debug", "DEBUG", "off", "Trace", "FATAL", "WARN"):
        yield ask("PUT", "/admin/loggers/some.logger", {"level": level})
    yield ask("GET", "/admin/loggers/some.logger")
    yield ask("GET", "/admin/loggers", reduce=lambda known: [known["some.logger"], sorted(known["root"])])
    yield ask("GET", "/admin/loggers/", reduce=lambda known: known["some.logger"])
    for scope in ("worker", "bogus", ""):
        yield ask("PUT", f"/admin/loggers/of-{scope}?scope={scope}", {"level": "ERROR"})
    for scope in ("cluster", "CLUSTER"):
        yield ask("PUT", f"/admin/loggers/some.other?scope={scope}", {"level": "ERROR"})
    for body in (b"{}", b'{"level":null}', b'{"level":"nope"}', b'{"level":1}'):
        yield ask("PUT", "/admin/loggers/some.logger", body)
    for body in (b"", b"{", b"null"):
        yield ask("PUT", "/admin/loggers/some.logger", body, ours=400)
    yield ask("PUT", "/admin/loggers", {"level": "DEBUG"})


def internal() -> Iterator[Case]:
    """See KIP-507: requests without the group's session key are refused."""
    by, way = "X-Connect-Authorization", "X-Connect-Request-Signature-Algorithm"
    for method, path in (("POST", "tasks"), ("PUT", "fence")):
        for signed in (
            {},
            {by: "aaaa"},
            {by: "aaaa", way: "HmacSHA256"},
            {by: "aaaa", way: "HmacBogus"},
            {by: "aaaa", way: "HmacMD5"},
        ):
            yield ask(method, f"/connectors/hb/{path}", b"[]", headers={**_JSON, **signed})


def deletion() -> Iterator[Case]:
    yield ask("DELETE", "/connectors/hb")
    yield ask("DELETE", "/connectors/hb")
    yield ask("GET", "/connectors/hb/status", until=lambda answer: answer.status == 404)
    yield ask("GET", "/connectors/hb")
    yield ask("DELETE", "/connectors/st")


def _task_ids(tasks: list[dict[str, Any]]) -> list[Any]:
    return [task["id"] for task in tasks]


def _errors(infos: dict[str, Any]) -> Any:
    values = [config["value"] for config in infos["configs"]]
    return [
        infos["name"],
        infos["error_count"],
        {value["name"]: value["errors"] for value in values if value["errors"]},
    ]


def _without_a_type(error: dict[str, Any]) -> Any:
    """Remove the config, which the message lists in no certain order."""
    return error["error_code"], error["message"].rpartition("}")[2]


def _unknown_class(error: dict[str, Any]) -> Any:
    """Remove the list of known classes and an exception's name, which is not always there."""
    known = "Failed to find any class that implements Connector and which name matches Nope, available"
    return error["error_code"], known in error["message"]
