"""Makes the mechanism of one login: kafka-python's, with what Java's clients do besides."""

import hashlib
from functools import lru_cache
from typing import Any, Final

from kafka.net.sasl.abc import SaslMechanism
from kafka.net.sasl.msk import AwsMskIamClient
from kafka.net.sasl.oauth import AbstractTokenProvider, SaslMechanismOAuth
from kafka.net.sasl.plain import SaslMechanismPlain
from kafka.net.sasl.scram import SaslMechanismScram, ScramClient

from sparkmirror.domain.errors import AuthenticationError
from sparkmirror.domain.extras import how_to_install
from sparkmirror.domain.sasl import AWS_MSK_IAM, GSSAPI, OAUTHBEARER, PLAIN, SaslSettings, TokenSource
from sparkmirror.kafka.net.kerberos import Gssapi
from sparkmirror.security.tokens import Tokens

_ITERATIONS_MIN: Final = 4096
"""The minimum of iterations, as in Java's clients: fewer would make the password easy to guess."""

_TOKENS: Final = Tokens()
_SALTED_MAX: Final = 64
"""Users whose salted passwords are kept: each costs 4 ms of CPU or more, and requests wait for a renewal."""


def mechanism_of(settings: SaslSettings, host: str) -> SaslMechanism:
    """Make the mechanism of one login, which may block for a token. Raises AuthenticationError."""
    match settings.mechanism:
        case _ if settings.mechanism == PLAIN:
            return SaslMechanismPlain(
                sasl_plain_username=settings.username, sasl_plain_password=settings.password
            )
        case _ if settings.mechanism == OAUTHBEARER:
            assert settings.token is not None
            return SaslMechanismOAuth(sasl_oauth_token_provider=_Token(settings.token))
        case _ if settings.mechanism == AWS_MSK_IAM:
            return _AwsMskIam(settings, host)
        case _ if settings.mechanism == GSSAPI:
            assert settings.kerberos is not None
            return Gssapi(settings.kerberos, host)
        case _:
            return _Scram(settings)


def forget_token(settings: SaslSettings) -> None:
    """A broker has refused it."""
    if settings.token is not None:
        _TOKENS.forget(settings.token)


class _Scram(SaslMechanismScram):  # type: ignore[misc]  # kafka-python has no types here
    """Escapes the name, asks for enough iterations, and knows delegation tokens."""

    def __init__(self, settings: SaslSettings) -> None:
        super().__init__(
            sasl_plain_username=settings.username,
            sasl_plain_password=settings.password,
            sasl_mechanism=settings.mechanism,
        )
        self._scram_client = _ScramClient(settings)


class _ScramClient(ScramClient):  # type: ignore[misc]  # as above
    def __init__(self, settings: SaslSettings) -> None:
        name = settings.username.replace("=", "=3D").replace(",", "=2C")
        super().__init__(name, settings.password, settings.mechanism)
        self._extension = b",tokenauth=true" if settings.is_token else b""

    def first_message(self) -> bytes:
        bare: bytes = b"n=" + self.user + b",r=" + self.nonce + self._extension
        self.auth_message += bare
        return b"n,," + bare

    def create_salted_password(self, salt: bytes, iterations: int) -> None:
        if iterations < _ITERATIONS_MIN:
            raise AuthenticationError(
                f"asks for {iterations} iterations of SCRAM, fewer than {_ITERATIONS_MIN}: is it the broker?"
            )
        self.salted_password = _salted_password(self.hashname, self.password, salt, iterations)


@lru_cache(_SALTED_MAX)
def _salted_password(hash_name: str, password: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac(hash_name, password, salt, iterations)


class _Token(AbstractTokenProvider):  # type: ignore[misc]  # as above
    def __init__(self, source: TokenSource) -> None:
        super().__init__()
        self._source = source
        self._token = _TOKENS.token(source)

    def token(self) -> str:
        return self._token

    def extensions(self) -> dict[str, str]:
        return dict(self._source.extensions)


class _AwsMskIam(SaslMechanism):  # type: ignore[misc]  # as above
    """AWS's signature of the broker's host name, by credentials that botocore finds."""

    def __init__(self, settings: SaslSettings, host: str) -> None:
        region = region_of(host)
        credentials = _aws_credentials(settings, region)
        self._message: bytes = AwsMskIamClient(
            host=host,
            access_key=credentials.access_key,
            secret_key=credentials.secret_key,
            region=region,
            token=credentials.token,
        ).first_message()
        self._is_done = False

    def auth_bytes(self) -> bytes:
        return self._message

    def receive(self, auth_bytes: bytes) -> None:
        self._is_done = bool(auth_bytes)

    def is_done(self) -> bool:
        return self._is_done

    def is_authenticated(self) -> bool:
        return self._is_done


def region_of(host: str) -> str:
    """The AWS region in the name of an MSK broker. Raises AuthenticationError."""
    labels = host.split(".")
    if "kafka" in labels or "kafka-serverless" in labels:
        at = labels.index("kafka") if "kafka" in labels else labels.index("kafka-serverless")
        if at + 1 < len(labels) and labels[at + 1].count("-") >= 2:
            return labels[at + 1]
    raise AuthenticationError(f"the name {host} has no AWS region: AWS_MSK_IAM needs MSK's own host names")


def _aws_credentials(settings: SaslSettings, region: str) -> Any:
    try:
        from botocore.session import Session  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise AuthenticationError(f"AWS_MSK_IAM needs botocore: {how_to_install('aws')}") from error
    from botocore.exceptions import (  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra
        BotoCoreError,
        ClientError,
    )

    login = settings.aws
    assert login is not None
    try:
        session = Session(profile=login.profile)
        if login.role_arn is not None:
            sts = session.create_client("sts", region_name=login.sts_region or region)
            name = login.role_session or "sparkmirror"
            assumed = sts.assume_role(RoleArn=login.role_arn, RoleSessionName=name)["Credentials"]
            session.set_credentials(
                assumed["AccessKeyId"], assumed["SecretAccessKey"], assumed["SessionToken"]
            )
        found = session.get_credentials()
    except (BotoCoreError, ClientError) as error:
        raise AuthenticationError(f"AWS gives no credentials: {error}") from error
    if found is None:
        raise AuthenticationError("no AWS credentials are found: set them as for AWS's own tools")
    return found.get_frozen_credentials()
