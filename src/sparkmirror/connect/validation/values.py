"""Validates single options as Kafka's ConfigDef does: parses each value and collects its errors.

A value that can't be parsed is validated as null, so one mistake may give two errors, as in Connect.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from sparkmirror.config.definitions import JAVA_WHITESPACE, Option, Required, Type, Value
from sparkmirror.config.properties import HIDDEN, Properties, Provider, is_sensitive
from sparkmirror.config.providers import resolved
from sparkmirror.config.validators import AtLeast, DistinctItems, NonNull, OneOf, OneOfAnyCase, UniqueAliases
from sparkmirror.connect.validation.classes import class_problem, converter_class, converter_error
from sparkmirror.connect.validation.descriptions import shown
from sparkmirror.connect.validation.infos import ConfigValue
from sparkmirror.domain.errors import ConfigError

_UNUSABLE: Final = "the value of the placeholder can't be used"
_CHAINS: Final = ("transforms", "predicates")
_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")


class Given:
    """A connector's config as given; placeholders are resolved for validation, and never shown resolved.

    `failures` are the keys whose placeholder can't be resolved, each with the reason.
    """

    __slots__ = ("_written", "failures", "modules", "properties")

    def __init__(
        self,
        config: Mapping[str, str | None],
        providers: Mapping[str, Provider],
        modules: frozenset[str] = frozenset(),
        folders: tuple[str, ...] = (),
    ) -> None:
        """The config may name classes of these modules, and files below these folders."""
        self.modules = modules
        self._written = dict(config)
        self.failures: dict[str, str] = {}
        self.properties = Properties()
        """The values that are not null, resolved."""
        for key, text in config.items():
            if text is not None:
                one = Properties({key: text}).confined(folders)
                self.properties |= self._resolved(key, one, providers)

    def only(self, key: str, name: str) -> "Given":
        """Keep one entry alone, under another name."""
        found = Given({}, {})
        found._written[name] = self._written[key]
        found.properties = self.properties.only({key}).under(key.removesuffix(name))
        return found

    def _resolved(self, key: str, one: Properties, providers: Mapping[str, Provider]) -> Properties:
        try:
            return resolved(one, providers)
        except ConfigError as error:
            self.failures[key] = str(error)
            return one

    def __contains__(self, key: str) -> bool:
        return key in self._written

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def nulls(self) -> list[str]:
        return [key for key, text in self._written.items() if text is None]

    def written(self, key: str) -> str | None:
        return self._written.get(key)

    def resolved(self, key: str) -> str | None:
        return self.properties.get(key)

    def is_resolved(self, key: str) -> bool:
        """Whether the value of this key had a placeholder that was resolved."""
        return self.properties.get(key) != self._written[key]

    def shown(self, key: str) -> str:
        """A value as it was written, if it may be shown at all."""
        text = self._written[key]
        return HIDDEN if is_sensitive(key) else "null" if text is None else text


def judged(option: Option, default: str | None, given: Given) -> ConfigValue:
    """The value and errors of an option in a config; `default` is its default as Connect shows it."""
    name = option.name
    if name not in given:
        if isinstance(option.default, Required):
            missing = f'Missing required configuration "{name}" which has no default value.'
            return _rejected(ConfigValue(name, errors=(missing,)), option, None, "null")
        return ConfigValue(name, default)
    text = given.resolved(name)
    if text is None:
        return _rejected(ConfigValue(name), option, None, "null")
    written = given.shown(name)
    if option.type is Type.CLASS:
        return _class(option, text, given)
    try:
        value = option.parse_type(text)
    except ValueError as error:
        return _rejected(
            ConfigValue(name, errors=(_invalid(name, written, str(error)),)), option, None, "null"
        )
    return (
        _behind_placeholder(option, value, written)
        if given.is_resolved(name)
        else _rejected(ConfigValue(name, shown(value)), option, value, str(shown(value)))
    )


def _behind_placeholder(option: Option, value: Value, written: str) -> ConfigValue:
    """A resolved value is never shown, nor are parts of it, as the validators' reasons have them."""
    found = ConfigValue(option.name, written)
    if _validator_error(option, value, written) is None:
        return found
    return found.with_error(_invalid(option.name, written, f"{_UNUSABLE}. Valid: {option.validator}"))


