import pytest

from bench.goals import Bare, Goal, goals
from bench.measures import Percentiles
from bench.results import (
    Burst,
    Failure,
    FarRun,
    Holdings,
    HotRun,
    IdleRun,
    LatencyRun,
    ManyGroupsRun,
    Moment,
    Pairing,
    PairRun,
    Results,
    TranslationRun,
)
from bench.sides import Side
from tests.unit.bench.runs import rest_load, rest_rounds, throughput_run, topics_run


def goal(results: Results, what: str) -> Goal:
    return next(goal for goal in goals(results) if goal.what == what)


def test_throughput_and_cpu_are_ratios_of_medians() -> None:
    results = Results()
    results.throughput += [throughput_run(Side.OURS, rate=rate) for rate in (100_000, 300_000, 200_000)]
    results.throughput.append(throughput_run(Side.MM2, rate=50_000, cpu_per_million=4.0))
    results.throughput.append(throughput_run(Side.CEILING, rate=250_000))
    against_mm2 = goal(results, "1 KB, no codec: throughput against MM2")
    assert (against_mm2.reached, against_mm2.is_met) == (4.0, True)
    against_ceiling = goal(results, "1 KB, no codec: throughput against the ceiling")
    assert (against_ceiling.reached, against_ceiling.is_met, against_ceiling.bare) == (0.8, False, None)
    assert goal(results, "1 KB, no codec: CPU per million records against MM2").reached == 0.25


def test_tls_is_compared_with_plaintext_and_with_mm2() -> None:
    results = Results()
    results.throughput += [
        throughput_run(Side.OURS, rate=400_000, cpu_per_million=1.0, workload="plaintext"),
        throughput_run(Side.OURS, rate=200_000, cpu_per_million=2.0, workload="tls"),
        throughput_run(Side.MM2, rate=25_000, cpu_per_million=20.0, workload="tls"),
    ]
    found = [(each.reached, each.is_met) for each in goals(results) if each.what.startswith("1 KB, TLS")]
    assert found == [(0.5, False), (2.0, True), (8.0, True), (0.1, True)]


def test_goal_without_measurement_is_neither_met_nor_missed() -> None:
    missing = goals(Results(failures=[Failure("1kb", Side.OURS, 1, "why")]))[0]
    assert (missing.reached, missing.is_met, missing.missed_by) == (None, False, None)


def test_untried_measurement_has_no_goal() -> None:
    assert goals(Results()) == []


def test_missed_target_is_shown_in_percent_of_the_target() -> None:
    missed = [Goal("", "≥", 4.0, 3.0).missed_by, Goal("", "≤", 4.0, 5.0).missed_by]
    assert missed == ["25 %", "25 %"]
    assert Goal("", "≥", 4.0, 4.0).missed_by is None


def test_missed_target_of_zero_is_shown_in_its_unit() -> None:
    assert Goal("", "≤", 0.0, 1234.0, "records").missed_by == "1,234 records"
    assert Goal("", "≤", 0.0, 0.0, "records").is_met


def test_latency_is_compared_with_mm2_and_not_with_the_floor() -> None:
    results = Results()
    for side, factor in ((None, 1.0), (Side.OURS, 2.0), (Side.MM2, 8.0)):
        results.latency.append(LatencyRun(side, 1, Percentiles(1000, factor, factor, factor, factor)))
    assert goal(results, "latency p50 against MM2").reached == 0.25


def test_reading_ceiling_is_shown_beside_its_goal_without_deciding_it() -> None:
    results = Results()
    sides = ((Side.OURS, 160_000), (Side.CEILING, 200_000), (Side.CEILING_READS, 180_000))
    results.throughput += [throughput_run(side, rate=rate) for side, rate in sides]
    found = goal(results, "1 KB, no codec: throughput against the ceiling")
    assert (found.reached, found.bare, found.is_met) == (0.8, Bare("a ceiling that reads", 0.9), False)
    assert goal(results, "1 KB, no codec: throughput against MM2").bare is None


