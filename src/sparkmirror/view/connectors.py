"""Decides the word of a connector: of its own trouble, of what it copies, or of when it last wrote."""

from sparkmirror.domain.quantities import as_ago
from sparkmirror.domain.troubles import Subject, Trouble, action_required, by_cause, cause_line
from sparkmirror.metrics.looks import (
    CUT_OFF_AFTER_S,
    ConnectorLook,
    GroupsLook,
    HeartbeatLook,
    SourceLook,
    StandingLook,
)
from sparkmirror.view.causes import not_running
from sparkmirror.view.conditions import condition_of_standstill
from sparkmirror.view.values import State
from sparkmirror.view.words import Word

_INTERVALS_MISSED_MAX = 3
_DO_IT = "do what the error says"


def connector_state(look: ConnectorLook, topics: State, at: float) -> State:
    """`topics` is that of the topics of its flow, `at` in epoch seconds."""
    state = _state(look, topics, at)
    return state if state.error is not None else state._replace(error=look.unread)


def _state(look: ConnectorLook, topics: State, at: float) -> State:
    if isinstance(look, StandingLook):
        return _standing(look)
    if look.trouble is not None:
        return not_running(look) or State(Word.ACTION_REQUIRED, error=look.trouble, advice=_DO_IT)
    worst = action_required(look.troubles)
    if worst is not None:
        return _troubled(Word.ACTION_REQUIRED, look, worst, at)
    waiting = next((it for it in look.troubles if it.cause.subject is Subject.TASK), None)
    if topics.word is Word.UNKNOWN and waiting is not None:
        return _troubled(Word.UNKNOWN, look, waiting, at)
    return _working(look, topics)


def _troubled(word: Word, look: ConnectorLook, worst: Trouble, at: float) -> State:
    of = by_cause(look.troubles)[worst.cause]
    since_s = max(0.0, at - min(it.since for it in of))
    return State(word, since_s, cause_line(of), worst.remedy or _DO_IT)


def _working(look: ConnectorLook, topics: State) -> State:
    match look:
        case SourceLook():
            return _source(look, topics)
        case GroupsLook():
            return _periodic(look, look.age_s, look.interval_s, "checkpoints")
        case HeartbeatLook(emits=True):
            return _periodic(look, look.age_s, look.interval_s, "heartbeats")
    return State(Word.CAUGHT_UP, advice="emit.heartbeats.enabled is false")


def _standing(look: StandingLook) -> State:
    if look.standstill == "starting":
        return State(Word.STARTING, advice=_waits(look.waits_for))
    if look.standstill == "standby":
        return State(Word.STANDBY, advice=look.waits_for or "")
    condition = condition_of_standstill(look.standstill)
    return State(condition.word, error=look.trouble, advice=condition.advice)


def _source(look: SourceLook, topics: State) -> State:
    if look.partitions is None:
        if look.unread is not None:
            return State(Word.UNKNOWN, error=look.unread)
        return State(Word.STARTING, advice=_waits(look.waits_for))
    if not look.partitions and not look.promoted:
        return State(Word.CAUGHT_UP, advice="no topic of the source matches its filters")
    return State(topics.word)


def _waits(what: str | None) -> str:
    return f"waits for {what or 'its topics to be listed and made'}"


def _periodic(look: ConnectorLook, age_s: float | None, interval_s: float, what: str) -> State:
    if age_s is None:
        word = Word.STARTING if look.unread is None else Word.UNKNOWN
        return State(word, advice=f"no {what} were written yet")
    if age_s < -CUT_OFF_AFTER_S:
        return State(Word.UNKNOWN, advice=f"its last {what} are dated {as_ago(age_s)}: set the clocks right")
    if age_s > _INTERVALS_MISSED_MAX * interval_s + CUT_OFF_AFTER_S:
        return State(Word.RETRYING, age_s, advice=f"no {what} were written since: the log has the error")
    return State(Word.CAUGHT_UP)
