"""Reads connect-distributed.properties of any age into a worker's settings, warnings and errors.

Keys that a Java worker would only log, or treat differently without a word, are warnings here. Unsupported
keys are errors; all errors are reported at once.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.client_layers import worker_client
from sparkmirror.config.client_options import ADMIN, CONSUMER, PRODUCER
from sparkmirror.config.definitions import JAVA_WHITESPACE, Values
from sparkmirror.config.file_findings import connector_findings
from sparkmirror.config.former_keys import REMOVED
from sparkmirror.config.known_keys import unknown_worker_keys
from sparkmirror.config.properties import Properties, Provider
from sparkmirror.config.providers import PREFIX as PROVIDERS
from sparkmirror.config.providers import configured_providers, resolved
from sparkmirror.config.worker_options import BASIC_AUTHENTICATION, EXTENSIONS, TOKENS, WORKER
from sparkmirror.config.worker_settings import WorkerSettings, worker_settings
from sparkmirror.connect.validation.classes import converter_effect
from sparkmirror.connect.validation.descriptions import BYTE_ARRAY_CONVERTER, without_package
from sparkmirror.connect.validation.overrides import ALLOWLIST, policy_name
from sparkmirror.domain.errors import ConfigError, InvalidConfigError

_DEFAULTS: Final = {"bootstrap.servers": "localhost:9092"}
_CLIENTS: Final = {"producer.": PRODUCER, "consumer.": CONSUMER, "admin.": ADMIN}
_KNOWN_HERE: Final = ("spark.", "admin.listeners.https.", f"{TOKENS}ssl.", f"{PROVIDERS}.", ALLOWLIST)
_HEADERS: Final = "header.converter"
_STORAGE: Final = ("config", "offset", "status")
_WITHOUT_MEANING: Final = (
    "plugin.path",
    "plugin.discovery",
    "connect.protocol",
    "scheduled.rebalance.max.delay.ms",
    "worker.sync.timeout.ms",
    "worker.unsync.backoff.ms",
    "inter.worker.signature.algorithm",
    "inter.worker.verification.algorithms",
)
"""Keys of Java's plugins, and of the assignment and the requests of Java workers."""

_SINCE_3_0: Final = {"rest.host.name": "http://HOST:8083", "rest.port": "http://:PORT"}
"""Options that are gone, and what replaces each in `listeners` (KIP-208)."""

_STANDALONE: Final = "offset.storage.file.filename"


@dataclass(frozen=True, slots=True)
class WorkerFile:
    """`properties` have no placeholders; `spark` are those of the Spark session, by their full names."""

    properties: Properties
    settings: WorkerSettings
    spark: Properties
    warnings: tuple[str, ...]


def worker_file(properties: Properties, environment: Mapping[str, str]) -> WorkerFile:
    """Parse a worker's properties. Raises InvalidConfigError with every unusable one."""
    _check_kind(properties)
    errors: list[ConfigError] = []
    worker = Properties(_DEFAULTS) | _resolved(properties, environment, errors)
    settings = None
    with _collecting(errors):
        settings = worker_settings(worker)
    with _collecting(errors):
        worker_client(worker, "offsets")
    with _collecting(errors):
        policy_name(worker)
    for prefix, definition in _CLIENTS.items():
        with _collecting(errors):
            definition.parse(worker.under(prefix))
    if settings is not None:
        errors += _contradictions(worker, WORKER.parse(worker))
    if errors or settings is None:
        raise InvalidConfigError(list({str(error): error for error in errors}.values()))
    return WorkerFile(worker, settings, worker.starting("spark."), tuple(_warnings(properties, worker)))


def connector_warnings(config: Mapping[str, str], worker: Properties) -> tuple[str, ...]:
    """Warn of a connector's unused keys, and of keys that have another effect in Java."""
    return (
        *_converter_warnings(config, worker),
        *map(str, connector_findings(config)),
    )


@contextmanager
def _collecting(errors: list[ConfigError]) -> Iterator[None]:
    try:
        yield
    except InvalidConfigError as error:
        errors += error.errors
    except ConfigError as error:
        errors.append(error)


def _check_kind(properties: Properties) -> None:
    """Raise ConfigError for another kind of file, instead of an error for each missing key."""
    if "group.id" in properties:
        return
    if "clusters" in properties:
        raise properties.error(
            "clusters",
            "is a setting of mm2.properties, not of a Connect worker; `sparkmirror run` takes such a file",
        )
    if _STANDALONE in properties:
        raise properties.error(
            _STANDALONE,
            "is a setting of connect-standalone.sh. A worker here stores offsets in a topic; name group.id,"
            " config.storage.topic, offset.storage.topic and status.storage.topic instead",
        )