def test_relay_is_shown_beside_the_latency_goals_without_deciding_them() -> None:
    results = Results(latency=[latency(Side.OURS, 8.0), latency(Side.MM2, 10.0)])
    assert goal(results, "latency p99 against MM2").bare is None
    results.latency += [latency(Side.RELAY, 9.0), latency(Side.RELAY, 4.0), latency(Side.RELAY, 3.0)]
    found = goal(results, "latency p99 against MM2")
    assert (found.reached, found.bare, found.is_met, found.missed_by) == (
        0.8,
        Bare("a relay", 0.4),
        False,
        "60 %",
    )


def latency(side: Side, every_ms: float) -> LatencyRun:
    return LatencyRun(side, 1, Percentiles(1000, every_ms, every_ms, every_ms, every_ms))


def test_memory_and_idle_cpu_have_goals() -> None:
    results = Results(
        idle=[IdleRun(1000, 30.0, 2.5, 0.5, 300.0, 9.0)], memory=[throughput_run(Side.OURS, rate=1)]
    )
    assert goal(results, "memory of one copy task, 8 partitions").reached == 150.0
    assert goal(results, "1,000 idle partitions, all processes").reached == 2.5
    assert goal(results, "1,000 idle partitions, the task's Python worker").reached == 0.5


def test_reencoding_has_goals_against_mm2_only_and_a_codec_has_none() -> None:
    results = Results()
    for name in ("single", "zstd", "compacted", "transactions"):
        for side, rate in ((Side.OURS, 400_000), (Side.MM2, 100_000)):
            results.throughput.append(throughput_run(side, rate=rate, workload=name))
    assert {each.what: each.reached for each in goals(results)} == {
        "100 B, one-record batches: throughput against MM2": 4.0,
        "1 KB, compacted: throughput against MM2": 4.0,
        "1 KB, lz4, in transactions: throughput against MM2": 4.0,
    }


def test_exactly_once_costs_the_median_of_what_it_costs_in_each_pair() -> None:
    rates = ((98.0, 100.0), (480.0, 500.0), (99.0, 10.0))
    fair, other_pairs = Pairing.ONE_REQUEST, PairRun("1kb", Pairing.AS_THEY_ARE, 1, 1.0, 1.0, 2.0, 1.0)
    pairs = [
        PairRun("1kb", fair, number, ours, 1.0, other, 1.0) for number, (ours, other) in enumerate(rates)
    ]
    cost = goal(
        Results(pairs=[*pairs, other_pairs]),
        "1 KB, no codec: what exactly-once by default takes from the throughput",
    )
    assert cost.reached == pytest.approx(2.0)
    assert cost.is_met


def test_the_far_target_is_judged_by_its_worst_large_batches() -> None:
    shares = ((True, 95.0), (True, 85.0), (False, 10.0))
    far = [FarRun("", fills, 0.1, 1.0, moved, 100.0, 5) for fills, moved in shares]
    found = goal(Results(far=far), "far target, large batches: bytes/s against 5 requests per round trip")
    assert found.reached == pytest.approx(0.85)


def test_a_hot_partition_is_compared_with_itself_alone() -> None:
    hot = [
        HotRun(side, neighbours, tuple(Burst(rate, 1.0) for rate in rates), 300.0)
        for side, neighbours, rates in (
            (Side.MM2, 0, (1000.0,)),
            (Side.OURS, 0, (100.0, 200.0, 300.0)),
            (Side.OURS, 2000, (150.0, 190.0, 200.0)),
        )
    ]
    what = "one hot partition beside 2,000 quiet ones: throughput against it alone"
    assert goal(Results(hot=hot), what).reached == pytest.approx(0.95)


