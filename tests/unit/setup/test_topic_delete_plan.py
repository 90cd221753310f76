from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.ids import Alias
from sparkmirror.domain.topics import ListedTopic
from sparkmirror.plan.flow_plan import Action, topic_changes
from sparkmirror.setup.topic_delete_plan import (
    NOTHING_LISTED,
    Absence,
    Copied,
    DeletePlan,
    DeleteTopic,
    GracePeriod,
    Missed,
    Sight,
    absent,
    plan_deletes,
)
from sparkmirror.setup.topic_plan import TopicPlan

GRACE_S = 100.0
GRACE = GracePeriod(GRACE_S, GRACE_S)
NAMES = ("a", "b", "c", "d", "e")
COPIED = tuple(Copied(name, f"s.{name}", f"id-{name}".encode(), shows_origin=True) for name in NAMES)
TARGET = {one.target: ListedTopic(1, one.target_id) for one in COPIED}


def sight(now: float, *gone: str, absence: Absence = Absence.UNKNOWN) -> Sight:
    listed = frozenset(NAMES) - set(gone)
    return Sight(now, listed, TARGET, dict.fromkeys(gone, absence))


def planned(seen: Sight, missed: Mapping[str, Missed]) -> DeletePlan:
    return plan_deletes(COPIED, seen, missed, GRACE)


def test_what_is_gone_is_deleted_when_it_was_missing_long_enough() -> None:
    first = planned(sight(10, "b"), {})
    assert first.deletes == (DeleteTopic("s.b", "b", b"id-b", due=110.0),)
    assert first.due(10) == ()
    later = planned(sight(109, "b"), first.missed)
    assert later.due(109) == ()
    assert later.missed == {"b": Missed(10, 109)}
    assert [topic.name for topic in planned(sight(110, "b"), later.missed).due(110)] == ["s.b"]


def test_a_topic_that_is_listed_again_restarts_its_grace_period() -> None:
    missed = planned(sight(10, "b"), {}).missed
    missed = planned(sight(50), missed).missed
    assert missed == {}
    assert planned(sight(111, "b"), missed).due(111) == ()


def test_a_clock_set_back_and_a_long_gap_restart_the_grace_period() -> None:
    assert planned(sight(5, "b"), {"b": Missed(10, 10)}).missed == {"b": Missed(5, 5)}
    assert planned(sight(111, "b"), {"b": Missed(0, 10)}).missed == {"b": Missed(111, 111)}
    assert planned(sight(110, "b"), {"b": Missed(0, 10)}).due(110)


def test_a_mirror_with_a_long_refresh_interval_deletes_too() -> None:
    patient = GracePeriod(GRACE_S, gap_s=600)
    seldom = plan_deletes(COPIED, sight(600, "b"), {"b": Missed(0, 0)}, patient)
    assert [topic.name for topic in seldom.due(600)] == ["s.b"]
    assert not plan_deletes(COPIED, sight(601, "b"), {"b": Missed(0, 0)}, patient).due(601)


def test_most_topics_are_not_deleted_at_once() -> None:
    missed = {"a": Missed(0, 200)}
    plan = planned(sight(201, "a", "b", "c"), missed)
    assert plan == DeletePlan(
        missed, held="3 of the 5 topics that were copied are missing at the source at once"
    )
    assert len(planned(sight(201, "a", "b"), missed).deletes) == 2


def test_an_empty_cluster_deletes_nothing() -> None:
    assert planned(sight(1, *NAMES), {}) == DeletePlan(held=NOTHING_LISTED)


def test_without_evidence_nothing_is_deleted() -> None:
    other = plan_deletes(
        [replace(one, target_id=b"another") for one in COPIED],
        sight(200, "b"),
        {"b": Missed(0, 150)},
        GRACE,
    )
    unknown = plan_deletes([replace(one, target_id=b"") for one in COPIED], sight(200, "b"), {}, GRACE)
    without_ids = replace(sight(200, "b"), target={name: ListedTopic(1) for name in TARGET})
    for plan in (other, unknown, plan_deletes(COPIED, without_ids, {"b": Missed(0, 150)}, GRACE)):
        assert (plan.deletes, plan.missed) == ((), {})
        assert "no stored position" in plan.reasons["b"]


