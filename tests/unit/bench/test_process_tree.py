import os

from bench.process_tree import ProcessStat, descendants, parse_machine_cpu, parse_stat, spark_workers

TICKS = os.sysconf("SC_CLK_TCK")


def stat(pid: int, parent: int, name: str = "python", cpu_s: float = 0.0) -> ProcessStat:
    return ProcessStat(pid, parent, name, cpu_s)


def test_a_name_may_hold_spaces_and_parentheses() -> None:
    line = f"42 (tmux: (a) b) S 7 42 42 0 -1 0 1 2 3 4 {TICKS} {2 * TICKS} {3 * TICKS} {4 * TICKS} 20 0 1"
    assert parse_stat(line) == ProcessStat(42, 7, "tmux: (a) b", 10.0)


def test_idle_cores_and_waits_for_disks_are_no_work() -> None:
    assert (
        parse_machine_cpu(f"cpu  {TICKS} {TICKS} {TICKS} 900 900 {TICKS} {TICKS} {TICKS} 7 7\ncpu0 1") == 6.0
    )


def test_descendants_include_grandchildren_and_no_other_processes() -> None:
    assert descendants([stat(2, 1), stat(3, 2), stat(4, 3), stat(9, 8)], root=2) == {2, 3, 4}


def test_spark_workers_are_the_children_of_the_daemon_below_a_jvm() -> None:
    tree = [
        stat(1, 0),
        stat(2, 1),
        stat(3, 2, "java"),
        stat(4, 3),
        stat(5, 4),
        stat(6, 4),
        stat(7, 3, "bash"),
    ]
    assert spark_workers({each.pid: each for each in tree}) == [5, 6]


def test_a_lone_jvm_has_no_spark_workers() -> None:
    assert spark_workers({3: stat(3, 2, "java"), 4: stat(4, 3, "java")}) == []
