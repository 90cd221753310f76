"""What Connect's converters would make of MirrorMaker's records, which are bytes.

sparkmirror copies batches byte for byte, as ByteArrayConverter does. Whoever asks for another one by name is
refused, and whoever only inherits the worker's is told.
"""

from collections.abc import Mapping
from typing import Final

from sparkmirror.connect.validation.descriptions import BYTE_ARRAY_CONVERTER, without_package

_NUMBERS: Final = "takes no bytes, so that tasks would fail"
_EFFECTS: Final[Mapping[str, str]] = {
    "org.apache.kafka.connect.json.JsonConverter": "would write bytes as Base64 inside of JSON",
    "org.apache.kafka.connect.storage.StringConverter": "would write Java's name of an array, as [B@1b6d3586",
    "org.apache.kafka.connect.storage.SimpleHeaderConverter": "would write bytes as Base64",
    **{
        f"org.apache.kafka.connect.converters.{kind}Converter": _NUMBERS
        for kind in ("Boolean", "Double", "Float", "Integer", "Long", "Short")
    },
}
"""Of Connect's other converters, what each makes of a record that is bytes."""


def converter_class(text: str) -> str | None:
    """The class that a name stands for: itself, or that without package, or without "Converter" too."""
    for known in (BYTE_ARRAY_CONVERTER, *_EFFECTS):
        simple = without_package(known)
        short = simple.removesuffix("HeaderConverter").removesuffix("Converter")
        if text in (known, simple, short, simple.removesuffix("Converter")):
            return known
    return None


def converter_effect(text: str) -> str | None:
    """What Java would make of records with this converter; None if it leaves them as they are."""
    known = converter_class(text)
    if known == BYTE_ARRAY_CONVERTER:
        return None
    return _EFFECTS[known] if known else "is a Java class that is not known here"


def converter_error(text: str) -> str | None:
    """Why a connector can't have this converter; None if it can."""
    known = converter_class(text)
    if known == BYTE_ARRAY_CONVERTER:
        return None
    instead = f"Use {BYTE_ARRAY_CONVERTER}: records are copied byte for byte."
    if known is None:
        return f"Class {text} could not be found. {instead}"
    return f"{without_package(known)} {_EFFECTS[known]}. {instead}"