def test_a_copy_whose_name_hides_its_origin_is_never_deleted() -> None:
    copied = [replace(one, target=one.source, shows_origin=one.source != "b") for one in COPIED]
    target = {one.target: ListedTopic(1, one.target_id) for one in copied}
    seen = replace(sight(200, "b", "c"), target=target)
    plan = plan_deletes(copied, seen, {"b": Missed(0, 150), "c": Missed(0, 150)}, GRACE)
    assert [topic.name for topic in plan.due(200)] == ["c"]
    assert plan.missed.keys() == {"c"}
    assert "does not show that it is a copy" in plan.reasons["b"]


def test_a_topic_that_may_not_be_seen_is_kept() -> None:
    missed = {"b": Missed(0, 150)}
    for absence, words in ((Absence.HIDDEN, "may not be described"), (Absence.UNCLEAR, "does not say")):
        plan = planned(sight(200, "b", absence=absence), missed)
        assert (plan.deletes, plan.missed) == ((), {})
        assert words in plan.reasons["b"]
    assert planned(replace(sight(200, "b"), absences={}), missed).deletes == ()


def test_absences_of_topics_gone_from_the_target_are_dropped() -> None:
    target = {name: topic for name, topic in TARGET.items() if name != "s.b"}
    seen = replace(sight(200, "b"), target=target)
    assert planned(seen, {"b": Missed(0, 150)}) == DeletePlan()
    assert absent(COPIED, seen.source, target) == set()


Look = tuple[float, frozenset[str], bool]
looks = st.lists(
    st.tuples(st.floats(0, 60), st.frozensets(st.sampled_from(NAMES), max_size=5), st.booleans()), max_size=30
)


@given(looks)
def test_nothing_is_deleted_that_was_seen_within_the_grace_period(steps: list[Look]) -> None:
    """Nor what was hidden then, nor half of all at once; a restart changes nothing, as `missed` is stored."""
    now, missed = 1000.0, dict[str, Missed]()
    last_there = dict.fromkeys(NAMES, now)
    for pause, gone, hidden in steps:
        now += pause
        absence = Absence.HIDDEN if hidden else Absence.UNKNOWN
        plan = planned(sight(now, *gone, absence=absence), missed)
        last_there |= {name: now for name in NAMES if name not in gone or hidden}
        for topic in plan.due(now):
            assert now - last_there[topic.source] >= GRACE_S
            assert topic.topic_id == TARGET[topic.name].topic_id
            assert 2 * len(gone) <= len(NAMES)
        missed = dict(plan.missed)


@given(
    st.lists(
        st.sampled_from([b"", b"id-a", b"id-b", b"id-c", b"id-d", b"id-e", b"x"]), min_size=5, max_size=5
    ),
    st.frozensets(st.sampled_from(NAMES)),
)
def test_nothing_is_deleted_without_evidence(ids: list[bytes], gone: frozenset[str]) -> None:
    copied = [replace(one, target_id=id_) for one, id_ in zip(COPIED, ids, strict=True)]
    long_missed = dict.fromkeys(NAMES, Missed(0, 950))
    for topic in plan_deletes(copied, sight(1000, *gone), long_missed, GRACE).deletes:
        assert topic.topic_id == f"id-{topic.source}".encode()


def test_a_plan_lists_deletions_with_their_due_time() -> None:
    gone = DeleteTopic("s.b", "b", b"id-b", due=1_700_000_000.0)
    (change,) = topic_changes(Alias("target"), TopicPlan(deletes=(gone,)))
    assert (change.action, change.kind, change.name) == (Action.DELETE, "topic", "s.b")
    assert change.text == "after 2023-11-14 22:13:20+00:00: b is gone from the source"
    assert change.details == {"source": "b", "due": 1_700_000_000.0}
