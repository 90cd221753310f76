"""Resolves values kept outside of a configuration: `${provider:path:key}` (KIP-297, KIP-632, KIP-887).

Kafka's three providers are built in: files of properties, environment variables, directories of files. A
placeholder whose provider is not declared stays as it is in Kafka, which then logs in with that text; here it
is an error, as is one whose provider has no such value: the placeholder itself is never a useful value.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Final, NamedTuple

from sparkmirror.config.definitions import JAVA_WHITESPACE
from sparkmirror.config.properties import (
    HIDDEN,
    Properties,
    Provider,
    read_regular_file,
    read_regular_properties,
)
from sparkmirror.domain.errors import ConfigError
from sparkmirror.files import NamedFile
from sparkmirror.policies.java_regex import JavaPattern, compile_list

PREFIX: Final = "config.providers"
_KAFKAS: Final = "org.apache.kafka.common.config.provider."
OF_STRIMZI: Final[Mapping[str, str]] = {
    "strimzienv": f"{_KAFKAS}EnvVarConfigProvider",
    "strimzifile": f"{_KAFKAS}FileConfigProvider",
    "strimzidir": f"{_KAFKAS}DirectoryConfigProvider",
    "strimzisecrets": f"{_KAFKAS}DirectoryConfigProvider",
    "strimziconfigmaps": f"{_KAFKAS}DirectoryConfigProvider",
}
"""The providers that Strimzi's operator declares. The operator's read Kubernetes, these mounted files."""
_OF_KUBERNETES: Final = {"strimzisecrets": "secret", "strimziconfigmaps": "config map"}
_ALLOWED: Final = "allowlist.pattern"


class FileProvider:
    """`${file:/path/to.properties:key}`: one key of a properties file."""

    def __init__(self, allowed_paths: "AllowedPaths") -> None:
        self._allowed_paths = allowed_paths

    def value(self, path: str, key: str) -> str | None:
        return read_regular_properties(self._allowed_paths.checked(path)).get(key) if path else None


class DirectoryProvider:
    """`${directory:/path:file}`: the whole content of a file, as Kubernetes mounts secrets."""

    def __init__(self, allowed_paths: "AllowedPaths") -> None:
        self._allowed_paths = allowed_paths

    def value(self, path: str, key: str) -> str | None:
        file = self._allowed_paths.checked(path) / key
        if not path or PurePath(key).name != key or not file.is_file():
            return None
        try:
            return read_regular_file(file).decode()
        except UnicodeDecodeError as error:
            raise ConfigError(str(file), None, f"can't be read: {type(error).__name__}") from error


class EnvironmentProvider:
    """`${env:NAME}`: an environment variable whose name matches the allowed pattern."""

    def __init__(self, environment: Mapping[str, str], allowed: JavaPattern) -> None:
        self._environment = environment
        self._allowed = allowed

    def value(self, path: str, key: str) -> str | None:
        if path:
            raise ConfigError(path, None, "environment variables have no path; write ${provider:NAME}")
        return self._environment.get(key) if self._allowed.fullmatch(key) else None

    def __reduce__(self) -> tuple[Callable[[str], "EnvironmentProvider"], tuple[str]]:
        """Pickle without the environment: another process reads its own."""
        return _of_this_process, (self._allowed.pattern,)


def _of_this_process(allowed: str) -> EnvironmentProvider:
    return EnvironmentProvider(os.environ, compile_list([allowed], _ALLOWED))


class AllowedPaths:
    """The folders that a provider may read; any folder if none is named (KIP-993)."""

    def __init__(self, folders: tuple[PurePath, ...]) -> None:
        self._folders = folders

    def checked(self, path: str) -> Path:
        """The path, without `..`. Raises ConfigError if it leads elsewhere."""
        normal = _normalized(path)
        if self._folders and not any(normal.is_relative_to(folder) for folder in self._folders):
            raise ConfigError(path, None, "is outside of the provider's allowed.paths")
        return normal

    @classmethod
    def of(cls, settings: Properties) -> "AllowedPaths":
        """Read the provider's `allowed.paths`. Raises ConfigError for a path that is relative or missing."""
        folders = tuple(_normalized(item) for item in settings.get("allowed.paths", "").split(",") if item)
        for folder in folders:
            if not folder.is_absolute():
                raise settings.error("allowed.paths", f"Path {folder} is not absolute")
            if not folder.exists():
                raise settings.error("allowed.paths", f"Path {folder} does not exist")
        return cls(folders)


def _normalized(path: str) -> Path:
    parts: list[str] = []
    for part in Path(path).parts:
        if part == ".." and parts and parts[-1] not in ("/", ".."):
            parts.pop()
        elif not (part == ".." and parts == ["/"]):
            parts.append(part)
    return Path(*parts)


def configured_providers(properties: Properties, environment: Mapping[str, str]) -> dict[str, Provider]:
    """The providers that `config.providers` names. Raises ConfigError for one that is not built in."""
    return {
        name: _maker(name, properties)(_parameters(name, properties), environment)
        for name in declared(properties)
    }


def declared(properties: Properties) -> list[str]:
    """The names of the providers that have a class."""
    names = properties.get(PREFIX, "").strip(JAVA_WHITESPACE)
    return [name for name in map(str.strip, names.split(",")) if f"{PREFIX}.{name}.class" in properties]