def _invalid(name: str, written: str, reason: str) -> str:
    """The text of Kafka's ConfigException."""
    return f"Invalid value {written} for configuration {name}: {reason}"


def _rejected(found: ConfigValue, option: Option, value: Value, written: str) -> ConfigValue:
    """Add the error of the option's validator, if there is one."""
    error = _validator_error(option, value, written)
    return found if error is None else found.with_error(error)


def _validator_error(option: Option, value: Value, written: str) -> str | None:
    """Return the error of the option's validator, which knows an item of a chain by its name there."""
    name, validator = option.name, option.validator
    if name.partition(".")[0] in _CHAINS:
        name = name.split(".", 2)[-1]
    if isinstance(validator, DistinctItems):
        return _list_error(name, validator, value)
    if value is None:
        reason = _null_reason(option)
        return None if reason is None else _invalid(name, "null", reason)
    if validator is None:
        return None
    if isinstance(validator, OneOfAnyCase):
        is_one = str(value).upper() in validator.choices
        return None if is_one else _invalid(name, written, _one_of_any_case(validator.choices))
    try:
        validator(value)
    except ValueError as error:
        return _invalid(name, f"[{', '.join(value)}]" if isinstance(value, tuple) else written, str(error))
    return None


def _null_reason(option: Option) -> str | None:
    """The error of Kafka's validator for null; it gets null for a value that can't be parsed, too."""
    match option.validator:
        case AtLeast():
            return None if option.default is None else "Value must be non-null"
        case UniqueAliases() | NonNull():
            return "entry must be non null"
        case OneOf(choices):
            return f"String must be one of: {', '.join(choices)}"
        case OneOfAnyCase(choices):
            return _one_of_any_case(choices)
        case _:
            return None


def _one_of_any_case(choices: Iterable[str]) -> str:
    return f"String must be one of (case insensitive): {', '.join(choices)}"


def _list_error(name: str, validator: DistinctItems, value: Value) -> str | None:
    """The error of Kafka's ValidList, which has its own messages (KIP-1161)."""
    if value is None:
        return f"Configuration '{name}' values must not be null."
    assert isinstance(value, tuple)
    if not value and not validator.may_be_empty:
        choices = f"[{', '.join(validator.choices)}]" if validator.choices else "any non-empty value"
        return f"Configuration '{name}' must not be empty. Valid values include: {choices}"
    if len(set(value)) < len(value):
        return f"Configuration '{name}' values must not be duplicated."
    if "" in value:
        return f"Configuration '{name}' values must not be empty."
    strange = next((item for item in value if validator.choices and item not in validator.choices), None)
    if strange is None:
        return None
    return _invalid(name, strange, f"String must be one of: {', '.join(validator.choices)}")


def _class(option: Option, text: str, given: Given) -> ConfigValue:
    name, class_name, written = option.name, text.strip(JAVA_WHITESPACE), given.shown(option.name)
    is_resolved = given.is_resolved(name)
    if name in _CONVERTERS:
        reason = converter_error(class_name)
        if is_resolved and reason is not None:
            reason = converter_error(written)
        found = ConfigValue(name, written if is_resolved else converter_class(class_name))
        return found if reason is None else found.with_error(_invalid(name, written, reason))
    reason = class_problem(name, class_name, given.modules)
    if reason is None:
        return ConfigValue(name, written if is_resolved else class_name)
    if is_resolved:
        reason = _UNUSABLE
    error = _invalid(name, written, f"Class {written} could not be found. {reason}")
    return ConfigValue(name, errors=(error,))
