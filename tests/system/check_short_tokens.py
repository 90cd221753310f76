"""Checks a mirror for minutes with tokens that live for seconds, while their issuer and the connections fail.

No part of `make test`. `TOKEN_S=60 MINUTES=60 SEED=1 .venv/bin/python -m pytest -s
tests/system/check_short_tokens.py` runs an hour with tokens of a minute; by default it takes four minutes.
The broker ends each session with its token. Faults are drawn from the seed, one after the other:

- `down`, `refuses`: the issuer does not answer, or answers 401;
- `revoked`: it issues tokens that the broker refuses;
- `rotated`: it wants another client secret, which appears in the file a little later;
- `crash`: the copying processes are killed.
"""

import base64
import http.server
import json
import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from sparkmirror.clusters.ports import HOST
from sparkmirror.domain.sasl import TokenSource
from sparkmirror.security.tokens import Tokens
from tests.support.broker_data import create_topic, keyed_of
from tests.support.mirror import Mirror, running_mirror
from tests.support.secured_broker import SecuredBroker, oauth, secured_broker
from tests.support.traffic import flowing
from tests.support.waiting import await_value

TOKEN_S: Final = float(os.environ.get("TOKEN_S", "8"))
MINUTES: Final = float(os.environ.get("MINUTES", "4"))
SEED: Final = int(os.environ.get("SEED", "1"))
FAULTS: Final = ("down", "refuses", "revoked", "rotated", "crash")
TOPIC: Final = "orders"
RATE: Final = 50
PARTITIONS: Final = 2
CAUGHT_UP_WITHIN_S: Final = 180.0
"""A refused login is tried again after up to 30 s; a busy machine may need longer."""
PROVIDERS: Final = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


@dataclass(slots=True)
class Issuer:
    """Issues tokens that live for TOKEN_S. `file` holds the secret that its client reads."""

    file: Path
    secret: str = "first"
    fault: str = ""
    issued: int = 0
    refused: int = 0
    _secrets: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))

    def answer(self, authorization: str | None) -> tuple[int, bytes]:
        login = base64.b64encode(f"mirror:{self.secret}".encode()).decode()
        if self.fault == "refuses" or authorization != f"Basic {login}":
            self.refused += 1
            return 401, b"{}"
        self.issued += 1
        lives_s = -60.0 if self.fault == "revoked" else TOKEN_S
        token = Tokens().token(TokenSource(subject="alice", lifetime_s=lives_s))
        return 200, json.dumps({"access_token": token, "expires_in": TOKEN_S}).encode()

    def rotate(self) -> None:
        self.secret = f"secret-{next(self._secrets)}"

    def tell(self) -> None:
        """Its client."""
        self.file.write_text(f"secret={self.secret}\n")


@contextmanager
def serving(issuer: Issuer) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            if issuer.fault == "down":
                self.close_connection = True
                return
            status, body = issuer.answer(self.headers["Authorization"])
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}/token"
        finally:
            server.shutdown()


def properties(broker: SecuredBroker, url: str, file: Path) -> dict[str, str]:
    login = oauth(f'clientId="mirror" clientSecret="${{file:{file}:secret}}"', token_endpoint_url=url)
    made = {"clusters": "near, far", "near->far.enabled": "true", "near->far.topics": TOPIC, **PROVIDERS}
    for alias in ("near", "far"):
        made[f"{alias}.bootstrap.servers"] = f"{HOST}:{broker.ports['LOGIN']}"
        made |= {f"{alias}.{key}": value for key, value in login.items()}
    return made


def caught_up(broker: SecuredBroker) -> bool:
    return all(
        keyed_of(broker.cluster, f"near.{TOPIC}", number) == keyed_of(broker.cluster, TOPIC, number)
        for number in range(PARTITIONS)
    )


def inject(fault: str, issuer: Issuer, mirror: Mirror, lasts_s: float) -> None:
    if fault == "crash":
        for worker in mirror.workers():
            with suppress(psutil.NoSuchProcess):
                worker.send_signal(signal.SIGKILL)
        return
    if fault == "rotated":
        issuer.rotate()
    else:
        issuer.fault = fault
    time.sleep(lasts_s)  # how long the fault lasts
    issuer.fault = ""
    issuer.tell()


def test_records_are_copied_once_while_tokens_come_and_go(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    issuer = Issuer(tmp_path / "secrets")
    issuer.tell()
    with secured_broker(tmp_path / "broker") as broker, serving(issuer) as url:
        create_topic(broker.cluster.bootstrap_servers, TOPIC, partitions=PARTITIONS)
        with running_mirror(tmp_path / "mirror", properties(broker, url, issuer.file)) as mirror:
            mirror.await_log("copy job 1")
            ends_at = time.monotonic() + MINUTES * 60
            while time.monotonic() < ends_at:
                fault, lasts_s = chance.choice(FAULTS), chance.uniform(0.5, 2.0) * TOKEN_S
                with flowing(broker.cluster, TOPIC, rate=RATE, partitions=PARTITIONS):
                    inject(fault, issuer, mirror, lasts_s)
                began = time.monotonic()
                await_value(lambda: caught_up(broker), CAUGHT_UP_WITHIN_S, mirror.log_text)
                print(  # noqa: T201 - what it is run for
                    f"{fault:8} {lasts_s:5.1f} s, equal after {time.monotonic() - began:5.1f} s; "
                    f"{issuer.issued} tokens issued, {issuer.refused} requests refused",
                    flush=True,
                )
            for number in range(PARTITIONS):
                print(len(keyed_of(broker.cluster, f"near.{TOPIC}", number)), "records")  # noqa: T201 - likewise
            mirror.stop()
            assert "Traceback" not in mirror.log_text()
