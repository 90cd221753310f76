"""Tokens of an OpenID provider: which are taken, and with which role."""

import asyncio
import base64
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from sparkmirror.connect.rest.authentication import InvalidLoginError, Role, User
from sparkmirror.connect.rest.bearer_tokens import (
    KEPT_S,
    RETRY_S,
    BearerTokens,
    Keys,
    PublicKeys,
    TokenRules,
    fetcher,
)
from sparkmirror.domain.errors import ConfigError, SparkmirrorError
from tests.support.tokens import AUDIENCE, EC_KEY, ISSUER, RSA_KEY, jwks, jwks_file, token

RULES: Final = TokenRules(
    issuer=ISSUER,
    audiences=(AUDIENCE, "other"),
    skew_s=30,
    user_claim="sub",
    roles_claim="roles",
    admin_roles=frozenset({"admin", "ops"}),
    viewer_roles=frozenset({"viewer"}),
)


def keys(**named: Any) -> Keys:
    return {key.key_id: key for key in jwt.PyJWKSet.from_dict(jwks(**named)).keys}


def checked(text: str, rules: TokenRules = RULES, **named: Any) -> User:
    found = keys(**(named or {"one": RSA_KEY, "two": EC_KEY}))
    scheme = BearerTokens(rules, PublicKeys(lambda: found)).scheme()

    async def check() -> User:
        return await scheme.check(text)

    return asyncio.run(check())


@pytest.mark.parametrize(
    ("roles", "role"),
    [
        (("admin",), Role.ADMIN),
        (("viewer", "ops"), Role.ADMIN),
        (("viewer", "x"), Role.VIEWER),
        (("x",), None),
        ((), None),
        (("*",), None),
    ],
)
def test_the_claim_of_roles_tells_the_role(roles: tuple[str, ...], role: Role | None) -> None:
    assert checked(token(*roles)) == User("mia", role)


def test_roles_are_found_in_texts_and_in_objects() -> None:
    nested = replace(RULES, roles_claim="realm_access.roles", user_claim="preferred_username")
    claims: dict[str, Any] = {"realm_access": {"roles": ["viewer"]}, "preferred_username": "Mia"}
    assert checked(token(**claims), nested) == User("Mia", Role.VIEWER)
    url = replace(RULES, roles_claim="https://example.com/roles")
    named: dict[str, Any] = {"https://example.com/roles": "a admin"}
    assert checked(token(**named), url).role is Role.ADMIN
    assert checked(token(realm_access=["x"]), replace(nested, user_claim="sub")).role is None
    assert checked(token(), replace(RULES, viewer_roles=frozenset({"*"}))).role is Role.VIEWER


def test_keys_of_other_kinds_and_the_only_key_without_an_id_are_used() -> None:
    assert checked(token("admin", key=EC_KEY, headers={"kid": "two"})).role is Role.ADMIN
    assert checked(token("admin", headers={}), one=RSA_KEY).role is Role.ADMIN
    assert checked(token("admin", aud=["x", "other"])).role is Role.ADMIN
    assert checked(token("admin", exp=time.time() - 20)).role is Role.ADMIN


def forged_with(algorithm: str) -> str:
    header, claims, _ = token("admin").split(".")
    said = json.loads(base64.urlsafe_b64decode(header + "=="))
    changed = base64.urlsafe_b64encode(json.dumps(said | {"alg": algorithm}).encode()).decode().rstrip("=")
    if algorithm == "none":
        return f"{changed}.{claims}."
    public = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return f"{changed}.{claims}.{base64.urlsafe_b64encode(public[:32]).decode().rstrip('=')}"


@pytest.mark.parametrize(
    "made",
    [
        lambda: token("admin", exp=time.time() - 40),
        lambda: token("admin", exp=None),
        lambda: token("admin", nbf=time.time() + 60),
        lambda: token("admin", iss="https://other.example"),
        lambda: token("admin", iss=None),
        lambda: token("admin", aud="someone else"),
        lambda: token("admin", aud=None),
        lambda: token("admin", sub=None),
        lambda: token("admin", key=rsa.generate_private_key(65537, 2048)),
        lambda: token("admin", headers={"kid": "unknown"}),
        lambda: token("admin", headers={"kid": "two"}),
        lambda: forged_with("none"),
        lambda: forged_with("HS256"),
        lambda: token("admin")[:-6],
        lambda: "no token",
        lambda: "",
        lambda: "a.b.c",
        lambda: "é.ü.ß",
    ],
)
def test_tokens_that_are_not_the_issuers_for_this_api_now_are_refused(made: Callable[[], str]) -> None:
    text = made()
    with pytest.raises(InvalidLoginError) as raised:
        checked(text)
    assert all(part not in str(raised.value) for part in text.split(".") if len(part) > 8)


def test_new_keys_are_fetched_when_a_token_names_one_but_not_for_every_token() -> None:
    now, fetched = [1000.0], [keys(one=RSA_KEY), keys(one=RSA_KEY, two=EC_KEY)]
    published = PublicKeys(lambda: fetched.pop(0), lambda: now[0])

    async def look() -> None:
        assert await published.key("one") is not None
        assert await published.key("two") is None
        now[0] += RETRY_S
        assert await published.key("two") is not None
        assert await published.key("three") is None

    asyncio.run(look())
    assert fetched == []


def test_keys_that_can_not_be_fetched_again_stay() -> None:
    now, answers = [1000.0], iter([keys(one=RSA_KEY)])

    def fetch() -> Keys:
        for answer in answers:
            return answer
        raise SparkmirrorError("gone")

    published = PublicKeys(fetch, lambda: now[0])

    async def look() -> None:
        assert await published.key("one") is not None
        now[0] += KEPT_S
        assert await published.key("one") is not None
        assert await published.key("two") is None

    asyncio.run(look())


def test_keys_are_read_from_a_file(tmp_path: Path) -> None:
    assert list(fetcher(jwks_file(tmp_path), "the.option", None)()) == ["one"]
    (tmp_path / "jwks.json").write_text("{}")
    with pytest.raises(ConfigError, match="has no usable set of keys"):
        fetcher((tmp_path / "jwks.json").as_uri(), "the.option", None)()


@pytest.mark.parametrize("url", ["http://issuer.example/keys", "keys.json", "https:///keys", "file://host/x"])
def test_keys_come_from_nowhere_where_others_could_choose_them(url: str) -> None:
    with pytest.raises(ConfigError, match="must begin with https:// or file:/"):
        fetcher(url, "the.option", None)
