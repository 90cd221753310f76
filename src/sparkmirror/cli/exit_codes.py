"""Declares the exit codes of every command, for help, the reference page, and the commands. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from sparkmirror.view.words import Word, is_fine

FINE: Final = 0
NOT_FINE: Final = 1
"""An operator has to act, or the condition does not hold yet: a partition fails, a mirror is behind."""
CANNOT_TELL: Final = 2
"""Wrong usage, a file that can't be used, a cluster or URL that can't be read, a lag that is not known."""
NOT_BEGUN: Final = 3
INTERRUPTED: Final = 130
READER_GONE: Final = 141
"""The reader of the output has ended, as in `| head -1`: the code of programs that SIGPIPE ends."""

OF_EVERY_COMMAND: Final[Mapping[int, str]] = {
    0: "done",
    1: "failed; the error says why",
    2: "wrong usage, an unusable file, a cluster that can't be read, or no Java or Spark",
    INTERRUPTED: "interrupted by Ctrl-C",
}
"""Unless a command has its own meaning of a code."""

_STEPS: Final = {
    0: "done, or a plan that can be carried out",
    1: "not possible, or not within the timeout",
    2: "wrong usage, or a cluster that can't be reached",
}
_CONNECT: Final = {
    0: "done; status: everything runs",
    1: "refused by the API, or not in the wanted state",
    2: "wrong usage, an unusable file, or a Connect REST API that can't be reached",
}

_OF_COMMANDS: Final[Mapping[str, Mapping[int, str]]] = {
    "run": {
        0: "stopped in order",
        2: "bad file or settings, no Java or Spark, or another mirror holds the group of a flow",
        3: "could not start",
        255: "wrong usage, as connect-mirror-maker.sh",
    },
    "plan": {
        0: "nothing blocks; with --detailed-exitcode nothing to change either",
        1: "something blocks; with --detailed-exitcode also what is 2 without it",
        2: "wrong usage, an unusable file, or a cluster or worker that can't be reached; with "
        "--detailed-exitcode there are changes (records that are left to copy are none)",
    },
    "status": {
        0: "every flow is caught up, catching up, throttled, falling behind, standby or promoted",
        1: "a flow is not; the API refuses",
        2: "it can't be told, or wrong usage",
    },
    "top": {0: "quit", 2: "wrong usage, no terminal, or nothing that can be read"},
    "watch": {
        0: "stopped by Ctrl-C or SIGTERM",
        2: "wrong usage, an unusable file, or an address that can't be used",
    },
    "lag": {
        0: "caught up",
        1: "behind, or an operator has to act; with --wait still so after the timeout",
        2: "it can't be told: a cluster or the URL can't be read, or the flow has not begun with a "
        "partition; or wrong usage",
    },
    "events": {0: "printed", 2: "wrong usage, or a cluster can't be read"},
    "verify": {
        0: "equal",
        1: "different",
        2: "wrong usage, unreachable, or nothing to compare",
        3: "equal as far as it is mirrored, but the flow has not begun with partitions that hold records",
    },
    "migrate": _STEPS,
    "promote": _STEPS,
    "failback": _STEPS,
    "offsets": _STEPS,
    "groups": {0: "the group's offsets are synced", 1: "not all of them are"},
    "translate-offsets": {
        0: "found",
        1: "no checkpoint of any of the groups; a partition of a query begins at the earliest offset",
    },
    "group-offset-sync": {
        0: "the group is at its checkpoints, or the command was stopped",
        1: "the last pass could not sync it: members, no checkpoint, a refusal, an unreachable cluster",
        2: "wrong usage",
    },
    "topics": {0: "listed; with explain: it is mirrored", 1: "with explain: not mirrored, or not all of it"},
    "worker": {
        0: "stopped in order",
        1: "the node failed",
        2: "bad file or settings, wrong usage, or no Java or Spark",
    },
    "connectors": _CONNECT,
    "deploy": _CONNECT,
    "redeploy": _CONNECT,
    "undeploy": _CONNECT,
    "demo": {
        0: "both clusters have the same records; with --shop: stopped in order",
        1: "they differ, or it failed",
        2: "no Java or Spark; with --shop: wrong usage, or a cluster that can't be reached",
    },
    "clusters": {
        0: "done; status: every broker is up",
        1: "failed; status: a broker is down",
        2: "wrong usage, or no Java",
    },
    "transform": {
        0: "shown",
        1: "a transform fails with a record",
        2: "wrong usage, an unusable file, or a cluster can't be read",
    },
    "convert": {
        0: "everything is converted",
        1: "something was left out",
        2: "wrong usage, or an unusable file",
    },
}


def exit_codes(command: str) -> Mapping[int, str]:
    """Return what each code of a command means, in ascending order."""
    return dict(sorted({**OF_EVERY_COMMAND, **_OF_COMMANDS.get(command, {})}.items()))


def paragraph(command: str) -> str:
    """The codes as a block of help."""
    return "\n".join(["exit codes:", *(f"  {code:<3}  {text}" for code, text in exit_codes(command).items())])


def of_answer(*, answer: bool | None) -> int:
    """The code of a command that tells whether something holds; None where that can't be told."""
    return CANNOT_TELL if answer is None else FINE if answer else NOT_FINE


def of_word(word: Word) -> int:
    """The code of a command that tells how something is."""
    return of_answer(answer=is_fine(word))


def of_all(codes: Iterable[int]) -> int:
    """Join exit codes: a known failure counts more than what can't be told."""
    found = set(codes)
    return next((code for code in (NOT_FINE, CANNOT_TELL) if code in found), FINE)
