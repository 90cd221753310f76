"""One option's value as Kafka's ConfigDef validates it: parsed, judged, and with all that is wrong with it.

A value that can't be parsed is judged as null, so one mistake may be told twice; Connect answers so too.
"""

from collections.abc import Iterable
from typing import Final

from sparkmirror.config.definitions import JAVA_WHITESPACE, Option, Required, Type, Value
from sparkmirror.config.validators import AtLeast, DistinctItems, OneOf, OneOfAnyCase, UniqueAliases
from sparkmirror.connect.validation.classes import class_problem
from sparkmirror.connect.validation.converters import converter_class, converter_error
from sparkmirror.connect.validation.descriptions import shown
from sparkmirror.connect.validation.given import Given
from sparkmirror.connect.validation.infos import ConfigValue

_CONVERTERS: Final = ("key.converter", "value.converter", "header.converter")


def judged(option: Option, default: str | None, given: Given) -> ConfigValue:
    """What `given` says for an option; `default` is how Connect shows its default."""
    name = option.name
    if name not in given:
        if isinstance(option.default, Required):
            return ConfigValue(name).with_error(
                f'Missing required configuration "{name}" which has no default value.'
            )
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
    # What stands behind a placeholder is not for whoever may ask.
    text_shown = written if given.is_resolved(name) else shown(value)
    return _rejected(ConfigValue(name, text_shown), option, value, str(text_shown))


def _invalid(name: str, written: str, reason: str) -> str:
    """The text of Kafka's ConfigException."""
    return f"Invalid value {written} for configuration {name}: {reason}"


def _rejected(found: ConfigValue, option: Option, value: Value, written: str) -> ConfigValue:
    """With what the option's validator says of the value, if it says anything."""
    error = _validator_error(option, value, written)
    return found if error is None else found.with_error(error)


def _validator_error(option: Option, value: Value, written: str) -> str | None:
    name, validator = option.name, option.validator
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
    """What Kafka's validator of this kind says of null, which it is given for what can't be parsed too."""
    match option.validator:
        case AtLeast():
            return None if option.default is None else "Value must be non-null"
        case UniqueAliases():
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
    """Of Kafka's ValidList, which has sentences of its own (KIP-1161)."""
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
    if name in _CONVERTERS:
        reason = converter_error(class_name)
        found = ConfigValue(name, converter_class(class_name))
        return found if reason is None else found.with_error(_invalid(name, written, reason))
    reason = class_problem(name, class_name)
    if reason is None:
        return ConfigValue(name, class_name)
    if given.is_resolved(name):
        reason = "what stands behind the placeholder can't be used"
    error = _invalid(name, written, f"Class {written} could not be found. {reason}")
    return ConfigValue(name, errors=(error,))
