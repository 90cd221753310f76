from dataclasses import replace
from math import inf
from typing import Final

import pytest

from sparkmirror.domain.ids import Alias, ConnectorName, Flow, GroupId, TopicPartition
from sparkmirror.domain.latency import EMPTY, LatencyHistogram
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.metrics.looks import (
    ClusterLook,
    ConnectorLook,
    GroupsLook,
    HeartbeatLook,
    Latencies,
    StandingLook,
    Standstill,
)
from sparkmirror.metrics.partition_table import PartitionTable, table_of
from sparkmirror.storage.progress import PartitionState
from sparkmirror.storage.promotions import Parting, Promotion, Stage
from sparkmirror.view.flows import FlowView, MirrorView
from sparkmirror.view.groups import groups_of, lag_of
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.moves import Check, group_answer, group_answers, topic_answer
from sparkmirror.view.values import PartitionView, State
from sparkmirror.view.words import Word
from tests.support.mirror_looks import (
    A_TO_B,
    LATENCIES,
    behind,
    everything,
    group_partition,
    groups,
    look,
    source,
)

NODE: Final = Node("node-1", "1.0")


def view(*connectors: ConnectorLook) -> MirrorView:
    return view_of(NODE, connectors, 1000.0)


def flow(*connectors: ConnectorLook) -> FlowView:
    (only,) = view(*connectors).flows
    return only


def partition(of: FlowView, at: int = 0) -> PartitionView:
    return of.topics[0].partitions[at]


def test_a_flow_that_has_caught_up() -> None:
    made = flow(source(look(partition=0), look(partition=1)))
    assert (made.state.word, made.lag, made.words) == (Word.CAUGHT_UP, (0, 0.0), {Word.CAUGHT_UP: 2})
    assert (partition(made).position, partition(made).source_end) == (1000, 1000)
    assert str(partition(made, 1).target) == "a.orders-1"
    assert made.latency_ms == partition(made).median_and_high_ms


def test_latencies_of_a_flow_serve_for_ten_seconds() -> None:
    slow = Latencies(LatencyHistogram({40: 10}), EMPTY)

    def seen(now: float, before: MirrorView | None, latencies: Latencies) -> MirrorView:
        return view_of(NODE, [source(look()._replace(latencies=latencies), now=now)], now, before)

    first = seen(10.0, None, LATENCIES)
    kept, again = seen(19.9, first, slow), seen(20.0, first, slow)
    assert kept.flows[0].latency_ms == first.flows[0].latency_ms
    assert again.flows[0].latency_ms == (slow.recent.quantile(0.5), slow.recent.quantile(0.99))
    assert seen(21.0, kept, slow).flows[0].latency_ms == again.flows[0].latency_ms


def test_the_worst_partition_gives_topic_and_flow_their_word() -> None:
    failed = look("payments", 1, {"state": PartitionState.FAILED, "error": "no", "lag": 4}, error_for_s=9.0)
    made = flow(source(look(), look("payments"), failed))
    assert [topic.state.word for topic in made.topics] == [Word.CAUGHT_UP, Word.ACTION_REQUIRED]
    assert (made.state.word, made.state.error, made.state.for_s) == (Word.ACTION_REQUIRED, "no", 9.0)
    assert made.state.advice
    assert [topic.name for topic in made.topics.worst_first()] == ["payments", "orders"]
    assert made.topics[1].worst_first()[0].source.partition == 1


