"""Stands in front of a broker's plaintext port as MSK does, and lets those in whose AWS signature is right.

It speaks SaslHandshake and SaslAuthenticate itself and passes everything else on. The signature is computed
from what was received and from the steps in AWS's documentation of Signature Version 4.
"""

import datetime as dt
import hashlib
import hmac
import json
import socket
import socketserver
import struct
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BufferedIOBase
from typing import Final
from urllib.parse import quote

from kafka.protocol.sasl import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

from sparkmirror.clusters.ports import HOST

MSK_HOST: Final = "b-1.mirror.abc.c2.kafka.eu-central-1.amazonaws.com"
REGION: Final = "eu-central-1"
ACCESS_KEY: Final = "AKIDEXAMPLE"
SECRET_KEY: Final = "a/secret+key"
MECHANISM: Final = "AWS_MSK_IAM"

_SIZE: Final = struct.Struct(">i")
_HEAD: Final = struct.Struct(">hhi")
_API_VERSIONS: Final = 18
_AHEAD_S: Final = 300.0
"""The time that a client's clock may be ahead, as in AWS."""
_REFUSED: Final = 58
_UNSUPPORTED: Final = 33


@dataclass(slots=True)
class Verifier:
    """Accepts the signatures of these secrets by their access key, by a clock that is `ahead_s` ahead."""

    secrets: Mapping[str, str]
    ahead_s: float = 0.0
    accepted: list[str] = field(default_factory=list)
    """The access key of each login."""

    def refusal(self, payload: bytes) -> str | None:
        """Why it is refused; None where it is accepted."""
        sent: dict[str, str] = json.loads(payload)
        access_key, *scope = sent["x-amz-credential"].split("/")
        secret = self.secrets.get(access_key)
        if sent["host"] != MSK_HOST or scope[1:] != [REGION, "kafka-cluster", "aws4_request"]:
            return "another host or region"
        if sent["action"] != "kafka-cluster:Connect" or secret is None:
            return "Access denied"
        age_s = time.time() + self.ahead_s - _signed_at(sent["x-amz-date"])
        if not -_AHEAD_S <= age_s <= float(sent["x-amz-expires"]):
            return "Signature expired or not yet current"
        if not hmac.compare_digest(_signature(sent, scope, secret), sent["x-amz-signature"]):
            return "Invalid signature"
        self.accepted.append(access_key)
        return None


def _signed_at(date: str) -> float:
    return dt.datetime.strptime(f"{date[:-1]}+0000", "%Y%m%dT%H%M%S%z").timestamp()


def _signature(sent: Mapping[str, str], scope: list[str], secret: str) -> str:
    names = {
        "Action": "action",
        "X-Amz-Algorithm": "x-amz-algorithm",
        "X-Amz-Credential": "x-amz-credential",
        "X-Amz-Date": "x-amz-date",
        "X-Amz-Expires": "x-amz-expires",
        "X-Amz-Security-Token": "x-amz-security-token",
        "X-Amz-SignedHeaders": "x-amz-signedheaders",
    }
    query = "&".join(
        f"{name}={quote(sent[key], safe='-_.~')}" for name, key in sorted(names.items()) if key in sent
    )
    empty = hashlib.sha256(b"").hexdigest()
    request = f"GET\n/\n{query}\nhost:{sent['host']}\n\nhost\n{empty}"
    digest = hashlib.sha256(request.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{sent['x-amz-date']}\n{'/'.join(scope)}\n{digest}"
    key = f"AWS4{secret}".encode()
    for part in scope:
        key = hmac.digest(key, part.encode(), "sha256")
    return hmac.digest(key, text.encode(), "sha256").hex()


@contextmanager
def iam_front(port: int, broker: int, verifier: Verifier, session_s: float) -> Iterator[None]:
    """Listens on this port before the broker's; sessions end after `session_s`."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            _Session(self.rfile, self.connection, verifier, session_s).serve(broker)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server((HOST, port), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        try:
            yield
        finally:
            server.shutdown()


class _Session:
    def __init__(
        self, rfile: BufferedIOBase, client: socket.socket, verifier: Verifier, session_s: float
    ) -> None:
        self._rfile, self._client = rfile, client
        self._verifier, self._session_s = verifier, session_s
        self._ends_at = 0.0
        self._writing = threading.Lock()

    def serve(self, broker: int) -> None:
        with socket.create_connection((HOST, broker)) as behind, suppress(OSError):
            returning = threading.Thread(target=self._pass_back, args=(behind,), daemon=True)
            returning.start()
            while (frame := _frame(self._rfile)) is not None and self._take(frame, behind):
                pass
            behind.shutdown(socket.SHUT_RDWR)
            returning.join()

    def _take(self, frame: bytes, behind: socket.socket) -> bool:
        """Whether the connection stays open."""
        api_key, version, correlation_id = _HEAD.unpack_from(frame)
        if api_key == SaslHandshakeRequest.API_KEY:
            asked = SaslHandshakeRequest.decode(frame, version=version, header=True).mechanism
            error = 0 if asked == MECHANISM else _UNSUPPORTED
            response = SaslHandshakeResponse(version=version, error_code=error, mechanisms=[MECHANISM])
            self._answer(response, correlation_id)
            return error == 0
        if api_key == SaslAuthenticateRequest.API_KEY:
            request = SaslAuthenticateRequest.decode(frame, version=version, header=True)
            return self._log_in(bytes(request.auth_bytes), version, correlation_id)
        if api_key != _API_VERSIONS and time.monotonic() > self._ends_at:
            return False
        behind.sendall(_SIZE.pack(len(frame)) + frame)
        return True

    def _log_in(self, payload: bytes, version: int, correlation_id: int) -> bool:
        refusal = self._verifier.refusal(payload)
        self._ends_at = time.monotonic() + self._session_s
        response = SaslAuthenticateResponse(
            version=version,
            error_code=_REFUSED if refusal else 0,
            error_message=refusal,
            auth_bytes=b"" if refusal else b'{"version":"2020_10_22","request-id":"1"}',
            session_lifetime_ms=int(self._session_s * 1000),
        )
        self._answer(response, correlation_id)
        return refusal is None

    def _answer(
        self, response: SaslHandshakeResponse | SaslAuthenticateResponse, correlation_id: int
    ) -> None:
        response.with_header(correlation_id=correlation_id)
        with self._writing:
            self._client.sendall(response.encode(header=True, framed=True))

    def _pass_back(self, behind: socket.socket) -> None:
        with suppress(OSError), behind.makefile("rb") as answers:
            while (frame := _frame(answers)) is not None:
                with self._writing:
                    self._client.sendall(_SIZE.pack(len(frame)) + frame)
            self._client.shutdown(socket.SHUT_RDWR)


def _frame(file: BufferedIOBase) -> bytes | None:
    size = file.read(_SIZE.size)
    if len(size) < _SIZE.size:
        return None
    frame = file.read(_SIZE.unpack(size)[0])
    return frame if len(frame) == _SIZE.unpack(size)[0] else None
