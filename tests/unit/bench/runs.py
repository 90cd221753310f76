"""Makes benchmark results with round numbers, of which tests change one field at a time."""

from bench.measures import Percentiles, Window
from bench.results import Holdings, RestLoadRun, RestRoundsRun, ThroughputRun, TopicsRun
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


def rest_load(side: Side | None, *, p99_ms: float, codes: dict[str, int], lost: int = 0) -> RestLoadRun:
    """20,000 requests for a second of CPU."""
    latency = Percentiles(20_000, 1.0, p99_ms, p99_ms, 2 * p99_ms)
    return RestLoadRun(side, 200, 200, 20.0, latency, codes, {"201": 20, "500": 1}, lost, 1.0, 0.5)


def rest_rounds(side: Side, *held: Holdings) -> RestRoundsRun:
    """Return as many rounds of 200 connectors as there are holdings."""
    each = tuple(3.0 for _ in held)
    return RestRoundsRun(side, 200, each, each, held, Holdings(300.0, 250, 400, 390), {"201": 200})


def topics_run(side: Side, *, topics: int, cpu_s: float, made: int | None = None) -> TopicsRun:
    """All were there after as many seconds as they took CPU; then a tenth of it a minute."""
    requests = {"Metadata": 7, "CreateTopics": 2}
    if made is not None:
        return TopicsRun(side, topics, made, cpu_s, 3.0, requests, 400.0)
    steady = {"Metadata": 12.0}
    return TopicsRun(side, topics, topics, cpu_s, 3.0, requests, 400.0, cpu_s, cpu_s / 10, 1.5, steady)
