"""Parses YAML as Kubernetes does, into sections that record which keys were never read."""

import re
from collections.abc import Hashable, Iterator
from typing import Final

import yaml

from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError


class Section:
    """A mapping inside a document, `path` names it in remarks and errors. Null counts as absent."""

    __slots__ = ("_asked", "_children", "_content", "path")

    def __init__(self, content: object, path: str) -> None:
        if not isinstance(content, dict):
            raise ConfigError(path, None, "is no mapping of keys to values")
        self._content = {str(key): value for key, value in content.items() if value is not None}
        self._asked: set[str] = set()
        self._children: dict[str, Section] = {}
        self.path = path

    def __contains__(self, key: str) -> bool:
        return key in self._content

    def text(self, key: str) -> str | None:
        """A text; numbers and booleans as Java writes them. Raises ConfigError for anything else."""
        self._asked.add(key)
        return None if key not in self._content else _text(self._content[key], self._below(key))

    def needed(self, key: str) -> str:
        """A text that must be there. Raises ConfigError if it's absent or empty."""
        text = self.text(key)
        if not text:
            raise ConfigError(self._below(key), None, "is missing")
        return text

    def section(self, key: str) -> "Section | None":
        self._asked.add(key)
        return None if key not in self._content else self._child(self._content[key], self._below(key))

    def needed_section(self, key: str) -> "Section":
        """A section that must be there. Raises ConfigError if it's absent."""
        found = self.section(key)
        if found is None:
            raise ConfigError(self._below(key), None, "is missing")
        return found

    def sections(self, key: str) -> list["Section"]:
        self._asked.add(key)
        items = self._content.get(key, [])
        if not isinstance(items, list):
            raise ConfigError(self._below(key), None, "is no list")
        return [self._child(item, f"{self._below(key)}[{index}]") for index, item in enumerate(items)]

    def settings(self, key: str) -> Properties:
        """A map of dotted keys to texts; nothing if it's absent."""
        found = self.section(key)
        return Properties({} if found is None else {name: found.text(name) or "" for name in found})

    def ignore(self, *keys: str) -> None:
        """Count these keys as read."""
        self._asked.update(keys)

    def left_over(self) -> Iterator[str]:
        """The paths of the keys that were never read."""
        yield from (self._below(key) for key in self._content if key not in self._asked)
        for child in self._children.values():
            yield from child.left_over()

    def __iter__(self) -> Iterator[str]:
        return iter(self._content)

    def _child(self, content: object, path: str) -> "Section":
        if path not in self._children:
            self._children[path] = Section(content, path)
        return self._children[path]

    def _below(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


def documents(text: str, name: str) -> list[object]:
    """Parse every document of a YAML text. Raises ConfigError naming `name` and the line."""
    try:
        return [document for document in yaml.load_all(text, _Loader) if document is not None]
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        where = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(name, None, f"is no YAML: {error.problem}{where}") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ConfigError(name, None, f"is no YAML: {type(error).__name__}") from error


class _Loader(yaml.SafeLoader):
    """Safe, and without YAML 1.1's surprises: dates, octal and sexagesimal numbers stay texts."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - as PyYAML has it


_RESOLVERS: Final = (
    ("tag:yaml.org,2002:bool", r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF"),
    ("tag:yaml.org,2002:int", r"-?(?:0|[1-9][0-9]*)"),
    ("tag:yaml.org,2002:float", r"-?(?:0|[1-9][0-9]*)\.[0-9]+"),
    ("tag:yaml.org,2002:merge", r"<<"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|"),
)
for _tag, _pattern in _RESOLVERS:
    _Loader.add_implicit_resolver(_tag, re.compile(f"(?:{_pattern})$"), None)


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Hashable, object]:
    """Kubernetes refuses a repeated key; PyYAML would take the last."""
    seen: set[str] = set()
    for key, _ in node.value:
        if key.value == "<<":
            continue
        if not isinstance(key, yaml.ScalarNode) or key.value in seen:
            is_text = isinstance(key, yaml.ScalarNode)
            problem = f"the key {key.value} is there twice" if is_text else "a key is no text"
            raise yaml.constructor.ConstructorError(None, None, problem, key.start_mark)
        seen.add(key.value)
    loader.flatten_mapping(node)
    return {key.value: loader.construct_object(value, deep=True) for key, value in node.value}


_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)


def _text(value: object, path: str) -> str:
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case _:
            raise ConfigError(path, None, "is no text, number or boolean")