def _resolved(
    properties: Properties, environment: Mapping[str, str], errors: list[ConfigError]
) -> Properties:
    """Resolve each key by itself, so that every unresolvable placeholder is reported."""
    providers: Mapping[str, Provider] = {}
    with _collecting(errors):
        providers = configured_providers(properties, environment)
    found = properties
    for key in properties:
        if not key.startswith(PROVIDERS):
            with _collecting(errors):
                found |= resolved(properties.only({key}), providers)
    return found


def _contradictions(worker: Properties, values: Values) -> Iterator[ConfigError]:
    session_ms = values.integer("session.timeout.ms")
    if values.integer("heartbeat.interval.ms") >= session_ms:
        yield worker.error("heartbeat.interval.ms", f"must be lower than session.timeout.ms, {session_ms}")
    topics: dict[str, str] = {}
    for key in (f"{kind}.storage.topic" for kind in _STORAGE):
        other = topics.setdefault(values.string(key), key)
        if other != key:
            yield worker.error(key, f"is {other} too; each needs a topic of its own")
    if not set(values.strings(EXTENSIONS)) <= set(BASIC_AUTHENTICATION):
        yield worker.error(
            EXTENSIONS,
            f"Only {BASIC_AUTHENTICATION[0]} has a counterpart here, and a worker that needs another one for"
            " authentication must not go without. Tokens and client certificates can be asked for, too: see"
            " docs/security.md",
        )


def _warnings(written: Properties, worker: Properties) -> Iterator[str]:
    for key in _DEFAULTS:
        if key not in written:
            yield f"{key} is not set, so it is {_DEFAULTS[key]}, as for a Java worker"
    unknown = [
        key
        for key in unknown_worker_keys(written)
        if not key.key.startswith(_KNOWN_HERE) and key.key not in _SINCE_3_0
    ]
    removed = [key.key for key in unknown if key.key in REMOVED]
    if removed:
        yield f"{', '.join(removed)}: no longer read by Kafka either ({_reasons(removed)})"
    for key, listener in _SINCE_3_0.items():
        if key in written:
            given = worker.quoted(key, worker[key])
            yield (
                f"{key}: no longer read by Kafka either (removed in Kafka 3.0); listeners replaces it, as in"
                f" listeners={listener.replace('HOST', given).replace('PORT', given)}"
            )
    others = [str(key) for key in unknown if key.key not in REMOVED]
    if others:
        yield f"keys that nothing reads: {'; '.join(others)}"
    without_meaning = [key for key in _WITHOUT_MEANING if key in written]
    if without_meaning:
        yield f"{', '.join(without_meaning)}: accepted and unused, there are no Java plugins or workers here"
    yield from _storage_warnings(written)
    yield from _header_warnings(worker)


def _reasons(removed: list[str]) -> str:
    return "; ".join(dict.fromkeys(REMOVED[key] for key in removed))


def _storage_warnings(written: Properties) -> Iterator[str]:
    if "config.storage.partitions" in written:
        yield "config.storage.partitions is ignored: the config topic has one partition"
    for key in (f"{kind}.storage.cleanup.policy" for kind in _STORAGE):
        if key in written:
            yield f"{key} is ignored: these topics are always compacted"


def _header_warnings(worker: Properties) -> Iterator[str]:
    converter = worker.get(_HEADERS, WORKER[_HEADERS].default)
    assert isinstance(converter, str)
    effect = converter_effect(converter.strip(JAVA_WHITESPACE))
    if effect is not None:
        how = "is" if _HEADERS in worker else "is not set, so for Java it is"
        named = worker.quoted(_HEADERS, without_package(converter))
        yield (
            f"{_HEADERS} {how} {named}, which {effect}. Here headers are copied as they"
            f" are, for every connector; a Java worker does so with {BYTE_ARRAY_CONVERTER}"
        )


def _converter_warnings(config: Mapping[str, str], worker: Properties) -> Iterator[str]:
    for key in ("key.converter", "value.converter"):
        inherited = worker.get(key, BYTE_ARRAY_CONVERTER).strip(JAVA_WHITESPACE)
        effect = converter_effect(inherited)
        if key not in config and effect is not None:
            named = worker.quoted(key, without_package(inherited))
            yield (
                f"{key} is not set, so for Java it is the worker's {named}, which"
                f" {effect}. Here records are copied as they are; a Java worker does so with"
                f" {key}={BYTE_ARRAY_CONVERTER}"
            )
