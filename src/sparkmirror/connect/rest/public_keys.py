"""Keeps an issuer's public keys (JWKS, RFC 7517): from a URL or a file, fetched again as they change."""

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import jwt
import urllib3

from sparkmirror.config.properties import read_regular_file
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from sparkmirror.domain.tls import TlsSettings
from sparkmirror.security.tls_context import ClientContexts

logger = logging.getLogger(__name__)

KEPT_S: Final = 3600.0
"""As `sasl.oauthbearer.jwks.endpoint.refresh.ms` of a broker."""
RETRY_S: Final = 10.0
"""Between two fetches for keys that are not there: anybody may send a token with any `kid`."""
_TIMEOUT: Final = urllib3.Timeout(connect=3.0, read=5.0)
_BYTES_MAX: Final = 1024 * 1024

Keys = Mapping[str | None, jwt.PyJWK]


class PublicKeys:
    """For one event loop. Keys that can't be fetched again stay as they were, and the log has the reason."""

    def __init__(self, fetch: Callable[[], Keys], now: Callable[[], float] = time.monotonic) -> None:
        """`fetch` blocks, and raises SparkmirrorError."""
        self._fetch = fetch
        self._now = now
        self._keys: Keys = {}
        self._fetched_at = -KEPT_S
        self._tried_at = -RETRY_S
        self._fetching: asyncio.Task[None] | None = None

    async def key(self, key_id: str | None) -> jwt.PyJWK | None:
        """Without an id: the only key. Waits for a fetch only where the key is not known."""
        found = self._known(key_id)
        if found is not None and self._now() - self._fetched_at < KEPT_S:
            return found
        if self._fetching is None and self._now() - self._tried_at >= RETRY_S:
            self._tried_at = self._now()
            self._fetching = asyncio.create_task(self._refresh())
        if found is None and self._fetching is not None:
            await asyncio.shield(self._fetching)
            found = self._known(key_id)
        return found

    def _known(self, key_id: str | None) -> jwt.PyJWK | None:
        if key_id is None and len(self._keys) == 1:
            return next(iter(self._keys.values()))
        return self._keys.get(key_id)

    async def _refresh(self) -> None:
        try:
            self._keys = await asyncio.to_thread(self._fetch)
            self._fetched_at = self._now()
        except SparkmirrorError as error:
            logger.warning("the public keys for tokens can't be fetched: %s", error)
        finally:
            self._fetching = None


def fetcher(url: str, option: str, tls: TlsSettings | None) -> Callable[[], Keys]:
    """Fetches from `https:` or `file:`; the option is what errors name.

    Raises ConfigError for other URLs, and for stores that can't be read.
    """
    parts = urlsplit(url)
    if parts.scheme.lower() == "file" and parts.netloc in ("", "localhost"):
        return lambda: _keys(read_regular_file(Path(unquote(parts.path))), option)
    if parts.scheme.lower() != "https" or not parts.hostname:
        # Whoever can change an answer underway would choose the keys.
        raise ConfigError(option, None, "must begin with https:// or file:/")  # it may be kept elsewhere
    contexts = ClientContexts()
    if tls is not None:
        contexts.context_of(tls)

    def fetch() -> Keys:
        context = None if tls is None else contexts.context_of(tls)
        with urllib3.PoolManager(ssl_context=context, retries=False, timeout=_TIMEOUT) as pools:
            return _keys(_downloaded(pools, url), option)

    return fetch


def _downloaded(pools: urllib3.PoolManager, url: str) -> bytes:
    try:
        answer = pools.request("GET", url, preload_content=False, redirect=False)
        try:
            content = answer.read(_BYTES_MAX + 1, decode_content=True)
        finally:
            answer.close()
    except urllib3.exceptions.HTTPError as error:
        raise SparkmirrorError(f"{url} can't be reached: {error}") from error
    if answer.status != 200 or len(content) > _BYTES_MAX:
        raise SparkmirrorError(f"{url} answered with status {answer.status} and {len(content)} bytes")
    return content


def _keys(content: bytes, option: str) -> Keys:
    """Those that sign, by id."""
    try:
        keys = jwt.PyJWKSet.from_dict(json.loads(content)).keys
    except (ValueError, AttributeError, TypeError, jwt.PyJWTError) as error:
        raise ConfigError(option, None, f"has no usable set of keys (JWKS): {error}") from error
    return {key.key_id: key for key in keys if key.public_key_use in (None, "sig")}