def test_options_for_groups_that_fail_over() -> None:
    results = Results()
    for side, kind, again in (
        (Side.OURS, "plain", (0, 4)),
        (Side.MM2, "plain", (10, 30)),
        (Side.OURS, "compacted", (5, 5)),
        (Side.MM2, "compacted", (4, 6)),
    ):
        results.translations.append(TranslationRun(side, Moment.FLOWING, kind, again, 0, 0.5, min(again)))
    assert goal(results, "failing over, data flows: read again, where a run tells the place").reached == 5.0
    assert (
        goal(results, "failing over, all is copied: read again, where a run tells the place").reached is None
    )
    assert goal(results, "failing over: missed").is_met
    assert goal(results, "failing over: read again against MM2, at worst").reached == 1.0


def test_a_group_that_reads_again_where_mm2_does_not_is_no_success() -> None:
    runs = [TranslationRun(side, Moment.QUIET, "plain", (again,), 0, 0.0, 0) for side, again in AGAIN.items()]
    assert not goal(Results(translations=runs), "failing over: read again against MM2, at worst").is_met


AGAIN = {Side.OURS: 1, Side.MM2: 0}


def test_options_for_many_groups() -> None:
    results = Results(
        many_groups=[
            ManyGroupsRun(Side.OURS, 5000, 20, 15.0, 100_000, 2.0, 300.0, 0.5, 9.0),
            ManyGroupsRun(Side.MM2, 5000, 20, 15.0, 17_000, 8.0, 900.0),
        ]
    )
    assert goal(results, "checkpoints of many groups: CPU against MM2").reached == 0.25
    after = goal(results, "checkpoints of many groups: from the first to the last")
    assert (after.target, after.reached) == (15.0, 9.0)


def test_many_topics_are_compared_by_what_each_takes() -> None:
    ours = topics_run(Side.OURS, topics=5000, cpu_s=20.0)
    results = Results(topics=[ours, topics_run(Side.MM2, topics=2500, cpu_s=20.0)])
    for what in ("time until all are there", "CPU until then", "CPU of looking again"):
        assert goal(results, f"5,000 topics: {what} against MM2").reached == 0.5
    results.topics[1] = topics_run(Side.MM2, topics=2500, cpu_s=20.0, made=17)
    for what in ("time until all are there", "CPU until then", "CPU of looking again"):
        assert goal(results, f"5,000 topics: {what} against MM2").reached is None


def test_a_loaded_api_answers_in_time_and_without_errors() -> None:
    results = Results(
        rest_loads=[
            rest_load(None, p99_ms=3.0, codes={"200": 5000}),
            rest_load(Side.MM2, p99_ms=90.0, codes={"200": 10, "500": 7}),
            rest_load(Side.OURS, p99_ms=20.0, codes={"200": 10, "404": 9, "503": 2}, lost=4),
        ]
    )
    under_load = "REST, 200 clients while connectors change"
    assert goal(results, f"{under_load}: p99").reached == 20.0
    # Two polls, one change, and four answers that never came.
    assert goal(results, f"{under_load}: answers 5xx or none").reached == 7.0


def test_growth_counts_from_the_end_of_the_first_round() -> None:
    held = (Holdings(100.0, 13, 40, 30), Holdings(150.0, 99, 90, 80), Holdings(102.0, 14, 38, 28))
    results = Results(rest_rounds=[rest_rounds(Side.OURS, *held), rest_rounds(Side.MM2, held[1])])
    gone = "400 connectors made and deleted"
    left = {what: goal(results, f"{gone}: {what} left").reached for what in ("threads", "sockets")}
    assert left == {"threads": 1.0, "sockets": -2.0}
    memory = goal(results, f"{gone}: memory of each")
    assert memory.reached == pytest.approx(5.12)
    assert memory.is_met


def test_goals_of_a_worker_without_figures_are_not_measured() -> None:
    found = goals(Results(failures=[Failure("rest", Side.OURS, 1, "why")]))
    assert len(found) == 5
    assert {goal.reached for goal in found} == {None}
