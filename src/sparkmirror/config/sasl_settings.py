"""Reads the `sasl.*` keys of a client, as Java's clients understand them. Opens no file, calls nobody."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from sparkmirror.config.definitions import Password, Values
from sparkmirror.config.jaas import parse_jaas
from sparkmirror.config.properties import Properties
from sparkmirror.domain.sasl import (
    AWS_MSK_IAM,
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SCRAM,
    AwsLogin,
    SaslSettings,
    TokenSource,
)

_JAAS: Final = "sasl.jaas.config"
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_SCHEMES: Final = ("http", "https", "file")
_CLAIM: Final = "unsecuredLoginStringClaim_"
_EXTENSION: Final = "unsecuredLoginExtension_"
_LIFETIME: Final = "unsecuredLoginLifetimeSeconds"


def sasl_settings(properties: Properties, values: Values) -> SaslSettings:
    """`values` are the parsed properties. Raises ConfigError naming the key, never what it holds."""
    mechanism = values.string("sasl.mechanism").strip()
    if mechanism not in MECHANISMS:
        reason = f"is not supported. These are: {', '.join(MECHANISMS)}"
        raise properties.error("sasl.mechanism", reason)
    options = _options(properties, values)
    match mechanism:
        case "OAUTHBEARER":
            return SaslSettings(mechanism, token=_token_source(properties, values, options))
        case "AWS_MSK_IAM":
            return SaslSettings(mechanism, aws=_aws_login(options))
        case _:
            for name in ("username", "password"):
                if name not in options:
                    raise properties.error(_JAAS, f"lacks the option {name}, which {mechanism} needs")
            is_token = mechanism in SCRAM and options.get("tokenauth", "").lower() == "true"
            return SaslSettings(mechanism, options["username"], options["password"], is_token)


assert {PLAIN, *SCRAM, OAUTHBEARER, AWS_MSK_IAM} == set(MECHANISMS)


def _options(properties: Properties, values: Values) -> Mapping[str, str]:
    secret = values[_JAAS]
    if not isinstance(secret, Password):
        raise properties.error(_JAAS, "is missing: it has the login module with its options")
    try:
        return parse_jaas(secret.value).options
    except ValueError as error:
        raise properties.error(_JAAS, str(error)) from error


def _token_source(properties: Properties, values: Values, options: Mapping[str, str]) -> TokenSource:
    url = str(values[_URL] or "").strip() or None
    if url is None:
        return _unsecured(properties, options)
    scheme = urlsplit(url).scheme.lower()
    if scheme not in _SCHEMES:
        raise properties.error(_URL, f"must begin with one of {', '.join(_SCHEMES)}")
    if scheme == "file":
        return TokenSource(url)
    client = "sasl.oauthbearer.client.credentials.client."
    secret = values[f"{client}secret"]
    client_id = str(values[f"{client}id"] or options.get("clientId", ""))
    client_secret = secret.value if isinstance(secret, Password) else options.get("clientSecret", "")
    if not client_id or not client_secret:
        raise properties.error(_JAAS, "lacks clientId and clientSecret, which the token endpoint needs")
    scope = str(values["sasl.oauthbearer.scope"] or options.get("scope", "")) or None
    extensions = tuple(
        (name.removeprefix("extension_"), text)
        for name, text in sorted(options.items())
        if name.startswith("extension_")
    )
    return TokenSource(url, client_id, client_secret, scope, extensions=extensions)


def _unsecured(properties: Properties, options: Mapping[str, str]) -> TokenSource:
    subject = options.get(f"{_CLAIM}sub", "")
    if not subject:
        reason = f"lacks {_CLAIM}sub; for a signed token set {_URL}"
        raise properties.error(_JAAS, reason)
    try:
        lifetime_s = float(options.get(_LIFETIME, "3600"))
    except ValueError as error:
        raise properties.error(_JAAS, f"{_LIFETIME} must be a number of seconds") from error
    extensions = tuple(
        (name.removeprefix(_EXTENSION), text)
        for name, text in sorted(options.items())
        if name.startswith(_EXTENSION)
    )
    scope = options.get(f"{_CLAIM}scope")
    return TokenSource(subject=subject, scope=scope, lifetime_s=lifetime_s, extensions=extensions)


def _aws_login(options: Mapping[str, str]) -> AwsLogin:
    return AwsLogin(
        profile=options.get("awsProfileName"),
        role_arn=options.get("awsRoleArn"),
        role_session=options.get("awsRoleSessionName"),
        sts_region=options.get("awsStsRegion"),
    )
