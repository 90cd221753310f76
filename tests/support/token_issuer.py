"""Issues signed tokens to one client by its secret, as an OpenID provider does, and fails as one does."""

import base64
import http.server
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import rsa

from sparkmirror.clusters.ports import HOST
from tests.support.tokens import AUDIENCE, ISSUER, jwks, token

CLIENT_ID: Final = "mirror"
TOKEN_PATH: Final = "/token"
KEYS_PATH: Final = "/jwks"


def _new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


@dataclass(slots=True)
class TokenIssuer:
    """Tokens live for `lives_s`. `file` holds the secret that its client reads.

    `fault` is one of: `down`, no answer; `refuses`, answers 401; `revoked`, tokens that the broker refuses.
    """

    file: Path
    lives_s: float
    subject: str
    fault: str = ""
    issued: int = 0
    refused: int = 0
    _secret: str = "first"
    _keys: list[rsa.RSAPrivateKey] = field(default_factory=lambda: [_new_key()])

    def answer(self, authorization: str | None) -> tuple[int, bytes]:
        login = base64.b64encode(f"{CLIENT_ID}:{self._secret}".encode()).decode()
        if self.fault == "refuses" or authorization != f"Basic {login}":
            self.refused += 1
            return 401, b"{}"
        self.issued += 1
        now = time.time()
        audience = "elsewhere" if self.fault == "revoked" else AUDIENCE
        made = token(
            key=self._keys[-1],
            headers={"kid": self._key_id},
            aud=audience,
            sub=self.subject,
            scope="any",
            iat=now,
            exp=now + self.lives_s,
        )
        return 200, json.dumps({"access_token": made, "expires_in": self.lives_s}).encode()

    def public_keys(self) -> bytes:
        """The key of today, and no other."""
        return json.dumps(jwks(**{self._key_id: self._keys[-1]})).encode()

    def rotate_secret(self) -> None:
        """Rotate the client's secret; the client learns of it by `tell`."""
        self._secret = f"secret-{time.monotonic_ns()}"

    def rotate_key(self) -> None:
        self._keys.append(_new_key())

    def tell(self) -> None:
        """Write the secret for its client."""
        self.file.write_text(f"secret={self._secret}\n")

    @property
    def _key_id(self) -> str:
        return f"key-{len(self._keys)}"


@contextmanager
def serving(issuer: TokenIssuer) -> Iterator[str]:
    """Serve it under the URL until the end of the block."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(lambda: issuer.answer(self.headers["Authorization"]))

        def do_GET(self) -> None:
            self._answer(lambda: (200, issuer.public_keys()))

        def _answer(self, made: Callable[[], tuple[int, bytes]]) -> None:
            if issuer.fault == "down":
                self.close_connection = True
                return
            status, body = made()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer((HOST, 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://{HOST}:{server.server_port}"
        finally:
            server.shutdown()


def broker_settings(url: str) -> dict[str, str]:
    """Return settings of a broker whose port LOGIN takes this issuer's tokens; its JVM must allow the URL."""
    handler = "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    return {
        "listener.name.login.oauthbearer.sasl.server.callback.handler.class": handler,
        "sasl.oauthbearer.jwks.endpoint.url": f"{url}{KEYS_PATH}",
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.expected.issuer": ISSUER,
    }
