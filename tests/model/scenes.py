"""Scenes: circumstances and faults, those of random walks and those that are explored exhaustively."""

from typing import Final, NamedTuple

from tests.model.copy_protocol import CopyProtocol, first_state
from tests.model.explore import Violation, walks
from tests.model.rules import Rules, Setting
from tests.model.state import Faults, State


class Scene(NamedTuple):
    setting: Setting
    faults: Faults
    records: int = 2
    tasks: int = 2

    @property
    def start(self) -> State:
        return first_state(self.faults, records=self.records, tasks=self.tasks)


_FAULTS: Final = Faults(
    append=3,
    control=2,
    compact=1,
    expire=1,
    elect=2,
    cut=2,
    foreign=1,
    fail_over=1,
    retain=2,
    restamp=1,
    mark_again=1,
    drop=1,
    silence=1,
    resend=2,
    crash=2,
    stop=1,
    renew=1,
    again=3,
    expire_id=1,
)

ENDS: Final = 16
"""Walks with one beginning: it costs most of the steps, and most of what is found shows at an end."""

WALKS: Final[dict[str, Scene]] = {
    "usual faults": Scene(Setting(), _FAULTS, records=3, tasks=3),
    "the target is truncated": Scene(Setting(), _FAULTS._replace(truncate=1), records=3, tasks=3),
    "old records": Scene(Setting(), _FAULTS._replace(forget=2), records=3, tasks=3),
}

_ONE_BY_ONE: Final = Setting(batch_max=1)

SCOPES: Final[dict[str, Scene]] = {
    "two tasks": Scene(_ONE_BY_ONE, Faults(again=1), records=1),
    "stopped and started": Scene(_ONE_BY_ONE, Faults(stop=2, crash=1), records=1),
    "renewed": Scene(_ONE_BY_ONE, Faults(renew=1), records=1),
    "requests lost and sent again": Scene(_ONE_BY_ONE, Faults(drop=1, resend=1), tasks=1),
    "gaps": Scene(Setting(), Faults(compact=1, crash=1), records=3),
    "source truncated and expired": Scene(Setting(window=1), Faults(cut=1, append=1, expire=1, crash=1)),
    "target truncated": Scene(_ONE_BY_ONE, Faults(truncate=1, foreign=1)),
    "target expired and failed over": Scene(_ONE_BY_ONE, Faults(retain=1, crash=1, fail_over=1)),
    "old records": Scene(_ONE_BY_ONE, Faults(forget=1, silence=1)),
    "producer id changes": Scene(Setting(batch_max=1, epoch_max=2), Faults(expire_id=1, crash=1), records=1),
}


def walks_from(seed: int, rules: Rules, ends: int = ENDS) -> tuple[CopyProtocol, Violation | None]:
    """So many walks with one beginning. Scenes take turns.

    Two attempts without a fence may fill the place of what a target lost, and hide that: it loses nothing.
    """
    scenes = [each for each in WALKS.values() if not (rules.repeats and each.faults.truncate)]
    scene = scenes[seed % len(scenes)]
    protocol = CopyProtocol(rules, scene.setting)
    return protocol, walks(protocol, scene.start, seed, ends)


def walks_to_catch(rules: Rules, first: int, walks: int) -> int | None:
    """Return how many walks it takes to find that the rules are wrong, each with another seed."""
    found = (count for count in range(1, walks + 1) if walks_from(first + count - 1, rules, 1)[1] is not None)
    return next(found, None)
