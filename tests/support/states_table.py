"""Writes the table of states into `docs/troubleshooting.md`: python -m tests.support.states_table."""

import re
from pathlib import Path
from typing import Final

from sparkmirror.view.conditions import CONDITIONS

PAGE: Final = Path(__file__).parents[2] / "docs" / "troubleshooting.md"
_TABLE: Final = re.compile(r"(?<=<!-- states: begin -->\n).*?(?=<!-- states: end -->)", re.DOTALL)


def with_table(text: str) -> str:
    rows = ["| condition | state | what to do |", "|---|---|---|"]
    rows += [f"| {each.name} | **{each.word}** | {each.advice} |" for each in CONDITIONS]
    return _TABLE.sub(lambda _: "\n".join([*rows, ""]), text)


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