def test_promoted_topics_have_their_word_and_no_lag() -> None:
    promoted = {
        "moving": Promotion(Stage.SWITCHING, 1, b"", {}),
        "orders": Promotion(Stage.PROMOTED, 1, b"", {0: Parting(900, 905), 1: Parting(7, 7)}),
    }
    late = behind("orders", 0, 5, closed=0)  # as its task has reported it last
    made = flow(source(late, look("pages"), promoted=promoted))
    assert [(topic.name, topic.state.word) for topic in made.topics] == [
        ("moving", Word.PROMOTED),
        ("orders", Word.PROMOTED),
        ("pages", Word.CAUGHT_UP),
    ]
    assert (made.state.word, made.lag) == (Word.CAUGHT_UP, (0, 0.0))
    assert made.words == {Word.CAUGHT_UP: 1, Word.PROMOTED: 3}
    moving, orders = made.topics[:2]
    assert moving.state.advice == "being promoted"
    assert [(it.position, it.state.advice) for it in orders.partitions] == [
        (900, "promoted, parted at offset 900"),
        (7, "promoted, parted at offset 7"),
    ]
    assert topic_answer(made, orders).checks == (
        Check("promoted", holds=True, fact="promoted, parted at offsets 0: 900, 1: 7"),
    )
    assert flow(source(promoted=promoted)).state.word is Word.PROMOTED
    assert flow(source(late)).state.word is not Word.PROMOTED, "after a roll-back"


def test_the_time_left_follows_from_how_the_lag_shrinks() -> None:
    made = flow(source(behind("orders", 0, 6000, closed=3000), behind("orders", 1, 500, closed=3000)))
    assert (made.state.word, made.lag.records) == (Word.CATCHING_UP, 6500)
    assert [it.left_s for it in made.topics[0].partitions] == [60.0, 5.0]
    assert made.left_s == 60.0


def test_the_time_left_of_some_is_not_known_while_that_of_one_is_not() -> None:
    early = behind("orders", 1, 500, closed=3000)._replace(motion=None)
    assert flow(source(behind("orders", 0, 6000, closed=3000), early)).left_s is None


def test_while_no_report_is_read_nothing_is_known_and_the_lag_grows() -> None:
    made = flow(source(look(), report_age_s=42.0))
    assert (made.state.word, made.state.for_s) == (Word.UNKNOWN, 42.0)
    assert (made.lag, made.speed) == ((None, 42.0), (None, None))
    never = flow(source(look(), report_age_s=None))
    assert (never.state.word, never.lag.records, never.report_age_s) == (Word.UNKNOWN, None, inf)


def test_the_lag_of_all_is_not_known_while_that_of_one_is_not() -> None:
    made = flow(source(behind("orders", 0, 10, closed=1), look("orders", 1, {"lag": None}, lag_s=None)))
    assert made.lag == (None, None)


def test_a_flow_that_does_not_run_has_no_lag_of_0() -> None:
    made = flow(StandingLook(A_TO_B, ConnectorName("mm2"), "source", None, "paused"))
    assert (made.state.word, made.lag, made.speed) == (Word.PAUSED, (None, None), (None, None))
    failed = flow(StandingLook(A_TO_B, ConnectorName("mm2"), "source", "bad topics", "failed"))
    assert (failed.state.word, failed.state.error) == (Word.ACTION_REQUIRED, "bad topics")
    starting = flow(StandingLook(A_TO_B, ConnectorName("mm2"), "source", None, "starting"))
    assert (starting.state.word, starting.lag.records) == (Word.STARTING, None)
    assert flow(source(partitions=None)).state.word is Word.STARTING


def test_a_connectors_own_error_is_the_flows() -> None:
    made = flow(source(look(), trouble="topic x: no rights"))
    assert (made.state.word, made.state.error) == (Word.ACTION_REQUIRED, "topic x: no rights")


def test_why_nothing_newer_is_known_is_a_connectors_error_and_no_word() -> None:
    made = flow(source(look(), unread="look at the mirror failed: a: no broker answers"))
    (connector,) = made.connectors
    assert (made.state.word, connector.state.word) == (Word.CAUGHT_UP, Word.CAUGHT_UP)
    assert connector.state.error == "look at the mirror failed: a: no broker answers"
    early = flow(source(partitions=None, unread="no"))
    assert (early.state.word, early.state.error) == (Word.UNKNOWN, "no")


def test_a_connector_that_is_to_write_no_heartbeats_is_not_paused() -> None:
    none = HeartbeatLook(A_TO_B, ConnectorName("beat"), "heartbeat", emits=False)
    made = flow(source(look()), none)
    assert (made.state.word, made.connectors[1].state) == (
        Word.CAUGHT_UP,
        State(Word.CAUGHT_UP, advice="emit.heartbeats.enabled is false"),
    )
    assert flow(none).state.word is Word.CAUGHT_UP


