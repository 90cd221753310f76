"""Compares the states that a mirror shows with both clusters, while faults are injected and afterwards.

What is written to the source and does not arrive must be said, as soon as time-outs and intervals allow; when
everything flows again, nothing may be said to be wrong.
"""

import json
import os
import re
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.error import URLError
from urllib.parse import quote
from urllib.request import urlopen

from sparkmirror.cli.exit_codes import FINE, of_word
from sparkmirror.metrics.looks import CUT_OFF_AFTER_S
from sparkmirror.metrics.task_meter import SILENT_AFTER_S
from sparkmirror.view.words import Word
from tests.faults.stalls import EndOffsets
from tests.faults.testbed import ALIAS, PYTHON_PATH, REQUEST_TIMEOUT_S, TOPIC, DrillTestbed
from tests.support.background import BackgroundWatch
from tests.support.mirror import COMMAND
from tests.support.waiting import await_value, patience

_LOOK_S: Final = 2.0
_INTERVALS_S: Final = 3.0
"""Tasks report once a second, the driver reads as often, and a view is made as often."""

LATE_S: Final = max(SILENT_AFTER_S, CUT_OFF_AFTER_S, 2 * REQUEST_TIMEOUT_S) + _INTERVALS_S
"""A task is known to be silent, no report is read, or a request is given up and another one backs off."""

_WELL_S: Final = 40.0
_ANSWER_S: Final = 10.0
_KEPT: Final = 500
_LAG: Final = re.compile(r"^sparkmirror_lag_records\{(.*)\} (\S+)$", re.MULTILINE)


class Ends(NamedTuple):
    """The ends of a partition on both sides at a time (monotonic)."""

    at: float
    source: int
    target: int


class WordWatch(BackgroundWatch):
    """Looks for as long as the block lasts. `wrong` has the words that were wrong, with the truth."""

    def __init__(self, testbed: DrillTestbed) -> None:
        super().__init__()
        self._testbed = testbed
        self._sides = [EndOffsets(side) for side in testbed.sides]
        self._ends: dict[int, deque[Ends]] = {}
        self._noted: dict[int, float] = {}
        """By partition: since when a record was missing, when a word about it was wrong."""
        self.wrong: list[str] = []
        self.looks = 0
        """The number of times that the mirror answered."""

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_S):
            before, asked_at = self._missing_since(), time.monotonic()
            said = said_by(self._testbed)
            if said is None:
                continue
            self.looks += 1
            for at, since in self._missing_since().items():
                is_late = asked_at - since > LATE_S * patience()
                if is_late and before.get(at) == since != self._noted.get(at):
                    self._judge(at, since, said)

    def _missing_since(self) -> Mapping[int, float]:
        """Return by partition since when the target lacks records."""
        self._note_ends()
        return {at: since for at, ends in self._ends.items() if (since := missing_since(ends)) is not None}

    def _note_ends(self) -> None:
        """Note the ends of partitions that both sides tell; a target that can't be asked may have grown."""
        at = time.monotonic()
        source, target = (side.read() for side in self._sides)
        for number in list(self._ends):
            if number not in target:
                del self._ends[number]
        for number in source.keys() & target.keys():
            of = self._ends.setdefault(number, deque(maxlen=_KEPT))
            of.append(Ends(at, source[number], target[number]))

    def _judge(self, at: int, since: float, said: "Said") -> None:
        word, lag, metric = said.words.get(at), said.lags.get(at), said.metrics.get(at)
        if word == Word.CAUGHT_UP or 0 in (lag, metric):
            self._noted[at] = since
            said_to_be = f"{TOPIC}-{at} is said to be {word}, lag {lag}, {metric} in metrics"
            lacking = f"for {time.monotonic() - since:.0f} s the target lacks what the source has"
            self.wrong.append(f"{time.strftime('%X')} {said_to_be}; {lacking}: {self._ends[at][-1]}")


