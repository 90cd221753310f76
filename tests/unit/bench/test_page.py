import json

from bench.__main__ import as_json, options_from
from bench.machine import Machine
from bench.measures import Percentiles
from bench.page import Measurement, page
from bench.plan import plan_from
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

MEASUREMENT = Measurement(
    date="2026-01-02",
    command="python -m bench",
    machine=Machine("a CPU", 2, 23.5, "Linux 6", "3.11", "17", "4.3.0", "4.3.1", "0.1.0"),
    plan=plan_from(options_from([])),
    broker_heap_mb=1024,
    broker_settings={"auto.create.topics.enable": "false"},
)


def results() -> Results:
    filled = Results(failures=[Failure("100b-lz4", Side.OURS, 2, "first line\nsecond | line")])
    filled.throughput += [
        throughput_run(side, rate=rate) for side, rate in ((Side.OURS, 1e5), (Side.MM2, 5e4))
    ]
    return filled


def test_page_has_the_machine_and_the_method() -> None:
    text = page(results(), MEASUREMENT)
    for expected in (
        "    python -m bench\n",
        "2026-01-02",
        "a CPU",
        "tasks.max = 2",
        "-Xmx2G",
        "batch.size = 327680",
    ):
        assert expected in text


def test_a_missed_target_is_explained_with_the_load_of_the_machine() -> None:
    text = page(results(), MEASUREMENT)
    assert "2 times instead of ≥ 3, 33 % too little." in text
    assert "the target's broker 1.00, others 0.10. 15 % of the machine was idle" in text


def test_a_missed_ceiling_is_explained_with_what_reading_takes_from_it() -> None:
    filled = results()
    filled.throughput += [
        throughput_run(side, rate=rate) for side, rate in ((Side.CEILING, 2e5), (Side.CEILING_READS, 1.8e5))
    ]
    text = page(filled, MEASUREMENT)
    assert "| ≥ 0.85 times | 0.5 times (a ceiling that reads: 0.9) | no, by 41 % |" in text
    assert "drops what it read, reaches 0.9; sparkmirror's throughput is 0.556 times that.\n" in text


def test_the_relay_has_a_row_and_stands_beside_the_goal_that_it_shares() -> None:
    filled = results()
    for side, p99 in ((None, 1.0), (Side.OURS, 6.0), (Side.MM2, 8.0), (Side.RELAY, 5.0)):
        filled.latency.append(LatencyRun(side, 1, Percentiles(15_000, 0.5, p99, 2 * p99, 9.0)))
    text = page(filled, MEASUREMENT)
    assert "| relay (nothing but reading and writing) | 0.50 | 5.00 | 10.00 | 9.00 |" in text
    assert "| sparkmirror's, times the relay's | 1.00 | 1.20 | 1.20 | 1.00 |" in text
    assert "| latency p99 against MM2 | ≤ 0.5 times | 0.75 times (a relay: 0.625) | no, by 50 % |" in text
    assert (
        "50 % too much. What nothing but a relay reaches on this machine: 0.625 times MM2's;"
        " sparkmirror's p99 is 1.2 times the relay's. So what does nothing else misses the target as well.\n"
    ) in text
    assert json.loads(as_json(filled, MEASUREMENT))["results"]["latency"][-1]["side"] == "relay"


def test_page_without_relay_does_not_mention_it() -> None:
    filled = results()
    filled.latency += [
        LatencyRun(side, 1, Percentiles(1, 1.0, 8.0, 1.0, 1.0)) for side in (Side.OURS, Side.MM2)
    ]
    text = page(filled, MEASUREMENT)
    assert "**latency p99 against MM2**: 1 times instead of ≤ 0.5, 100 % too much.\n" in text
    assert "times the relay's" not in text


def test_a_failed_run_stays_one_row_of_its_table() -> None:
    assert "| 100b-lz4 run 2, sparkmirror | first line second / line |" in page(results(), MEASUREMENT)


def test_a_long_reason_keeps_its_beginning_and_its_end() -> None:
    filled = Results(failures=[Failure("1kb", Side.OURS, 1, "begin " + "log " * 500 + "end")])
    (row,) = (line for line in page(filled, MEASUREMENT).splitlines() if line.startswith("| 1kb run 1"))
    assert len(row) < 500
    assert "| begin log" in row
    assert row.endswith("log end |")