@pytest.mark.parametrize("standstill", ["stopped", "paused"])
@pytest.mark.parametrize("closed", [1, -1])
def test_a_connector_that_does_not_run_is_not_hidden_by_a_lag(standstill: Standstill, closed: int) -> None:
    stands = StandingLook(A_TO_B, ConnectorName("mcc"), "checkpoint", None, standstill)
    made = flow(source(behind("orders", 0, 900, closed=closed)), stands)
    assert made.state.word == standstill


def test_connectors_that_write_each_interval_are_missed() -> None:
    beat = HeartbeatLook(A_TO_B, ConnectorName("beat"), "heartbeat", age_s=0.5, interval_s=1.0)
    late = HeartbeatLook(A_TO_B, ConnectorName("beat"), "heartbeat", age_s=14.0, interval_s=1.0)
    first = GroupsLook(A_TO_B, ConnectorName("checkpoints"), "checkpoint")
    words = [
        flow(source(look()), it).connectors[1].state.word
        for it in (beat, late, first, groups(), groups(age_s=999.0))
    ]
    assert words == [Word.CAUGHT_UP, Word.RETRYING, Word.STARTING, Word.CAUGHT_UP, Word.RETRYING]
    assert flow(source(look()), late).heartbeat_age_s == 14.0


def test_heartbeats_of_a_clock_that_is_ahead_do_not_show_that_anything_runs() -> None:
    ahead = HeartbeatLook(A_TO_B, ConnectorName("beat"), "heartbeat", age_s=-3600.0, interval_s=1.0)
    state = flow(source(look()), ahead).connectors[1].state
    assert state.word is Word.UNKNOWN
    assert "3,600 s in the future by this machine's clock" in state.advice


def test_a_cluster_is_away_if_one_flow_gets_no_answer() -> None:
    there = source(look())
    away = ClusterLook(Alias("b"), is_up=False, away_for_s=9.0, error="refused")
    back = source(look(), flow=Flow(Alias("b"), Alias("c")), clusters=(away,))
    assert [(it.alias, it.is_up, it.away_for_s) for it in view(there, back).clusters] == [
        ("a", True, None),
        ("b", False, 9.0),
        ("c", None, None),
    ]


def test_groups_have_what_they_would_read_again() -> None:
    made = flow(
        source(look()),
        groups(
            group_partition("exact"),
            group_partition("late", behind_max=40),
            group_partition("unwritten", written=None, checkpoint=850),
            group_partition("new", translated=None, behind_max=None, checkpoint=None, written=None),
            active=frozenset({GroupId("late")}),
        ),
    )
    known = groups_of(made)
    assert known is not None
    found = {group.name: group for group in known.matching()}
    assert {name: group.again for name, group in found.items()} == {
        "exact": 0,
        "late": 40,
        "new": None,
        "unwritten": 50,
    }
    assert (found[GroupId("late")].is_active, found[GroupId("exact")].is_active) == (True, False)
    assert lag_of(made, found[GroupId("exact")].partitions[0]) == 100


def test_groups_are_sorted_out_again_only_when_others_are_told() -> None:
    told = groups(group_partition("a"), group_partition("b", "payments"))
    first = view(source(look()), told)
    second = view_of(NODE, [source(look()), told], 1001.0, first)
    other = view_of(NODE, [source(look()), groups(group_partition("c"))], 1002.0, second)
    indices = [it.flows[0].group_index for it in (first, second, other)]
    assert indices[0] is indices[1]
    assert indices[2] is not indices[1]
    known = [groups_of(it.flows[0]) for it in (second, other)]
    assert [[it.name for it in each.matching()] for each in known if each is not None] == [["a", "b"], ["c"]]
    assert known[0] is not None
    assert [it.name for it in known[0].of_topic("payments")] == ["b"]
    assert known[0].named("c") is None


