"""Checks a mirror for minutes with tokens that live for seconds, while their issuer and the connections fail.

No part of `make test`. `make soak-tokens` runs an hour with tokens of a minute; `MINUTES=4 TOKEN_S=8 SEED=1`
behind it, or the file by pytest, makes it four minutes; `make test-all` takes two.
The broker checks signatures by the issuer's public keys, and ends each session with its token. What
happens is drawn from the seed, each once a round:

- `nothing`: sessions are renewed and tokens fetched;
- `down`, `refuses`: the issuer does not answer, or answers 401;
- `revoked`: it issues tokens that the broker refuses;
- `secret`: it wants another client secret, which appears in the file a little later;
- `keys`: it signs with another key, and no longer serves the one before;
- `crash`: the copying processes are killed.
"""

import os
import random
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import psutil
import pytest

from sparkmirror.clusters.ports import HOST
from tests.support.broker_data import create_topic, topics
from tests.support.copy_watch import CopyWatch
from tests.support.mirror import Mirror, running_mirror
from tests.support.secured_broker import USER, SecuredBroker, oauth, secured_broker
from tests.support.token_issuer import CLIENT_ID, KEYS_PATH, TOKEN_PATH, TokenIssuer, broker_settings, serving
from tests.support.traffic import flowing
from tests.support.waiting import await_value

TOKEN_S: Final = float(os.environ.get("TOKEN_S", "8"))
MINUTES: Final = float(os.environ.get("MINUTES", "2"))
SEED: Final = int(os.environ.get("SEED", "1"))
RATE: Final = int(os.environ.get("RATE", "50"))
HAPPENINGS: Final = ("nothing", "down", "refuses", "revoked", "secret", "keys", "crash")
TOPIC: Final = "orders"
COPY: Final = f"near.{TOPIC}"
PARTITIONS: Final = 2
CAUGHT_UP_WITHIN_S: Final = 180.0
"""A refused login is tried again after up to 30 s; a busy machine may need longer."""
PROVIDERS: Final = {
    "config.providers": "file",
    "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
}


def properties(broker: SecuredBroker, url: str, file: Path) -> dict[str, str]:
    options = f'clientId="{CLIENT_ID}" clientSecret="${{file:{file}:secret}}"'
    login = oauth(options, token_endpoint_url=f"{url}{TOKEN_PATH}")
    made = {"clusters": "near, far", "near->far.enabled": "true", "near->far.topics": TOPIC, **PROVIDERS}
    for alias in ("near", "far"):
        made[f"{alias}.bootstrap.servers"] = f"{HOST}:{broker.ports['LOGIN']}"
        made |= {f"{alias}.{key}": value for key, value in login.items()}
    return made


def happenings(chance: random.Random) -> Iterator[tuple[str, float]]:
    """Yield what happens next, and for how many seconds."""
    while True:
        for happening in chance.sample(HAPPENINGS, len(HAPPENINGS)):
            yield happening, chance.uniform(0.5, 2.0) * TOKEN_S


def inject(happening: str, issuer: TokenIssuer, mirror: Mirror, lasts_s: float) -> None:
    match happening:
        case "crash":
            for worker in mirror.workers():
                with suppress(psutil.NoSuchProcess):
                    worker.send_signal(signal.SIGKILL)
        case "secret":
            issuer.rotate_secret()
        case "keys":
            issuer.rotate_key()
        case "down" | "refuses" | "revoked":
            issuer.fault = happening
    time.sleep(lasts_s)  # how long it lasts
    issuer.fault = ""
    issuer.tell()


def go_through(broker: SecuredBroker, issuer: TokenIssuer, mirror: Mirror, watch: CopyWatch) -> str:
    """Let it all happen, one thing after the other; return the longest delays, by what happened."""
    longest: dict[str, float] = defaultdict(float)
    ends_at = time.monotonic() + MINUTES * 60
    for happening, lasts_s in happenings(random.Random(SEED)):
        if time.monotonic() + lasts_s > ends_at:
            break
        watch.longest_s = 0.0
        with flowing(broker.cluster, TOPIC, rate=RATE, partitions=PARTITIONS):
            inject(happening, issuer, mirror, lasts_s)
        await_value(
            lambda: watch.is_complete(broker.cluster),
            CAUGHT_UP_WITHIN_S,
            lambda: f"{watch.difference()}\n{mirror.log_text()}",
        )
        longest[happening] = max(longest[happening], watch.longest_s)
        say(
            f"{happening:8} {lasts_s:5.1f} s, longest delay {watch.longest_s:6.2f} s; "
            f"{issuer.issued} tokens issued, {issuer.refused} requests refused"
        )
    return ", ".join(f"{happening} {delay_s:.2f} s" for happening, delay_s in longest.items())


def test_records_are_copied_once_while_tokens_come_and_go(tmp_path: Path) -> None:
    issuer, watch = TokenIssuer(tmp_path / "secrets", TOKEN_S, USER), CopyWatch(TOPIC, COPY)
    issuer.tell()
    with ExitStack() as held:
        url = held.enter_context(serving(issuer))
        with pytest.MonkeyPatch.context() as environment:
            allowed = f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}{KEYS_PATH}"
            environment.setenv("JAVA_TOOL_OPTIONS", allowed)
            broker = held.enter_context(secured_broker(tmp_path / "broker", more=broker_settings(url)))
        started = running_mirror(tmp_path / "mirror", properties(broker, url, issuer.file))
        mirror = held.enter_context(started)
        create_topic(broker.cluster.bootstrap_servers, TOPIC, partitions=PARTITIONS)
        await_value(lambda: COPY in topics(broker.cluster), CAUGHT_UP_WITHIN_S, mirror.log_text)
        with watch.reading(broker.cluster, PARTITIONS):
            longest = go_through(broker, issuer, mirror, watch)
        mirror.stop()
        assert "Traceback" not in mirror.log_text()
    found = watch.difference()
    say(f"{found}; longest delays: {longest}")
    assert (found.lost, found.twice, found.is_in_order) == (0, 0, True)


def say(text: str) -> None:
    print(time.strftime("%H:%M:%S"), text, flush=True)  # noqa: T201 - what it is run for
