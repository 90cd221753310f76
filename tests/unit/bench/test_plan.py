from bench.__main__ import options_from
from bench.plan import Grown, Hot, ManyGroups, ManyTopics, Plan, Rest, plan_from
from bench.results import Pairing
from bench.sides import Side
from bench.workloads import BY_NAME


def plan(*arguments: str) -> Plan:
    return plan_from(options_from(arguments))


def test_without_options_everything_runs_and_may_be_published() -> None:
    assert plan().is_complete
    assert (plan().runs, plan().sides, plan().idle_partitions) == (3, tuple(Side), 1000)
    assert plan().grown == Grown(5000, 30.0)
    assert plan().hot == Hot(2000, 1_000_000, 200_000)
    assert (plan().translated, plan().many_groups) == (True, ManyGroups(5000))
    assert plan().many_topics == ManyTopics(topics=5000, seconds=60.0, mm2_topics=4000)
    assert plan().rest == Rest(connectors=200, clients=200, seconds=20.0, rounds=3, mm2_connectors=20)


def test_parts_may_not_be_published() -> None:
    parts = (["--only", "1kb"], ["--sides", "ours,mm2"], ["--runs", "2"], ["--records", "1000"], ["--quick"])
    assert not any(plan(*arguments).is_complete for arguments in parts)


def test_option_only_leaves_out_the_rest() -> None:
    chosen = plan("--only", "100b-lz4", "idle")
    assert [workload.name for workload in chosen.workloads] == ["100b-lz4"]
    assert (chosen.latency_runs, chosen.memory_workload, chosen.idle_partitions) == (0, None, 1000)
    assert (chosen.pair_workloads, chosen.far_megabytes, chosen.grown, chosen.hot, chosen.drills) == (
        (),
        0,
        None,
        None,
        (),
    )


def test_groups_are_measured_with_mirrors_only() -> None:
    chosen = plan("--only", "translation", "groups", "--sides", "mm2,mm2-tuned,ceiling", "--quick")
    assert (chosen.translated, chosen.many_groups, chosen.workloads) == (True, ManyGroups(500), ())
    assert (chosen.mirror_sides, plan().mirror_sides) == ((Side.MM2,), (Side.OURS, Side.MM2))
    assert not plan("--only", "translation").is_complete


def test_without_sparkmirror_its_own_measurements_are_left_out() -> None:
    chosen = plan("--sides", "mm2")
    assert (chosen.memory_workload, chosen.idle_partitions, chosen.latency_sides) == (None, 0, (Side.MM2,))
    assert (chosen.pair_workloads, chosen.far_megabytes, chosen.grown, chosen.hot) == ((), 0, None, None)


def test_no_side_always_comes_first() -> None:
    assert {plan().order(run, BY_NAME["1kb"])[0] for run in range(1, 6)} == set(Side) - {Side.RELAY}
    assert {plan().latency_order(run)[0] for run in (1, 2, 3)} == {Side.OURS, Side.MM2, Side.RELAY}
    compacted = [plan().order(run, BY_NAME["compacted"]) for run in (1, 2)]
    assert compacted == [(Side.OURS, Side.MM2), (Side.MM2, Side.OURS)]


def test_the_relay_is_for_latency_alone() -> None:
    assert not any(Side.RELAY in workload.sides for workload in plan().workloads)
    assert Side.RELAY in plan("--quick").latency_sides
    assert plan("--sides", "ours,mm2").latency_sides == (Side.OURS, Side.MM2)
    assert Side.RELAY not in (*plan().hot_sides, *plan().mirror_sides, *(side for side, _ in plan().drills))


def test_a_workload_may_have_none_of_the_chosen_sides() -> None:
    assert plan("--sides", "ceiling").order(1, BY_NAME["compacted"]) == ()


def test_quick_is_one_small_run() -> None:
    assert plan("--quick").runs == 1
    assert plan("--quick").workloads[0].records < plan().workloads[0].records
    quick, whole = plan("--quick").grown, plan().grown
    assert quick is not None
    assert whole is not None
    assert quick.partitions < whole.partitions


def test_most_pairs_have_one_request_in_flight_on_both_sides() -> None:
    chosen = [pairing for _, pairing in plan().pairings]
    assert [chosen.count(pairing) for pairing in Pairing] == [15, 5]
    assert {pairing for _, pairing in plan("--quick").pairings} == set(Pairing)


def test_the_api_alone_is_no_complete_run() -> None:
    chosen = plan("--only", "rest", "--quick")
    assert chosen.rest == Rest(connectors=50, clients=200, seconds=5.0, rounds=2, mm2_connectors=10)
    assert (chosen.workloads, chosen.many_groups, chosen.is_complete) == ((), None, False)
    assert plan("--only", "idle").rest is None


def test_topics_are_for_mirrors_and_may_be_fewer_for_java() -> None:
    chosen = plan("--only", "topics", "--quick", "--sides", "ours,mm2")
    assert (chosen.workloads, chosen.rest, chosen.mirror_sides) == ((), None, (Side.OURS, Side.MM2))
    assert chosen.many_topics == ManyTopics(topics=500, seconds=20.0, mm2_topics=500)
    asked = ManyTopics(topics=9, seconds=1.0, mm2_topics=4)
    assert (asked.of(Side.OURS), asked.of(Side.MM2).topics) == (asked, 4)
    assert plan("--only", "idle").many_topics is None
