from dataclasses import replace
from itertools import product
from math import isnan, nan
from typing import Any

import pytest

from sparkmirror.cli.exit_codes import exit_codes, of_word
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.metrics.looks import Motion, PartitionLook, Standstill
from sparkmirror.metrics.partition_table import table_of
from sparkmirror.storage.progress import PartitionState
from sparkmirror.storage.promotions import Promotion, Stage
from sparkmirror.view.conditions import CONDITIONS, Condition, Situation, conditions_of
from sparkmirror.view.partitions import Partitions
from sparkmirror.view.words import CALM, VERDICTS, WORDS, Word, are_healthy, is_fine, worst_of
from tests.support.mirror_looks import behind, look, source
from tests.support.states_table import PAGE, with_table

UNREPORTED = PartitionLook(TopicPartition("orders", 0), 0)
FAILED = look(reported={"state": PartitionState.FAILED, "error": "no", "lag": 3})
PROMOTED = PartitionLook(TopicPartition("orders", 0), None, promotion=Promotion(Stage.PROMOTED, 0, b"", {}))
STALLED = look(reported={"lag": 3}, lag_s=70.0, is_stalled=True)


def situation(
    partition: PartitionLook, standstill: Standstill | None = None, report_age_s: float | None = 0.0
) -> Situation:
    age_s = nan if report_age_s is None else report_age_s
    return Situation(table_of([partition]).columns, standstill, age_s)


def condition_of(one: Situation) -> Condition:
    (at,) = conditions_of(one)
    return CONDITIONS[at]


def lag_of(one: Situation) -> float | None:
    (lag,) = one.lag
    return None if isnan(lag) else lag


EXAMPLES = {
    "its topic is promoted": (situation(PROMOTED, None, nan), Word.PROMOTED),
    "its connector failed": (situation(look(), "failed"), Word.ACTION_REQUIRED),
    "its connector is paused": (situation(look(), "paused"), Word.PAUSED),
    "its connector, or the mirror, was stopped in order": (situation(look(), "stopped"), Word.STOPPED),
    "it has lag, and the mirror does not run": (
        situation(look(reported={"lag": 1}, lag_s=0.5))._replace(is_dead=True),
        Word.ACTION_REQUIRED,
    ),
    "its copy job has just begun, and its task has not reported it": (
        situation(UNREPORTED)._replace(begins=True),
        Word.STARTING,
    ),
    "no report has been read for 10 s": (situation(FAILED, None, 10.1), Word.UNKNOWN),
    "the opposite flow has copied its source from its target": (
        situation(look(reported={"state": PartitionState.STANDBY, "error": "it waits"})),
        Word.STANDBY,
    ),
    "the task reports a failure": (situation(FAILED), Word.ACTION_REQUIRED),
    "the task has not reported it, or reports nothing for 25 s": (situation(UNREPORTED), Word.UNKNOWN),
    "the task retries": (
        situation(look(reported={"state": PartitionState.RETRYING, "error": "away", "lag": 0})),
        Word.RETRYING,
    ),
    "it has lag, or its end is not known, and a quota throttles its task": (
        situation(STALLED._replace(target_throttled=0.83)),
        Word.THROTTLED,
    ),
    "it has lag, no progress for a minute, and no error": (situation(STALLED), Word.STALLED),
    "the source's end is not known": (situation(look(reported={"lag": None})), Word.UNKNOWN),
    "the lag is 0, or 5 s at most": (situation(look(reported={"lag": 9}, lag_s=4.9)), Word.CAUGHT_UP),
    "the lag shrinks": (situation(behind("orders", 0, 900, closed=100)), Word.CATCHING_UP),
    "the lag grows": (situation(behind("orders", 0, 900, closed=-1)), Word.FALLING_BEHIND),
}


def test_every_condition_of_the_table_has_an_example() -> None:
    assert list(EXAMPLES) == [condition.name for condition in CONDITIONS]


def test_partitions_get_their_words_together_as_they_do_alone() -> None:
    states = (None, *PartitionState)
    looks = []
    for state, lag, silent, stalled in product(states, (None, 0, 9), (False, True), (False, True)):
        reported = UNREPORTED if state is None else look(reported={"state": state, "lag": lag}, lag_s=7.0)
        looks.append(reported._replace(is_silent=silent, is_stalled=stalled))
    standstills: tuple[Standstill | None, ...] = (None, "failed", "paused", "stopped", "starting", "standby")
    for standstill, age_s in product(standstills, (nan, 0.5, 11.0)):
        together = conditions_of(Situation(table_of(looks).columns, standstill, age_s))
        alone = [condition_of(situation(each, standstill, age_s)) for each in looks]
        assert [CONDITIONS[at] for at in together] == alone


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_situation_gets_the_word_of_its_condition(name: str) -> None:
    of, word = EXAMPLES[name]
    condition = condition_of(of)
    assert (condition.name, condition.word) == (name, word)