def test_a_group_has_its_lag_behind_the_end_of_its_own_partition() -> None:
    partitions = [look("orders", number, {"lag": 10 * number}) for number in (0, 1, 3)]
    flow_view = flow(source(*partitions, look("payments", 1)))
    ends = [flow_view.topics.source_end(TopicPartition("orders", number)) for number in range(5)]
    assert ends == [1000, 1010, None, 1030, None]
    assert flow_view.topics.source_end(TopicPartition("clicks", 0)) is None


def test_a_group_that_cannot_be_read_is_unknown() -> None:
    errors = {GroupId("away"): "no coordinator on a", GroupId("closed"): "no right on b"}
    known = groups_of(flow(source(look()), groups(group_partition("closed"), errors=errors)))
    assert known is not None
    found = {group.name: group for group in known.matching()}
    assert [(len(it.partitions), it.is_exact, it.again) for it in found.values()] == [
        (0, False, None),
        (1, False, None),
    ]
    assert [check.holds for check in group_answer(found[GroupId("away")], known).checks] == [None, True]
    answers = group_answers(known, "orders")
    assert [(it.what, it.may_move) for it in answers] == [("away", False), ("closed", False)]


def test_without_a_look_at_the_target_nothing_is_said_of_groups_there() -> None:
    known = groups_of(flow(groups(group_partition("g"), reads_target=False)))
    assert known is not None
    assert [group.is_active for group in known.matching()] == [None]


def test_a_view_has_the_worst_state_of_its_flows() -> None:
    assert view().state.word is Word.UNKNOWN
    assert view_of(NODE, everything(), 0.0).state.word is Word.ACTION_REQUIRED


def test_partitions_stay_in_their_places_from_view_to_view() -> None:
    quiet, busy = look("quiet"), behind("busy", 0, 10, closed=1)
    looks = [busy, quiet]
    first = view(source(partitions=table_of(looks)))
    moved = replace_sources(table_of([behind("busy", 0, 5, closed=1), quiet]), first)
    second = view_of(NODE, [source(partitions=moved, now=30.0)], 1001.0, first).flows[0]
    assert second.topics.layout is first.flows[0].topics.layout
    assert [(it.name, it.lag.records) for it in second.topics] == [("busy", 5), ("quiet", 0)]
    known = second.topics.named("quiet")
    assert known is not None
    assert second.age(known.quiet_since) == 150.0
    other = view_of(NODE, [source(look("other"), quiet)], 1002.0, first).flows[0]
    assert [it.name for it in other.topics] == ["other", "quiet"]


def replace_sources(table: PartitionTable, of: MirrorView) -> PartitionTable:
    """The very list of the view before, as a meter has it."""
    (known,) = of.flows[0].topics.partitions.tables
    return PartitionTable(known.sources, table.columns, table.__getitem__, table.report, table.latencies)


def test_what_was_not_known_is_not_taken_from_the_view_before() -> None:
    quiet = look("quiet")
    known = view(source(quiet))
    cut_off = view_of(NODE, [source(quiet, report_age_s=60.0)], 1001.0, known)
    back = view_of(NODE, [source(quiet)], 1002.0, cut_off)
    words = [it.flows[0].topics[0].state.word for it in (known, cut_off, back)]
    assert words == [Word.CAUGHT_UP, Word.UNKNOWN, Word.CAUGHT_UP]


def refused(topic: str, word: TroubleWord = TroubleWord.NOT_CREATED, partitions: int = 2) -> Trouble:
    cause = Cause.of(word, Subject.TOPIC, f"a.{topic}", f"create a.{topic}: no", "set the factor")
    return Trouble(cause, topic, f"a.{topic}", 940.0, (0, partitions))


