"""A part of Kubernetes' API: keeps the pods that Spark asks for, and starts a container for each.

Pods run at once, at this machine's loopback address, with their volumes empty or from ConfigMaps.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

from tests.support.containers import Container, Engine

_FIELDS: Final = {"status.podIP": "127.0.0.1"}

Object = dict[str, Any]


class PodServer:
    """`containers` are those of the pods, by name; they end with the server."""

    def __init__(self, engine: Engine, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self._running = ExitStack()
        self._pods: dict[str, Object] = {}
        self._maps: dict[str, Object] = {}
        self._lock = threading.Lock()
        self.containers: dict[str, Container] = {}

    def create(self, kind: str, thing: Object) -> Object:
        """Keep an object, and start a pod's container."""
        thing["metadata"] |= {"uid": str(uuid4()), "resourceVersion": "1"}
        name = thing["metadata"].setdefault("name", f"pod-{uuid4().hex[:6]}")
        with self._lock:
            if kind == "configmaps":
                self._maps[name] = thing
            elif kind == "pods":
                thing["status"] = {"phase": "Running", "podIP": "127.0.0.1", "containerStatuses": []}
                self._pods[name] = thing
                self.containers[name] = self._start(name, thing["spec"])
        return thing

    def pods(self) -> list[Object]:
        with self._lock:
            return [*self._pods.values()]

    def delete_pods(self) -> None:
        with self._lock:
            self._pods.clear()

    def close(self) -> None:
        self._running.close()

    def _start(self, name: str, spec: Object) -> Container:
        (container,) = spec["containers"]
        environment = {each["name"]: _value(each, name) for each in container["env"]}
        kinds = {volume["name"]: volume for volume in spec["volumes"]}
        options = [f"--env={key}={value}" for key, value in environment.items()]
        options += [self._mount(kinds[each["name"]], each["mountPath"]) for each in container["volumeMounts"]]
        started = self._engine.started(self._folder, *container["args"], options=options)
        return self._running.enter_context(started)

    def _mount(self, volume: Mapping[str, Any], at: str) -> str:
        if "emptyDir" in volume:
            return f"--tmpfs={at}:rw,mode=1777"
        folder = self._folder / uuid4().hex
        folder.mkdir()
        for key, text in self._maps[volume["configMap"]["name"]]["data"].items():
            (folder / key).write_text(text)
        return f"--volume={folder}:{at}:ro"


def _value(given: Mapping[str, Any], pod: str) -> str:
    if "valueFrom" not in given:
        return str(given.get("value", ""))
    field = given["valueFrom"]["fieldRef"]["fieldPath"]
    return {**_FIELDS, "metadata.name": pod}[field]


@contextmanager
def pod_server(engine: Engine, folder: Path) -> Iterator[tuple[str, PodServer]]:
    """Serve until the end of the block; yields the URL."""
    pods = PodServer(engine, folder)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(pods))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", pods
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
        pods.close()


def _handler(pods: PodServer) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            address = urlsplit(self.path)
            if parse_qs(address.query).get("watch") or "Upgrade" in self.headers:
                self._answer(503, _status("no watching here: Spark also asks every 30 s"))
            elif address.path.endswith("/pods"):
                listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}}
                self._answer(200, {**listed, "items": pods.pods()})
            else:
                self._answer(404, _status("not found"))

        def do_POST(self) -> None:
            kind = urlsplit(self.path).path.rpartition("/")[2]
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._answer(201, pods.create(kind, body))

        def do_DELETE(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            if "/pods" in self.path:
                pods.delete_pods()
            self._answer(200, {"apiVersion": "v1", "kind": "Status", "status": "Success"})

        def do_PATCH(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length", "0")))
            name = urlsplit(self.path).path.rpartition("/")[2]
            found = [each for each in pods.pods() if each["metadata"]["name"] == name]
            self._answer(200, found[0]) if found else self._answer(404, _status("not found"))

        def _answer(self, code: int, content: Object) -> None:
            body = json.dumps(content).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    return Handler


def _status(message: str) -> Object:
    return {"apiVersion": "v1", "kind": "Status", "status": "Failure", "message": message}
