"""The rights that logs and errors ask for by their `kafka-acls.sh` lines, and the ACLs that give them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from sparkmirror.domain.acls import AclBinding, AclOperation, PatternType
from sparkmirror.domain.rights import Right, grant_command
from sparkmirror.kafka.admin.admin import Admin
from tests.support.connections import connection
from tests.support.rights_page import Side, binding
from tests.support.secured_broker import USER, SecuredBroker, secured_broker

COMMAND: Final = "kafka-acls.sh"

Sides = Mapping[Side, SecuredBroker]
Needed = tuple[Side, Right]


@contextmanager
def guarded_sides(folder: Path) -> Iterator[Sides]:
    """Two brokers that let a user do nothing without an ACL."""
    with (
        secured_broker(folder / "source", guarded=True) as source,
        secured_broker(folder / "target", guarded=True) as target,
    ):
        yield {Side.SOURCE: source, Side.TARGET: target}


def allow(sides: Sides, rights: Iterable[Needed]) -> None:
    for side, bindings in _by_side(rights):
        with closing(Admin(connection(sides[side].cluster))) as admin:
            assert set(admin.create_acls(bindings).values()) <= {None}


def take_back(sides: Sides, rights: Iterable[Needed]) -> None:
    for side, bindings in _by_side(rights):
        with closing(Admin(connection(sides[side].cluster))) as admin:
            assert set(admin.delete_acls(bindings).values()) <= {None}


def _by_side(rights: Iterable[Needed]) -> Iterator[tuple[Side, list[AclBinding]]]:
    every = list(rights)
    for side in Side:
        yield side, [binding(right, f"User:{USER}") for at, right in every if at is side]


def seen(needed: Needed) -> Needed:
    """Return the right to describe it, which brokers check first."""
    side, right = needed
    return side, replace(right, operation=AclOperation.DESCRIBE)


def asked_lines(text: str) -> list[str]:
    """The commands that a log names."""
    return [line[line.index(COMMAND) :] for line in text.splitlines() if COMMAND in line]


def is_asked(needed: Needed, lines: Sequence[str], sides: Sides) -> bool:
    """Whether a line asks for it; for a prefix also by one name that begins with it, as requests do."""
    side, right = needed
    whole = grant_command(right, ".*", f".*:{sides[side].ports['LOGIN']}")
    if right.pattern_type is PatternType.PREFIXED:
        whole = whole.replace(f"{right.name} --resource-pattern-type prefixed", f"{right.name}.*")
    pattern = re.compile(whole.replace("'", "") + r"(?![\w.-])")
    return any(pattern.match(line) for line in lines)


def grant_asked(wanted: list[Needed], lines: Sequence[str], sides: Sides) -> None:
    """Allow what the lines ask for, and take it out of `wanted`."""
    for needed in list(wanted):
        if is_asked(seen(needed), lines, sides):
            allow(sides, [seen(needed)])
        if is_asked(needed, lines, sides):
            allow(sides, [needed])
            wanted.remove(needed)


def foreign(listed: Iterable[Needed], lines: Sequence[str], sides: Sides) -> list[str]:
    """Commands for what is not listed. DESCRIBE is part of READ and others."""
    known = [each for needed in listed for each in (needed, seen(needed))]
    return [line for line in lines if not any(is_asked(needed, [line], sides) for needed in known)]
