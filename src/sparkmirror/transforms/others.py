"""Says why a class of Java's is no transform here, and which function does the same. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

_STRUCTURE: Final = "works on the fields of a structure, and the keys and values of a mirror are bytes"
_FUNCTIONS: Final[Mapping[str, str]] = {
    "Cast": "parse the value and write it with the other type",
    "ExtractField": "parse the value and return the field in its place",
    "Flatten": "parse the value and write its nested fields side by side",
    "HeaderFrom": "parse the value and return the column headers with the field",
    "HoistField": "put the value into a structure with one field",
    "InsertField": "parse the value and add the field; offset, partition and timestamp are columns",
    "MaskField": 'records.set_column(1, records.schema.field("value"), pyarrow.compute.'
    'replace_substring_regex(records.column("value"), pattern, replacement))',
    "ReplaceField": "parse the value and write it without the field",
    "SetSchemaMetadata": "write the schema's id into the value's first bytes",
    "TimestampConverter": "parse the value and write the time in the other format",
    "ValueToKey": "parse the value and return the column key with the field",
}
"""The work that a function does in place of each of Java's transforms."""

_ONE_TOPIC: Final = (
    "gives records of one topic to several topics: a mirrored topic has one copy, with the positions and "
    "groups of its source"
)


def refusal_of(name: str, head: str, kind: str, known: Iterable[str]) -> str:
    """The reason why this class is not there. `head` is the key before `.type`."""
    simple = name.rpartition(".")[2].partition("$")[0]
    if simple == "TimestampRouter":
        return _ONE_TOPIC
    if simple in _FUNCTIONS:
        return (
            f"{_STRUCTURE}. A function does it ({head}.type=sparkmirror.transforms.Function, "
            f"{head}.function=package.module:name): {_FUNCTIONS[simple]}"
        )
    others = ", ".join(each.rpartition(".")[2] for each in known)
    return f"is no {kind} here, where no Java runs. There are {others}"
