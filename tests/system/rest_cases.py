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
    if path.endswith("/restart"):
        return replace(
            case, reduce=_without_states if _ONLY_FAILED in case.request.path else _without_versions
        )
    return case


def _without_tasks(content: Any) -> Any:
    """Leave out which tasks are started."""
    is_info = isinstance(content, dict) and "tasks" in content
    return {**content, "tasks": type(content["tasks"]).__name__} if is_info else content


_ONLY_FAILED: Final = "onlyFailed=true"


def _without_states(content: Any) -> Any:
    """Leave out the tasks' states too, where nothing is restarted: Java may still stop and start them."""
    known = _without_versions(content)
    if known is content:
        return content
    return {**known, "tasks": [dict(each, state=None) for each in known["tasks"]]}


def _without_versions(content: Any) -> Any:
    """Leave out the versions, which Java doesn't know while a restart before this one lasts."""
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
    for rest in ("", "/config", "/status", "/offsets", "/tasks/0/status", "/", "/status/"):
        yield ask("GET", f"/connectors/hb{rest}")
    yield ask("GET", "/connectors/hb/tasks", reduce=_task_ids)
    yield ask("GET", "/connectors/hb/topics", until=lambda answer: b"heartbeats" in answer.body)
    for task in ("7", "abc"):
        yield ask("GET", f"/connectors/hb/tasks/{task}/status")
    for rest in ("/tasks/0", "/tasks-config", "/foo"):
        yield ask("GET", f"/connectors/hb{rest}")
    for rest in ("", "/config", "/tasks", "/status", "/topics", "/offsets", "/tasks/0/status"):
        yield ask("GET", f"/connectors/none{rest}")


def bad_creations() -> Iterator[Case]:
    """Java answers most of these with 500; here a client's error is a 400."""
    for body in (b"", b"null", b"{", b"[]", b"{}"):
        yield ask("POST", "/connectors", body, ours=400)
    for config in ("null", "[]", '{"a":{"b":1}}', '{"a":[1]}'):
        yield ask("POST", "/connectors", b'{"name":"n1","config":' + config.encode() + b"}", ours=400)
    for more in (b',"bogus":1}', b',"initial_state":"bogus"}', b",}"):
        yield ask("POST", "/connectors", b'{"name":"n1","config":{}' + more, ours=400)
    # For the following ones Java has a message too.
    for name in (b'"n1"', b"null", b'""', b"1"):
        yield ask("POST", "/connectors", b'{"config":{},"name":' + name + b"}")
    yield ask("POST", "/connectors", {"name": "n1", "config": {"name": "n2"}})
    yield ask("POST", "/connectors", {"name": "n1", "config": {}, "initial_state": None})
    yield ask(
        "POST", "/connectors", {"name": "n1", "config": {"connector.class": "Nope"}}, reduce=_unknown_class
    )


def configs() -> Iterator[Case]:
    for body in (b"", b"[]", b'{"a":{}}'):
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
    for said in ("text/plain", "application/x-www-form-urlencoded", "application/json;charset=utf-8"):
        yield ask("POST", "/connectors", body, headers={"Content-Type": said})
    for accepted in ("application/json", "*/*", "text/html, */*;q=0.1"):
        yield ask("GET", "/connectors/hb/status", headers={"Accept": accepted})
        yield ask("GET", "/connectors/none/status", headers={"Accept": accepted})


def verbs() -> Iterator[Case]:
    for method, path in (
        ("DELETE", "/connectors"),
        ("PATCH", "/connectors/hb"),
        ("GET", "/connectors/hb/restart"),
        ("POST", "/connectors/hb/pause"),
        ("POST", "/connectors/hb/config"),
        ("HEAD", "/connectors/none"),
    ):
        yield ask(method, path)


def paths() -> Iterator[Case]:
    for path in (
        "/foo",
        "/connector-plugins/",
        "/connectors/a%20b/status",
        "/connectors/a%2D%3Eb/status",
        "/connectors/%C3%A9/status",
        "/connectors/HB/status",
        "/connectors/%68b/status",
        "/connectors/hb/status?forward=maybe",
    ):
        yield ask("GET", path)


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
    for query in ("includeTasks=true&onlyFailed=true", "onlyFailed=true"):
        yield ask("POST", f"/connectors/hb/restart?{query}")
    for query in ("", "?includeTasks=true&onlyFailed=false"):
        yield ask("POST", f"/connectors/hb/restart{query}")
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
    for body in (b"", b"[]", b'{"bogus":1}', b'{"offsets":{"a":1}}'):
        yield ask("PATCH", "/connectors/hb/offsets", body, ours=400)
    for item in ("null", "{}", '{"partition":"x","offset":{}}'):
        yield ask("PATCH", "/connectors/hb/offsets", f'{{"offsets":[{item}]}}'.encode(), ours=400)
    yield ask("PATCH", "/connectors/hb/offsets", _OFFSETS)
    yield ask("GET", "/connectors/hb/offsets", java_until=with_offsets)
    yield ask("DELETE", "/connectors/hb/offsets")
    yield ask("GET", "/connectors/hb/offsets", java_until=without_offsets)
    yield ask("POST", "/connectors/hb/restart")
    yield ask("POST", "/connectors/hb/restart?includeTasks=true")
    yield ask("PUT", "/connectors/hb/topics/reset")


def names() -> Iterator[Case]:
    for name in ("  trimmed ", "a b+c", "é€😀", "a->b.mirror", "hash#?"):
        asked = {"name": name, "config": heartbeat(), "initial_state": "STOPPED"}
        yield ask("POST", "/connectors", asked)
    for path in ("trimmed", "a%20b+c", "%C3%A9%E2%82%AC%F0%9F%98%80", "a%2D%3Eb.mirror", "hash%23%3F"):
        yield ask("GET", f"/connectors/{path}/config")
        yield ask("DELETE", f"/connectors/{path}")
    yield ask("GET", "/connectors")


def plugins() -> Iterator[Case]:
    for query in ("", "?connectorsOnly=true"):
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
    for body in (b"", b"[]", b"{}"):
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
    for scope in ("worker", "bogus"):
        yield ask("PUT", f"/admin/loggers/of-{scope}?scope={scope}", {"level": "ERROR"})
    for scope in ("cluster",):
        yield ask("PUT", f"/admin/loggers/some.other?scope={scope}", {"level": "ERROR"})
    for body in (b"{}", b'{"level":null}', b'{"level":"nope"}', b'{"level":1}'):
        yield ask("PUT", "/admin/loggers/some.logger", body)
    for body in (b"", b"[]"):
        yield ask("PUT", "/admin/loggers/some.logger", body, ours=400)
    yield ask("PUT", "/admin/loggers", {"level": "DEBUG"})


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
