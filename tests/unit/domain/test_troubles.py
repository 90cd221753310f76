import pytest

from sparkmirror.domain.quantities import some_of
from sparkmirror.domain.troubles import (
    Cause,
    Subject,
    Trouble,
    TroubleWord,
    action_required,
    by_cause,
    trouble_lines,
)


def refused(topic: str, word: TroubleWord = TroubleWord.NOT_CREATED) -> Trouble:
    name = f"A.{topic}"
    cause = Cause.of(word, Subject.TOPIC, name, f"create topic {name} on B: no", f"allow --topic {name}")
    return Trouble(cause, topic, name)


def test_things_of_one_cause_are_told_together_whatever_they_are_called() -> None:
    troubles = [refused(topic) for topic in ("t", "orders", "a", "A", "create", "B", "no")]
    assert len(by_cause(refused(f"t{number}") for number in range(5000))) == 1
    assert trouble_lines(refused(f"t{number:04}") for number in range(5000)) == [
        f"{some_of([f't{number:04}' for number in range(5000)])} not created: {refused('t0000').text}"
    ]
    assert [it.text for it in troubles[:2]] == [
        "create topic A.t on B: no; allow --topic A.t",
        "create topic A.orders on B: no; allow --topic A.orders",
    ]


@pytest.mark.parametrize("name", ["o", "on", "B", "create", "a.b", "x" * 249, "[", "A.no"])
def test_a_text_is_that_of_its_thing_also_where_the_name_is_a_word_of_it(name: str) -> None:
    reason = f"create topic {name} on B: no"
    cause = Cause.of(TroubleWord.BLOCKED, Subject.TOPIC, name, reason)
    assert Trouble(cause, name).reason == reason


@pytest.mark.parametrize("word", TroubleWord)
def test_what_passes_by_itself_or_only_differs_requires_no_action(word: TroubleWord) -> None:
    is_calm = word in (TroubleWord.THROTTLED, TroubleWord.WAITING, TroubleWord.DIFFERS, TroubleWord.SHARED)
    assert refused("orders", word).requires_action is not is_calm
    found = action_required([refused("a", TroubleWord.WAITING), refused("b", word)])
    assert (found is None) is is_calm


def test_the_worst_comes_first() -> None:
    troubles = [refused("a", TroubleWord.THROTTLED), refused("b"), refused("c", TroubleWord.FAILED)]
    assert [cause.word for cause in by_cause(troubles)] == ["failed", "not created", "throttled"]