def test_measurements_other_than_throughput_have_tables_of_their_own() -> None:
    filled = results()
    filled.pairs.append(PairRun("1kb", Pairing.ONE_REQUEST, 1, 98.0, 2.0, 100.0, 1.6))
    filled.far.append(
        FarRun(
            "target far",
            fills_requests=True,
            round_trip_s=0.1,
            start_s=1.5,
            bytes_per_s=45e6,
            bound_bytes_per_s=50e6,
            requests_under_way=5,
        )
    )
    filled.grown.append(IdleRun(5000, 30.0, 4.0, 2.0, 800.0, 21.0))
    filled.hot.append(HotRun(Side.OURS, 0, (Burst(200.0, 2.0),), 300.0))
    filled.hot.append(HotRun(Side.OURS, 2000, (Burst(150.0, 2.5),), 400.0))
    text = page(filled, MEASUREMENT)
    assert "| 1 KB, no codec, one request under way in both | 1 | 98 | 100 | 0.980 | 1.250 |" in text
    assert "| target far | 100 ms | 45.0 | 50.0 | 0.90 | 5 | 1.5 |" in text
    assert (
        "| 5,000 quiet partitions, one task: first record in all of them, after the start | 21.0 s |" in text
    )
    assert "| sparkmirror, beside 2,000 quiet ones | 150 | 0.75 | 2.50 | 400 |" in text


def test_settings_of_single_workloads_are_shown() -> None:
    text = page(results(), MEASUREMENT)
    assert 'Added for "1 KB, lz4 to zstd"' in text
    assert "target.exactly.once.source.support = enabled" in text


def test_sides_without_runs_have_no_column() -> None:
    assert "|  | sparkmirror | MM2, defaults |" in page(results(), MEASUREMENT)


def test_json_holds_every_run_under_the_names_of_the_options() -> None:
    content = json.loads(as_json(results(), MEASUREMENT))
    assert [run["side"] for run in content["results"]["throughput"]] == ["ours", "mm2"]
    assert content["goals"][0]["reached"] == 2.0


def test_groups_have_tables_with_a_column_for_each_kind_of_topic() -> None:
    filled = results()
    for kind, again in (("plain", (0, 0)), ("compacted", (1, 4))):
        filled.translations.append(TranslationRun(Side.OURS, Moment.RESTARTED, kind, again, 0, 0.5, 0))
    filled.many_groups += [
        ManyGroupsRun(Side.OURS, 5000, 20, 15.0, 100_000, 8.0, 900.0, 1.25, 9.04),
        ManyGroupsRun(Side.MM2, 5000, 20, 15.0, 17_000, 20.0, 900.0),
    ]
    text = page(filled, MEASUREMENT)
    assert "|  | plain: mean (highest) | compacted: mean (highest) | missed | in runs | again there |" in text
    assert "| after a restart: sparkmirror | 0.0 (0) | 2.5 (4) | 0 | 50 % | 0 |" in text
    assert "### Checkpoints of 5,000 groups, 20 partitions each" in text
    assert "| sparkmirror | 100,000 of 100,000 | 1.25 | 8.00 | 9.0 | 900 |" in text
    assert "| MM2, defaults | 17,000 of 100,000 | - | 20.00 | - | 900 |" in text


def test_the_api_has_the_floor_beside_the_workers_and_what_they_held() -> None:
    filled = results()
    filled.rest_loads += [
        rest_load(None, p99_ms=3.0, codes={"200": 5000}),
        rest_load(Side.OURS, p99_ms=20.0, codes={"404": 9, "200": 19_991}),
    ]
    filled.rest_rounds.append(
        rest_rounds(Side.OURS, Holdings(100.0, 13, 40, 30), Holdings(102.4, 14, 38, 28))
    )
    text = page(filled, MEASUREMENT)
    assert "### REST: 200 clients poll connectors' statuses" in text
    assert "| a server that does nothing, 20 s | 1.00 | 3.00 | 3.00 | 6.00 | 5,000 of 200 |" in text
    assert (
        "| sparkmirror, 200 connectors | 1.00 | 20.00 | 20.00 | 40.00 | 19,991 of 200, 9 of 404 | "
        "20 of 201, 1 of 500 |" in text
    )
    assert "### Connectors created, reconfigured and deleted, round after round" in text
    assert "| sparkmirror, 200 connectors, 2 times |" in text
    assert "100 MB, 13 threads, 30 sockets, 40 files | 102 MB, 14 threads, 28 sockets, 38 files |" in text


def test_many_topics_table_has_requests_and_cpu() -> None:
    filled = results()
    filled.topics += [
        topics_run(Side.OURS, topics=5000, cpu_s=20.0),
        topics_run(Side.MM2, topics=5000, cpu_s=30.0, made=17),
    ]
    text = page(filled, MEASUREMENT)
    first = "| 3.0 | 2 CreateTopics, 7 Metadata |"
    assert f"| sparkmirror | 5,000 of 5,000 | 20.0 | 20.0 {first} 2.0 | 1.5 | 12 Metadata | 400 |" in text
    assert f"| MM2, defaults | 17 of 5,000 | - | 30.0 {first} - | - | - | 400 |" in text
    assert "every 3rd has a config of its own" in text
