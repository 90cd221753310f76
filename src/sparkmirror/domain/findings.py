"""Defines a finding: what is said about a file, a connector's config or a plan before anything runs. Pure."""

from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    BLOCKS = "blocks"
    """Something that is configured can't be done."""
    WARNS = "warns"
    """The configuration can be applied, and is perhaps not what was intended."""
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Finding:
    """`remedy` is what to do: a command, or a setting and its value; empty where there is nothing to do.

    `line` is that of the file, where the finding is about one value of one.
    """

    kind: str
    severity: Severity
    subject: str
    text: str
    remedy: str = ""
    line: int | None = None

    def __str__(self) -> str:
        where = self.subject if self.line is None else f"{self.subject} (line {self.line})"
        return f"{where}: {self.text}" + (f": {self.remedy}" if self.remedy else "")