def missing_since(ends: Sequence[Ends]) -> float | None:
    """When the source had at the latest what the target has not got: that has ended alike since before."""
    last = ends[-1]
    same = [each for each in reversed(ends) if each.target == last.target]
    same = same[
        : next((at for at, each in enumerate(reversed(ends)) if each.target != last.target), len(same))
    ]
    first = same[-1]
    return next((each.at for each in reversed(same) if each.source > first.source), None)


class Said(NamedTuple):
    """The states that the mirror shows: of the flow, and by partition of the topic."""

    flow: str
    words: Mapping[int, str]
    lags: Mapping[int, int | None]
    metrics: Mapping[int, float]
    texts: Sequence[str]


def said_by(testbed: DrillTestbed) -> Said | None:
    """Return the mirror's states, or None while it does not answer: it starts, has ended, or stands by."""
    url = testbed.pages_url()
    if url is None:
        return None
    with suppress(URLError, OSError, ValueError, KeyError):
        flow = quote(f"{ALIAS}->there")
        with urlopen(f"{url}/mirror?flow={flow}&partitions=true&size=1000", timeout=_ANSWER_S) as answer:
            (found,) = json.load(answer)["flows"]
        with urlopen(f"{url}/metrics", timeout=_ANSWER_S) as answer:
            return _said(found, answer.read().decode())
    return None


def _said(flow: Mapping[str, Any], metrics: str) -> Said:
    of_topic = [it for it in flow["partitions"]["items"] if it["topic"] == TOPIC]
    lags = {}
    for labels, value in _LAG.findall(metrics):
        number = re.search(r'partition="(\d+)"', labels)
        if f'topic="{TOPIC}"' in labels and number is not None:
            lags[int(number[1])] = float(value)
    return Said(
        flow["state"]["word"],
        {it["partition"]: it["state"]["word"] for it in of_topic},
        {it["partition"]: it["lag_records"] for it in of_topic},
        lags,
        [
            f"{it['topic']}-{it['partition']}: {it['state']}, lag {it['lag_records']}"
            for it in flow["partitions"]["items"]
            if of_word(Word(it["state"]["word"])) != FINE
        ],
    )


def await_well(testbed: DrillTestbed, *, caught_up: bool = False) -> None:
    """Wait until the mirror shows that nothing is wrong, and `status` from outside does.

    `caught_up`: nothing is left to copy either. Raises AssertionError with the words.
    """
    wrong = ["it does not answer"]

    def is_well() -> bool:
        said = said_by(testbed)
        if said is None:
            return False
        wrong[:] = said.texts
        if of_word(Word(said.flow)) != FINE:
            wrong.append(f"the flow is {said.flow}")
        if caught_up:
            wrong.extend(f"{TOPIC}-{at}: lag {lag}" for at, lag in said.lags.items() if lag != 0)
            wrong.extend(f"{TOPIC}-{at}: lag {lag} in /metrics" for at, lag in said.metrics.items() if lag)
        return not wrong

    await_value(is_well, _WELL_S, lambda: f"all is well, and the mirror says: {wrong}")
    file = str(testbed.properties_for_all)
    explain = ("topics", "explain", file, TOPIC, "--flow", f"{ALIAS}->there")
    for command in [("lag", file), explain] if caught_up else [("status", file)]:
        await_value(
            partial(_is_fine, command, wrong),
            _WELL_S,
            partial(_unwell, command, wrong),
        )


def _unwell(command: Sequence[str], said: Sequence[str]) -> str:
    return f"all is well, and {' '.join(command)} says: {said}"


def require_stopped(testbed: DrillTestbed) -> None:
    """A mirror that was stopped is not said to run."""
    said: list[str] = []
    code = _from_outside(("status", str(testbed.properties_for_all)), said)
    assert code != FINE, f"the mirror was stopped, and status ends with {code}: {said}"


def _is_fine(command: Sequence[str], said: list[str]) -> bool:
    return _from_outside(command, said) == FINE


def _from_outside(command: Sequence[str], said: list[str]) -> int:
    ended = subprocess.run(
        [COMMAND, *command],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": PYTHON_PATH},
    )
    said[:] = [f"exit code {ended.returncode}", ended.stdout[:3000], ended.stderr[-1000:]]
    return ended.returncode
