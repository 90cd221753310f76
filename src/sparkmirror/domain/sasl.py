"""Holds how a client logs in. No repr shows a secret."""

from dataclasses import dataclass
from typing import Final

from sparkmirror.domain.kept_settings import Kept
from sparkmirror.domain.tls import TlsSettings

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
AWS_MSK_IAM: Final = "AWS_MSK_IAM"
GSSAPI: Final = "GSSAPI"
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER, AWS_MSK_IAM, GSSAPI)


@dataclass(frozen=True, slots=True, repr=False)
class Assertion:
    """A JWT that asks for tokens: a ready one in `file`, or what it says and the key that signs it.

    `template_file` is JSON with more of its header and payload.
    """

    file: str | None = None
    key_file: str | None = None
    passphrase: str | None = None
    algorithm: str = "RS256"
    template_file: str | None = None
    claims: tuple[tuple[str, str], ...] = ()
    expires_s: int = 300
    valid_before_s: int = 60
    has_id: bool = False
    roots: tuple[str, ...] = ()
    """The folders below which its files must lie; anywhere without any."""


@dataclass(frozen=True, slots=True, repr=False)
class TokenSource:
    """Tells where an OAuth token comes from: `url` names an endpoint (http, https) or a file (file).

    An endpoint is asked by the client's id and secret, or by an assertion. If there is no URL the token
    is not signed, as for development, and names the `subject`.
    """

    url: str | None = None
    client_id: str = ""
    client_secret: str = ""
    scope: str | None = None
    subject: str = ""
    lifetime_s: float = 3600.0
    extensions: tuple[tuple[str, str], ...] = ()
    assertion: Assertion | None = None
    tls: TlsSettings | None = None
    """Towards the endpoint; None for what the system trusts."""

    @property
    def holds_secrets(self) -> bool:
        has_passphrase = self.assertion is not None and bool(self.assertion.passphrase)
        return bool(self.client_secret) or has_passphrase or (self.tls is not None and self.tls.holds_secrets)


@dataclass(frozen=True, slots=True, repr=False)
class AwsLogin:
    """Tells which AWS credentials sign in; all None for the default chain of AWS."""

    profile: str | None = None
    role_arn: str | None = None
    role_session: str | None = None
    sts_region: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class KerberosLogin:
    """`service` is the first part of the brokers' principals.

    Unless there is a key table, tickets are in a cache: the one named, else the default one.
    """

    service: str
    principal: str | None = None
    keytab: str | None = None
    ticket_cache: str | None = None
    roots: tuple[str, ...] = ()
    """The folders below which both files must lie; anywhere without any."""


@dataclass(frozen=True, slots=True, repr=False)
class SaslSettings:
    """`is_token` is set where name and password are those of a delegation token (KIP-48).

    With `kept`, nothing but the mechanism is known here.
    """

    mechanism: str
    username: str = ""
    password: str = ""
    is_token: bool = False
    token: TokenSource | None = None
    aws: AwsLogin | None = None
    kerberos: KerberosLogin | None = None
    kept: "Kept[SaslSettings] | None" = None

    def current(self) -> "SaslSettings":
        """Return the login with what is kept elsewhere as it is now. Raises ConfigError."""
        return self if self.kept is None else self.kept.read()

    @property
    def holds_secrets(self) -> bool:
        if self.kept is not None:
            return self.kept.holds_secrets
        return bool(self.password) or (self.token is not None and self.token.holds_secrets)