def check_placeholders(properties: Properties) -> None:
    """Raises ConfigError for what `resolved` refuses whatever the values are; resolves nothing."""
    known = declared(properties)
    for name in known:
        _maker(name, properties)
    for key, text in properties.items():
        if not key.startswith(PREFIX):
            for piece in _pieces(text):
                if isinstance(piece, _Placeholder):
                    _check(piece, key, properties, known)


def resolved(properties: Properties, providers: Mapping[str, Provider]) -> Properties:
    """The properties with their placeholders replaced; `${…}` is all that is ever printed of them."""

    def replace(key: str, text: str) -> str:
        return "".join(
            piece if isinstance(piece, str) else _replacement(piece, key, properties, providers)
            for piece in _pieces(text)
        )

    return properties.resolved(replace, providers)


class _Placeholder(NamedTuple):
    name: str
    path: str
    variable: str
    text: str


def _pieces(text: str) -> Iterator[str | _Placeholder]:
    """Split a text into plain texts and placeholders, in one pass over it."""
    at = 0
    while (start := text.find("${", at)) >= 0 and (end := text.find("}", start)) >= 0:
        yield text[at:start]
        at = end + 1
        name, colon, rest = text[start + 2 : end].partition(":")
        path, second_colon, variable = rest.partition(":")
        if not second_colon:
            path, variable = "", rest
        written = text[start:at]
        yield _Placeholder(name, path, variable, written) if colon else written
    yield text[at:]


def _replacement(
    found: _Placeholder, key: str, properties: Properties, providers: Mapping[str, Provider]
) -> str:
    name, path, variable, _ = found
    _check(found, key, properties, providers)
    try:
        value = providers[name].value(path, variable)
    except ConfigError as error:
        raise properties.error(key, f"provider '{name}': {error}") from error
    if value is None:
        raise properties.error(key, f"provider '{name}' has no value for '{variable}'")
    return value


def _check(found: _Placeholder, key: str, properties: Properties, known: Collection[str]) -> None:
    if "${" in found.text[2:]:
        raise properties.error(key, "placeholders can't be nested")
    if found.name not in known:
        raise properties.error(key, f"provider '{found.name}' is not declared: {to_declare(found.name)}")


def to_declare(name: str) -> str:
    """Describe the provider that a configuration refers to and does not declare."""
    needed = f"{PREFIX} must list it, and {PREFIX}.{name}.class be set"
    if name not in OF_STRIMZI:
        return needed
    needed += f" to {OF_STRIMZI[name]}, as Strimzi's operator does"
    kind = _OF_KUBERNETES.get(name)
    if kind is None:
        return needed
    needed = needed.removesuffix(", as Strimzi's operator does")
    return f"it is Strimzi's and reads Kubernetes: mount the {kind}, write ${{{name}:FOLDER:KEY}}; {needed}"


_Maker = Callable[[Properties, Mapping[str, str]], Provider]


def _maker(name: str, properties: Properties) -> _Maker:
    key = f"{PREFIX}.{name}.class"
    simple_name = properties[key].strip(JAVA_WHITESPACE).rpartition(".")[2].removesuffix("ConfigProvider")
    make = _MAKERS.get(simple_name)
    if make is None:
        raise properties.error(
            key,
            "is not a supported config provider; use FileConfigProvider, EnvVarConfigProvider"
            " or DirectoryConfigProvider",
        )
    return make


def _parameters(name: str, properties: Properties) -> Properties:
    return properties.under(f"{PREFIX}.{name}.param.")


def _file(settings: Properties, _: Mapping[str, str]) -> Provider:
    return FileProvider(AllowedPaths.of(settings))


def _directory(settings: Properties, _: Mapping[str, str]) -> Provider:
    return DirectoryProvider(AllowedPaths.of(settings))


def _environment(settings: Properties, environment: Mapping[str, str]) -> Provider:
    try:
        pattern = compile_list([settings.get(_ALLOWED, ".*")], _ALLOWED)
    except ConfigError as error:
        raise settings.error(_ALLOWED, error.reason) from error
    return EnvironmentProvider(environment, pattern)


_MAKERS: Final[Mapping[str, _Maker]] = {
    "File": _file,
    "Directory": _directory,
    "EnvVar": _environment,
}


def user_names(file: NamedFile) -> frozenset[str]:
    """The users in the file of `sync.users`. Raises ConfigError, naming the file, when it can't be read."""
    return frozenset(_users(read_regular_properties(file)))


def user_passwords(file: NamedFile, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The passwords in the file of `sync.users`, by user; the file configures its own config providers.

    Raises ConfigError, without values, for what can't be read or resolved, and for an empty password.
    """
    properties = read_regular_properties(file)
    try:
        users = resolved(_users(properties), configured_providers(properties, environment))
    except ConfigError as error:
        # The text beside a placeholder, or instead of it, may be a password.
        raise ConfigError(f"{file.path}: {error.key}", HIDDEN, error.reason) from None
    empty = sorted(user for user, password in users.items() if not password)
    if empty:
        raise ConfigError(f"{file.path}: {', '.join(empty)}", None, "the password is empty")
    return dict(users)


def _users(properties: Properties) -> Properties:
    return properties.where(lambda key: not key.startswith(PREFIX))