def test_topics_that_can_t_be_created_are_there_with_reason_and_age() -> None:
    caught_up = source(look())
    made = flow(replace(caught_up, troubles=[refused("bills"), refused("carts")]))
    assert [(it.name, it.state.word, len(it.partitions)) for it in made.topics] == [
        ("bills", Word.ACTION_REQUIRED, 2),
        ("carts", Word.ACTION_REQUIRED, 2),
        ("orders", Word.CAUGHT_UP, 1),
    ]
    assert made.topics[0].state[1:3] == (60.0, "not created: create a.bills: no; set the factor")
    assert made.topics[0].lag.records is None, "what was never read is not 0"
    assert (made.topics[0].target, made.lag.records) == ("a.bills", None)
    assert made.state.word is Word.ACTION_REQUIRED
    assert made.connectors[0].state == (
        Word.ACTION_REQUIRED,
        60.0,
        "bills, carts not created: create a.bills: no; set the factor",
        "set the factor",
    )
    assert [it.what for it in made.troubles] == ["bills", "carts"]


def test_a_flow_none_of_whose_topics_can_be_created_needs_action() -> None:
    made = flow(replace(source(), partitions=(), troubles=[refused("bills")]))
    assert (made.state.word, made.words) == (Word.ACTION_REQUIRED, {Word.ACTION_REQUIRED: 2})
    made = flow(replace(source(), partitions=None, troubles=[refused("bills")]))
    assert made.state.word is Word.ACTION_REQUIRED


def test_a_topic_that_could_not_be_grown_has_both_kinds_of_partitions() -> None:
    grown = refused("orders", TroubleWord.NOT_GROWN)._replace(partitions=(1, 3))
    made = flow(replace(source(look(partition=0)), troubles=[grown]))
    (orders,) = made.topics
    assert [it.state.word for it in orders.partitions] == [
        Word.CAUGHT_UP,
        Word.ACTION_REQUIRED,
        Word.ACTION_REQUIRED,
    ]
    assert orders.state.word is Word.ACTION_REQUIRED


def test_what_a_quota_delays_needs_no_action() -> None:
    made = flow(replace(source(look()), troubles=[refused("bills", TroubleWord.THROTTLED)]))
    assert {it.name: it.state.word for it in made.topics} == {
        "bills": Word.RETRYING,
        "orders": Word.CAUGHT_UP,
    }
    assert made.connectors[0].state.word is Word.RETRYING


def test_troubles_of_every_connector_are_those_of_the_flow() -> None:
    of_group = Trouble(Cause.of(TroubleWord.NOT_COMMITTED, Subject.GROUP, "g1", "g1: no"), "g1", since=990.0)
    beats = Trouble(
        Cause.of(TroubleWord.NOT_WRITTEN, Subject.STATE_TOPIC, "heartbeats", "no"), "heartbeats", since=980.0
    )
    heartbeat = HeartbeatLook(A_TO_B, ConnectorName("beats"), "heartbeat", troubles=[beats])
    made = flow(source(look()), replace(groups(), troubles=[of_group]), heartbeat)
    assert [(it.what, it.word) for it in made.troubles] == [
        ("heartbeats", "not written"),
        ("g1", "not committed"),
    ]
    assert made.state.word is Word.ACTION_REQUIRED
    assert [it.state.word for it in made.connectors] == [
        Word.CAUGHT_UP,
        Word.ACTION_REQUIRED,
        Word.ACTION_REQUIRED,
    ]


AWAY: Final = ClusterLook(Alias("b"), False, 75.2, "can't connect: Connection refused")


def test_a_cluster_that_is_away_comes_before_what_follows_from_it() -> None:
    failed = look(reported={"state": PartitionState.RETRYING, "error": "Fetch on b", "lag": 0})
    for partitions, age_s in (((look(),), 75.2), ((look(), failed), 0.5), ((), None)):
        made = view_of(NODE, [source(*partitions, report_age_s=age_s, clusters=[AWAY])], 100_000.0)
        state = made.flows[0].state
        assert (state.word, state.for_s) == (Word.UNKNOWN, 75.2)
        assert state.error == "b does not answer since 03:45:25 UTC: can't connect: Connection refused"
        assert made.state == state


def test_an_outage_is_told_before_anything_follows_from_it() -> None:
    made = view(source(look(), clusters=[AWAY._replace(away_for_s=2.0)]))
    assert (made.state.word, made.flows[0].state.word) == (Word.UNKNOWN, Word.UNKNOWN)
    assert made.flows[0].topics[0].state.word is Word.CAUGHT_UP