def test_every_state_that_is_not_calm_has_advice() -> None:
    calm = (Word.CAUGHT_UP, Word.CATCHING_UP)
    assert all(condition.advice for condition in CONDITIONS if condition.word not in calm)


def test_a_position_that_may_be_a_minute_old_is_given_that_minute() -> None:
    assert condition_of(situation(look(reported={"lag": 9}, lag_s=64.0, slack_s=60.0))).word is Word.CAUGHT_UP
    assert (
        condition_of(situation(look(reported={"lag": 9}, lag_s=66.0, slack_s=60.0))).word is Word.CATCHING_UP
    )


@pytest.mark.parametrize(
    "change",
    [{"lag": None}, {"lag": 0, "error": "away"}, {"lag": None, "error": "away"}],
)
def test_what_is_not_known_is_no_lag_of_0(change: dict[str, Any]) -> None:
    unknown = situation(look(reported=change))
    assert lag_of(unknown) is None
    assert condition_of(unknown).word is not Word.CAUGHT_UP


def test_nothing_is_known_while_no_report_is_read() -> None:
    assert [lag_of(situation(look(), None, age_s)) for age_s in (None, 10.1, 9.9)] == [None, None, 0]


def test_a_lag_that_was_just_seen_is_no_fall_behind() -> None:
    early = behind("orders", 0, 900, closed=-1)._replace(motion=Motion(1.0, -1))
    assert condition_of(situation(early)).word is Word.CATCHING_UP


def test_an_error_without_lag_keeps_its_words() -> None:
    known = look().report
    assert known is not None
    retrying = look()._replace(report=replace(known, state=PartitionState.RETRYING, error="away"))
    assert condition_of(situation(retrying)).word is Word.RETRYING


@pytest.mark.parametrize(
    ("words", "code", "is_healthy"),
    [
        ([Word.ACTION_REQUIRED, Word.STALLED, Word.RETRYING], 1, False),
        ([Word.UNKNOWN], 2, False),
        ([Word.STARTING], 2, None),
        ([Word.STOPPED, Word.PAUSED], 1, True),
        ([Word.THROTTLED, Word.FALLING_BEHIND, *CALM], 0, True),
    ],
)
def test_exit_codes_and_health_follow_from_the_word(
    words: list[Word], code: int, *, is_healthy: bool | None
) -> None:
    assert {of_word(word) for word in words} == {code}
    assert {are_healthy([word]) for word in words} == {is_healthy}


def test_the_documented_exit_code_names_every_word_that_is_fine() -> None:
    said = exit_codes("status")[0]
    assert {word for word in Word if word in said} == {word for word in Word if is_fine(word)}


def test_every_word_has_a_verdict() -> None:
    assert list(VERDICTS) == list(WORDS) == list(Word)


def test_a_word_that_is_fine_hides_none_that_is_not() -> None:
    """A flow has the worst word of its parts, and its exit code by that."""
    fine = [is_fine(word) is True for word in Word]
    assert fine == sorted(fine)


def test_what_is_calm_is_fine_and_what_is_fine_is_healthy() -> None:
    assert all(is_fine(word) for word in CALM)
    assert are_healthy(word for word in Word if is_fine(word))


def test_what_is_not_healthy_counts_more_than_what_starts() -> None:
    assert are_healthy([Word.STARTING, Word.RETRYING]) is False
    assert are_healthy([Word.STARTING, Word.CAUGHT_UP]) is None
    assert are_healthy([]) is True


def test_the_worst_word_is_that_of_the_whole() -> None:
    assert worst_of(Word) is Word.ACTION_REQUIRED
    assert worst_of([Word.CAUGHT_UP, Word.PAUSED]) is Word.PAUSED
    assert worst_of([Word.CATCHING_UP, Word.UNKNOWN, Word.CAUGHT_UP]) is Word.UNKNOWN
    assert worst_of([]) is Word.UNKNOWN


def test_the_documented_table_is_the_one_that_decides() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text == with_table(text), "python -m tests.support.states_table"


@pytest.mark.parametrize(
    ("one", "word"),
    [
        (look(reported={"lag": None}, source_throttled=0.5), Word.THROTTLED),
        (look(reported={"lag": 9}, lag_s=60.0, source_throttled=0.1), Word.THROTTLED),
        (look(reported={"lag": 9}, lag_s=60.0, target_throttled=0.09), Word.CATCHING_UP),
        (look(reported={"lag": 0}, target_throttled=1.0), Word.CAUGHT_UP),
        (FAILED._replace(target_throttled=1.0), Word.ACTION_REQUIRED),
    ],
)
def test_a_partition_that_gets_nothing_for_a_quota_is_not_stalled_nor_caught_up(
    one: PartitionLook, word: Word
) -> None:
    assert condition_of(situation(one)).word is word


def test_the_cluster_that_throttles_is_named_with_its_share() -> None:
    made = Partitions([source(STALLED._replace(target_throttled=0.83, source_throttled=0.05))])
    assert made.state(0).advice.startswith("by b (83 % of the last minute): ")
