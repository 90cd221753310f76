"""Holds how a client logs in. No repr shows a secret."""

from dataclasses import dataclass
from typing import Final

PLAIN: Final = "PLAIN"
SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
OAUTHBEARER: Final = "OAUTHBEARER"
AWS_MSK_IAM: Final = "AWS_MSK_IAM"
MECHANISMS: Final = (PLAIN, *SCRAM, OAUTHBEARER, AWS_MSK_IAM)


@dataclass(frozen=True, slots=True, repr=False)
class TokenSource:
    """Where an OAuth token comes from: `url` is that of an endpoint (http, https) or of a file (file).

    Without a URL the token is not signed, as for development, and names the `subject`.
    """

    url: str | None = None
    client_id: str = ""
    client_secret: str = ""
    scope: str | None = None
    subject: str = ""
    lifetime_s: float = 3600.0
    extensions: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, repr=False)
class AwsLogin:
    """Which AWS credentials sign in; all None for the default chain of AWS."""

    profile: str | None = None
    role_arn: str | None = None
    role_session: str | None = None
    sts_region: str | None = None


@dataclass(frozen=True, slots=True, repr=False)
class SaslSettings:
    """`is_token` is set where name and password are those of a delegation token (KIP-48)."""

    mechanism: str
    username: str = ""
    password: str = ""
    is_token: bool = False
    token: TokenSource | None = None
    aws: AwsLogin | None = None

    @property
    def holds_secrets(self) -> bool:
        return bool(self.password) or (self.token is not None and bool(self.token.client_secret))