def test_a_look_from_outside_names_the_cluster_once() -> None:
    error = "b does not answer (b.bootstrap.servers = b:1): Connection refused"
    made = flow(source(partitions=None, clusters=[ClusterLook(Alias("b"), False, None, error)], unread=error))
    assert (made.state.word, made.state.error) == (Word.UNKNOWN, error)


def test_no_lag_is_known_while_the_source_does_not_answer() -> None:
    away = ClusterLook(Alias("a"), is_up=False, away_for_s=3.0)
    made = flow(source(look(), behind("pages", 0, 40, closed=1), clusters=[away]))
    assert (made.lag.records, made.state.word) == (None, Word.UNKNOWN)


def test_a_flow_that_only_emits_heartbeats_is_well_and_counts_nowhere_as_unknown() -> None:
    back = Flow(Alias("b"), Alias("a"))
    beat = HeartbeatLook(back, ConnectorName("beat"), "heartbeat", age_s=0.5, interval_s=1.0)
    made = flow(beat)
    assert (made.state.word, made.lag, made.mirrors, made.words) == (Word.CAUGHT_UP, (0, 0.0), False, {})
    with_outage = view(source(look(), clusters=[AWAY]), beat)
    assert [str(it.flow) for it in with_outage.flows if it.state.word is Word.CAUGHT_UP] == ["b->a"]
    stuck = view(source(look(), report_age_s=75.2, clusters=[AWAY._replace(alias=Alias("a"))]), beat)
    assert [it.state.error for it in stuck.flows] == [stuck.flows[0].state.error] * 2


def test_a_flow_without_topics_has_nothing_to_copy() -> None:
    made = flow(source())
    assert (made.state.word, made.lag, made.mirrors) == (Word.CAUGHT_UP, (0, 0.0), True)


def test_a_mirror_that_was_stopped_in_order_is_stopped_with_all_its_topics() -> None:
    late = HeartbeatLook(A_TO_B, ConnectorName("beat"), "heartbeat", age_s=40.0, interval_s=1.0)
    made = flow(
        source(
            behind("orders", 0, 5, closed=0),
            is_observed=True,
            is_running=False,
            is_stopped=True,
            trouble="the mirror was stopped in order 0 s ago",
        ),
        late,
    )
    assert (made.state.word, made.state.error) == (Word.STOPPED, "the mirror was stopped in order 0 s ago")
    assert (made.topics[0].state.word, made.lag.records) == (Word.STOPPED, 5)


def test_a_copy_job_that_has_just_begun_is_starting_and_later_unknown() -> None:
    silent = look(reported={"lag": 0}, is_silent=True)
    words = [flow(source(look(), silent, begun_s=age_s)).state.word for age_s in (0.0, 19.9, 20.0, None)]
    assert words == [Word.STARTING, Word.STARTING, Word.UNKNOWN, Word.UNKNOWN]
    waits = flow(source(partitions=None, waits_for="Spark, which starts"))
    assert (waits.state.word, waits.state.advice) == (Word.STARTING, "waits for Spark, which starts")


def test_a_process_that_stands_by_says_who_copies() -> None:
    look_ = StandingLook(
        A_TO_B, ConnectorName("mm2"), "source", None, "standby", waits_for="process 7 on east runs this flow"
    )
    made = flow(look_)
    assert (made.state.word, made.state.advice) == (Word.STANDBY, "process 7 on east runs this flow")


def test_a_direction_that_waits_for_a_failback_is_standby_and_no_error() -> None:
    waiting = look("bank", 0, {"state": PartitionState.STANDBY, "error": "b->a has copied it", "lag": 5})
    made = flow(source(waiting))
    assert (made.state.word, made.words) == (Word.STANDBY, {Word.STANDBY: 1})
    assert "failback" in made.state.advice
    assert flow(source(waiting, look())).state.word is Word.STANDBY, "its records are not copied by this flow"
    assert made.lag.records == 0
    assert flow(source(waiting, look("slow", 0, {"lag": 9}, lag_s=60.0))).lag.records == 9
