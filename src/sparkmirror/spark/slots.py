"""Computes how many tasks Spark's settings allow at the same time. Pure."""

import re
from collections.abc import Callable
from typing import Final

Settings = Callable[[str], str | None]
"""Returns the value of a `spark.*` setting, or None."""

UNBOUNDED: Final = 1 << 30
"""More slots than mirrors have tasks: Spark's settings set no limit, or don't tell."""
_COUNTED_MAX: Final = 1 << 16


def counted_slots(slots: int) -> int | None:
    """The number to show; None for a share of slots without a bound."""
    return slots if slots < _COUNTED_MAX else None


def is_local(master: str) -> bool:
    """Whether tasks run in the driver's process. `local-cluster` starts executors, as a cluster does."""
    return master.startswith("local") and not master.startswith("local-cluster")


def local_slots(master: str) -> int | None:
    """The slots of a local master that names their number."""
    match = re.match(r"local\[(\d+)", master)
    return 1 if master == "local" else match and int(match[1])


def allocated_slots(settings: Settings) -> int | None:
    """The slots that dynamic allocation can bring, whatever is there now; None where it is off.

    Executors are requested for tasks that wait, so there must be tasks before there are executors.
    """
    master = settings("spark.master") or ""
    if is_local(master) or (settings("spark.dynamicAllocation.enabled") or "").lower() != "true":
        return None
    cpus = _number(settings("spark.task.cpus")) or 1
    # A standalone executor has all cores of its worker, unless the setting says otherwise; others have one.
    default = UNBOUNDED if master.startswith("spark://") else 1
    cores = _number(settings("spark.executor.cores")) or default
    executors = _number(settings("spark.dynamicAllocation.maxExecutors")) or UNBOUNDED
    bounds = [executors * max(1, cores // cpus), UNBOUNDED]
    if (cores_max := _number(settings("spark.cores.max"))) is not None:
        bounds.append(cores_max // cpus)
    return max(1, min(bounds))


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
