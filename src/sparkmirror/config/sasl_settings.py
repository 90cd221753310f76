"""Reads the `sasl.*` keys of a client as Java's clients do. Opens no file and sends no request."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from sparkmirror.config.client_options import ADMIN
from sparkmirror.config.definitions import Password, Values
from sparkmirror.config.jaas import parse_jaas
from sparkmirror.config.properties import Properties
from sparkmirror.config.tls_settings import tls_settings
from sparkmirror.domain.sasl import (
    AWS_MSK_IAM,
    GSSAPI,
    MECHANISMS,
    OAUTHBEARER,
    PLAIN,
    SCRAM,
    Assertion,
    AwsLogin,
    KerberosLogin,
    SaslSettings,
    TokenSource,
)
from sparkmirror.domain.tls import TlsSettings

JAAS: Final = "sasl.jaas.config"
_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_RETRIEVERS: Final = (
    "DefaultJwtRetriever",
    "ClientCredentialsJwtRetriever",
    "FileJwtRetriever",
    "JwtBearerJwtRetriever",
)
_ASSERTION: Final = "sasl.oauthbearer.assertion"
_ASSERTION_FILES: Final = ("file", "private.key.file", "template.file")
_ALGORITHMS: Final = ("RS256", "ES256")
_SCHEMES: Final = ("http", "https", "file")
_CLASSES: Final = (
    "sasl.client.callback.handler.class",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.oauthbearer.jwt.validator.class",
)
_OF_KAFKA: Final = "org.apache.kafka.common.security."
_OF_MSK: Final = "software.amazon.msk.auth.iam.IAMClientCallbackHandler"
_SERVICE: Final = "sasl.kerberos.service.name"
_CLAIM: Final = "unsecuredLoginStringClaim_"
_EXTENSION: Final = "unsecuredLoginExtension_"
_LIFETIME: Final = "unsecuredLoginLifetimeSeconds"


def sasl_settings(properties: Properties, values: Values) -> SaslSettings:
    """`values` are the parsed properties. Raises ConfigError naming the key, never what it holds."""
    mechanism = values.string("sasl.mechanism").strip()
    if mechanism not in MECHANISMS:
        reason = f"is not supported. These are: {', '.join(MECHANISMS)}"
        raise properties.error("sasl.mechanism", reason)
    _refuse_foreign_classes(properties, values)
    options = _options(properties, values)
    match mechanism:
        case "OAUTHBEARER":
            return SaslSettings(mechanism, token=_token_source(properties, values, options))
        case "AWS_MSK_IAM":
            return SaslSettings(mechanism, aws=_aws_login(options))
        case "GSSAPI":
            return SaslSettings(mechanism, kerberos=_kerberos_login(properties, values, options))
        case _:
            for name in ("username", "password"):
                if name not in options:
                    raise properties.error(JAAS, f"lacks the option {name}, which {mechanism} needs")
            is_token = mechanism in SCRAM and options.get("tokenauth", "").lower() == "true"
            return SaslSettings(mechanism, options["username"], options["password"], is_token)


assert {PLAIN, *SCRAM, OAUTHBEARER, AWS_MSK_IAM, GSSAPI} == set(MECHANISMS)


def _refuse_foreign_classes(properties: Properties, values: Values) -> None:
    """Kafka's own and MSK's are what is done here anyway."""
    for key in _CLASSES:
        name = str(values[key] or "").strip()
        if name and name != _OF_MSK and not name.startswith(_OF_KAFKA):
            raise properties.error(key, f"has no counterpart here: only {_OF_KAFKA}* and {_OF_MSK} have")


def _options(properties: Properties, values: Values) -> Mapping[str, str]:
    secret = values[JAAS]
    if not isinstance(secret, Password):
        raise properties.error(
            JAAS,
            "is missing: it has the login module with its options. Without sasl.mechanism it is GSSAPI's",
        )
    try:
        return parse_jaas(secret.value).options
    except ValueError as error:
        raise properties.error(JAAS, str(error)) from error


def _token_source(properties: Properties, values: Values, options: Mapping[str, str]) -> TokenSource:
    url = str(values[_URL] or "").strip() or None
    if url is None:
        return _unsecured(properties, options)
    scheme = urlsplit(url).scheme.lower()
    if scheme not in _SCHEMES:
        raise properties.error(_URL, f"must begin with one of {', '.join(_SCHEMES)}")
    retriever = values.string(_RETRIEVER).strip().rpartition(".")[2]
    if retriever not in _RETRIEVERS:
        raise properties.error(_RETRIEVER, f"has no counterpart here. These have: {', '.join(_RETRIEVERS)}")
    if scheme == "file":
        return TokenSource(url)
    source = TokenSource(
        url,
        scope=str(values["sasl.oauthbearer.scope"] or options.get("scope", "")) or None,
        extensions=_extensions(options, "extension_"),
        tls=_tls_of_endpoint(options, properties.roots(JAAS)),
    )
    if retriever == "JwtBearerJwtRetriever":
        return replace(source, assertion=_assertion(properties, values))
    client_id, client_secret = _client(properties, values, options)
    return replace(source, client_id=client_id, client_secret=client_secret)


def _client(properties: Properties, values: Values, options: Mapping[str, str]) -> tuple[str, str]:
    client = "sasl.oauthbearer.client.credentials.client."
    secret = values[f"{client}secret"]
    client_id = str(values[f"{client}id"] or options.get("clientId", ""))
    client_secret = secret.value if isinstance(secret, Password) else options.get("clientSecret", "")
    if not client_id or not client_secret:
        raise properties.error(JAAS, "lacks clientId and clientSecret, which the token endpoint needs")
    return client_id, client_secret


def _extensions(options: Mapping[str, str], prefix: str) -> tuple[tuple[str, str], ...]:
    found = sorted(options.items())
    return tuple((name.removeprefix(prefix), text) for name, text in found if name.startswith(prefix))


def _tls_of_endpoint(options: Mapping[str, str], roots: tuple[str, ...]) -> TlsSettings | None:
    """Read the endpoint's TLS settings from `ssl.*` among the login module's options, as Java does."""
    own = Properties(options).starting("ssl.").confined(roots)
    return tls_settings(own, ADMIN.parse(own)) if own else None


def _assertion(properties: Properties, values: Values) -> Assertion:
    def given(name: str) -> str | None:
        return str(values[f"{_ASSERTION}.{name}"] or "") or None

    algorithm = given("algorithm") or _ALGORITHMS[0]
    if algorithm.upper() not in _ALGORITHMS:
        raise properties.error(f"{_ASSERTION}.algorithm", f"must be one of {', '.join(_ALGORITHMS)}")
    if not (given("file") or given("private.key.file")):
        reason = "is missing: it has the key that signs assertions"
        raise properties.error(f"{_ASSERTION}.private.key.file", reason)
    passphrase = values[f"{_ASSERTION}.private.key.passphrase"]
    claims = ((name, given(f"claim.{name}")) for name in ("aud", "iss", "sub"))
    return Assertion(
        file=given("file"),
        key_file=given("private.key.file"),
        passphrase=passphrase.value if isinstance(passphrase, Password) else None,
        algorithm=algorithm.upper(),
        template_file=given("template.file"),
        claims=tuple((name, text) for name, text in claims if text is not None),
        expires_s=values.integer(f"{_ASSERTION}.claim.exp.seconds"),
        valid_before_s=values.integer(f"{_ASSERTION}.claim.nbf.seconds"),
        has_id=values.boolean(f"{_ASSERTION}.claim.jti.include"),
        roots=properties.roots(*(f"{_ASSERTION}.{name}" for name in _ASSERTION_FILES)),
    )


def _unsecured(properties: Properties, options: Mapping[str, str]) -> TokenSource:
    subject = options.get(f"{_CLAIM}sub", "")
    if not subject:
        reason = f"lacks {_CLAIM}sub; for a signed token set {_URL}"
        raise properties.error(JAAS, reason)
    try:
        lifetime_s = float(options.get(_LIFETIME, "3600"))
    except ValueError as error:
        raise properties.error(JAAS, f"{_LIFETIME} must be a number of seconds") from error
    extensions = _extensions(options, _EXTENSION)
    scope = options.get(f"{_CLAIM}scope")
    return TokenSource(subject=subject, scope=scope, lifetime_s=lifetime_s, extensions=extensions)


def _aws_login(options: Mapping[str, str]) -> AwsLogin:
    return AwsLogin(
        profile=options.get("awsProfileName"),
        role_arn=options.get("awsRoleArn"),
        role_session=options.get("awsRoleSessionName"),
        sts_region=options.get("awsStsRegion"),
    )


def _kerberos_login(properties: Properties, values: Values, options: Mapping[str, str]) -> KerberosLogin:
    """Read the login from the options of `com.sun.security.auth.module.Krb5LoginModule`."""
    service = str(values[_SERVICE] or options.get("serviceName", ""))
    if not service:
        reason = "is missing: it has the first part of the brokers' principals, mostly kafka"
        raise properties.error(_SERVICE, reason)
    if _is_on(options, "useKeyTab"):
        for name in ("keyTab", "principal"):
            if not options.get(name):
                raise properties.error(JAAS, f"lacks the option {name}, which useKeyTab=true needs")
        keytab = options["keyTab"].removeprefix("FILE:")
        return KerberosLogin(service, options["principal"], keytab, roots=properties.roots(JAAS))
    if not _is_on(options, "useTicketCache"):
        raise properties.error(
            JAAS, "lacks useKeyTab=true or useTicketCache=true: nobody is asked for a password"
        )
    cache = options.get("ticketCache")
    return KerberosLogin(service, options.get("principal"), ticket_cache=cache, roots=properties.roots(JAAS))


def _is_on(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"
