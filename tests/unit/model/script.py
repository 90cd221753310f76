"""A trace that a test chooses, step by step; every state of it is judged."""

from tests.model.copy_protocol import CopyProtocol, first_state
from tests.model.explore import judged
from tests.model.replay import move_named
from tests.model.rules import USUAL, Rules, Setting
from tests.model.state import COPY, DEAD, DONE, IDLE, Faults
from tests.model.steps import text_of
from tests.model.target_log import is_data
from tests.model.world import CONNECTIONS

STEPS_MAX = 200


class ViolationError(AssertionError):
    """The protocol has broken one of its properties."""


class Script:
    def __init__(self, rules: Rules, faults: Faults, *, records: int, setting: Setting = USUAL) -> None:
        self.protocol = CopyProtocol(rules, setting)
        self.state = first_state(faults, records=records, tasks=3)
        self.allowed = faults

    def do(self, *texts: str) -> None:
        for text in texts:
            move = move_named(self.protocol, self.state, text)
            assert move is not None, f"not possible: {text}"
            before, self.state = self.state, self.protocol.apply(self.state, move)
            found = judged(self.protocol, move, before, self.state, self.allowed)
            if found is not None:
                raise ViolationError(found)

    def can(self, text: str) -> bool:
        return move_named(self.protocol, self.state, text) is not None

    def resume(self, slot: int) -> None:
        """The task claims, looks up where to start, and is ready to copy."""
        if self.state.tasks[slot - 1].phase == IDLE:
            self.do(f"T{slot} begins")
        self._drive(slot, COPY)

    def resume_without_replication(self, slot: int) -> None:
        """Resume as far as the task comes while no follower does."""
        self.do(f"T{slot} begins")
        while self.state.tasks[slot - 1].phase != COPY:
            texts = [text_of(move) for move in self.protocol.moves(self.state)]
            possible = [text for text in texts if text.startswith((f"T{slot} ", "the coordinator"))]
            if not possible:
                return
            self.do(possible[0])

    def arrive(self) -> None:
        """The newest request arrives, and its records are replicated."""
        self.do(f"request {len(self.state.network) - 1} arrives")
        if self.can("the target's followers catch up"):
            self.do("the target's followers catch up")

    def write(self, slot: int, count: int = 1) -> None:
        """One batch is on the target, and not acknowledged."""
        self.do(f"T{slot} copies a batch of {count}")
        self.arrive()

    def copy(self, slot: int, count: int = 1) -> None:
        """One batch, from fetching it to the position behind it."""
        self.write(slot, count)
        self.do(f"T{slot} takes an acknowledgement", f"T{slot} stores its position")

    def finish(self, slot: int) -> None:
        """The task copies what is left, and all others stand still."""
        self.resume(slot)
        self._drive(slot, DONE)

    @property
    def target(self) -> list[int]:
        return [entry.record for entry in self.state.target.log if is_data(entry)]

    @property
    def incidents(self) -> set[str]:
        return {kind for kind, _, _ in self.state.incidents}

    def _drive(self, slot: int, phase: int) -> None:
        for _ in range(STEPS_MAX):
            at = self.state.tasks[slot - 1].phase
            if at in (phase, DEAD):
                assert at == phase, f"T{slot} has ended"
                return
            self.do(self._next(slot))
        raise AssertionError(f"T{slot} does not get there")

    def _next(self, slot: int) -> str:
        """Return the action that brings the task on; faults and other tasks don't happen by themselves."""
        texts = [text_of(move) for move in self.protocol.moves(self.state)]
        requests = [
            f"request {at} arrives"
            for at, request in enumerate(self.state.network)
            if request.connection // CONNECTIONS == slot
        ]
        own = [text for text in texts if text.startswith(f"T{slot} ")]
        others = [text for text in texts if text.startswith("the ")]
        return next(text for text in (*requests, *others, *own) if text in texts)
