from bench.__main__ import options_from
from bench.plan import Plan, plan_from
from bench.sides import Side


def plan(*arguments: str) -> Plan:
    return plan_from(options_from(arguments))


def test_without_options_everything_runs_and_may_be_published() -> None:
    assert plan().is_complete
    assert (plan().runs, plan().sides, plan().idle_partitions) == (3, tuple(Side), 1000)


def test_parts_may_not_be_published() -> None:
    parts = (["--only", "1kb"], ["--sides", "ours,mm2"], ["--runs", "2"], ["--records", "1000"], ["--quick"])
    assert not any(plan(*arguments).is_complete for arguments in parts)


def test_only_leaves_out_the_rest() -> None:
    chosen = plan("--only", "100b-lz4", "idle")
    assert [workload.name for workload in chosen.workloads] == ["100b-lz4"]
    assert (chosen.latency_runs, chosen.memory_workload, chosen.idle_partitions) == (0, None, 1000)


def test_without_ours_nothing_of_ours_alone_is_measured() -> None:
    chosen = plan("--sides", "mm2")
    assert (chosen.memory_workload, chosen.idle_partitions, chosen.latency_sides) == (None, 0, (Side.MM2,))


def test_no_side_always_comes_first() -> None:
    assert {plan().order(run)[0] for run in range(1, 6)} == set(Side)


def test_quick_is_one_small_run() -> None:
    assert plan("--quick").runs == 1
    assert plan("--quick").workloads[0].records < plan().workloads[0].records
