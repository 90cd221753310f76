"""CPU and memory of a process and all its descendants, the dead ones included. Linux only: it reads /proc.

A dead process's CPU is added by the kernel to the parent that waited for it, so living processes' own and
waited-for time together are complete, with one exception: a parent that ignores SIGCHLD (PySpark's worker
daemon does) gets nothing. What such a parent's children had used when last seen is remembered here.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_SIGCHLD_BIT = 1 << 16
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """One line of /proc/PID/stat. `cpu_s` includes the children that were waited for."""

    pid: int
    parent_pid: int
    name: str
    cpu_s: float


def parse_stat(text: str) -> ProcessStat:
    """The name stands in parentheses and may itself hold spaces and parentheses."""
    head, _, tail = text.rpartition(")")
    pid, _, name = head.partition(" (")
    fields = tail.split()
    ticks = sum(int(ticks) for ticks in fields[11:15])
    return ProcessStat(int(pid), int(fields[1]), name, ticks / _TICKS_PER_S)


def descendants(stats: Iterable[ProcessStat], root: int) -> frozenset[int]:
    """`root` and everything below it."""
    children: dict[int, list[int]] = {}
    for stat in stats:
        children.setdefault(stat.parent_pid, []).append(stat.pid)
    found, queue = {root}, [root]
    while queue:
        below = children.get(queue.pop(), [])
        found.update(below)
        queue.extend(below)
    return frozenset(found)


def read_stat(pid: int) -> ProcessStat | None:
    """None when the process is gone."""
    try:
        return parse_stat((_PROC / str(pid) / "stat").read_text())
    except OSError:
        return None


def all_stats() -> list[ProcessStat]:
    pids = (int(entry.name) for entry in _PROC.iterdir() if entry.name.isdecimal())
    return [stat for pid in pids if (stat := read_stat(pid))]


def machine_cpu_s() -> float:
    """Return the CPU seconds of all cores together since boot."""
    return parse_machine_cpu((_PROC / "stat").read_text())


def parse_machine_cpu(text: str) -> float:
    """The first line of /proc/stat, without idle and iowait; user time already holds that of guests."""
    user, nice, system, _idle, _iowait, irq, softirq, steal = (int(ticks) for ticks in text.split()[1:9])
    return (user + nice + system + irq + softirq + steal) / _TICKS_PER_S


def pss_mb(pid: int) -> float:
    """Proportional set size: shared pages count for each process by its share. 0 when the process is gone."""
    try:
        lines = (_PROC / str(pid) / "smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    kilobytes = next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)
    return kilobytes / 1024


def _ignores_dead_children(pid: int) -> bool:
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return False
    mask = next((line.split()[1] for line in lines if line.startswith("SigIgn:")), "0")
    return bool(int(mask, 16) & _SIGCHLD_BIT)


@dataclass(slots=True)
class ProcessTree:
    """The root must outlive its tree and adopt its orphans (`bench.launcher` does)."""

    root: int
    _known: dict[int, ProcessStat] = field(default_factory=dict)
    _uncounted: set[int] = field(default_factory=set)
    _lost_cpu_s: float = 0.0

    def refresh(self) -> None:
        """Look at every process of the machine; costs milliseconds, so once a second is enough."""
        stats = all_stats()
        inside = descendants(stats, self.root)
        self._replace({stat.pid: stat for stat in stats if stat.pid in inside})
        parents = {stat.parent_pid for stat in self._known.values()}
        careless = {pid for pid in parents if pid in inside and _ignores_dead_children(pid)}
        self._uncounted = {stat.pid for stat in self._known.values() if stat.parent_pid in careless}

    def cpu_s(self) -> float:
        """User and system seconds of the processes known since the last refresh, and of all that died."""
        current = {pid: stat for pid in self._known if (stat := read_stat(pid))}
        self._replace(current)
        return sum(stat.cpu_s for stat in current.values()) + self._lost_cpu_s

    @property
    def lost_cpu_s(self) -> float:
        """CPU of dead processes that no parent's account holds."""
        return self._lost_cpu_s

    def pids(self) -> frozenset[int]:
        """All but the root, which is the launcher and no part of the side."""
        return frozenset(self._known) - {self.root}

    def first_child(self) -> int:
        """The command line that the launcher runs."""
        return min(pid for pid, stat in self._known.items() if stat.parent_pid == self.root)

    def pss_mb(self) -> float:
        return sum(pss_mb(pid) for pid in self.pids())

    def spark_worker_pids(self) -> list[int]:
        return spark_workers(self._known)

    def spark_worker_pss_mb(self) -> tuple[float, ...]:
        """Return the PSS of each Spark Python worker: a child of the daemon that is a child of a JVM."""
        return tuple(pss_mb(pid) for pid in spark_workers(self._known))

    def spark_worker_cpu_s(self) -> float:
        return sum(self._known[pid].cpu_s for pid in spark_workers(self._known))

    def _replace(self, current: dict[int, ProcessStat]) -> None:
        gone = self._known.keys() - current.keys()
        self._lost_cpu_s += sum(self._known[pid].cpu_s for pid in gone & self._uncounted)
        self._uncounted -= gone
        self._known = current


def spark_workers(stats: Mapping[int, ProcessStat]) -> list[int]:
    """The processes whose parent's parent is a JVM and whose parent is not."""
    return [
        pid for pid, stat in stats.items() if _grandparent_name(stats, stat) == "java" and stat.name != "java"
    ]


def _grandparent_name(stats: Mapping[int, ProcessStat], stat: ProcessStat) -> str:
    parent = stats.get(stat.parent_pid)
    grandparent = stats.get(parent.parent_pid) if parent and parent.name != "java" else None
    return grandparent.name if grandparent else ""
