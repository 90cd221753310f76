"""Results as tests need them: round numbers, one field changed at a time."""

from bench.measures import Window
from bench.results import ThroughputRun
from bench.sides import Side


def throughput_run(
    side: Side, *, rate: float, cpu_per_million: float = 1.0, workload: str = "1kb"
) -> ThroughputRun:
    """A run of 10 s on a machine whose target broker used one core."""
    records = int(rate * 10)
    window = Window(records, 10.0, cpu_per_million * records / 1e6, 5.0, 10.0, 17.0)
    return ThroughputRun(
        workload=workload,
        side=side,
        run=1,
        start_s=4.0,
        start_cpu_s=3.0,
        copying=window,
        second_half=window,
        stop_s=1.0,
        total_cpu_s=20.0,
        peak_pss_mb=300.0,
        peak_worker_pss_mb=150.0,
        killed=False,
    )
