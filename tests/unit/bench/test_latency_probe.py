from bench.latency_probe import Arrival, latencies_ms

MS = 1_000_000
SECOND = 1000 * MS


def test_records_of_the_warm_up_are_left_out() -> None:
    arrivals = [
        Arrival(0, 0, 5 * MS),
        Arrival(0, SECOND, SECOND + 3 * MS),
        Arrival(0, 3 * SECOND, 3 * SECOND),
    ]
    assert list(latencies_ms(iter(arrivals), 1, 0.5, 1.0)) == [3.0]


def test_a_slow_partition_is_waited_for() -> None:
    arrivals = [
        Arrival(0, 0, 0),
        Arrival(0, 2 * SECOND, 2 * SECOND),
        Arrival(1, SECOND // 2, 3 * SECOND),
        Arrival(1, 2 * SECOND, 3 * SECOND),
        Arrival(1, 0, 9 * SECOND),
    ]
    assert list(latencies_ms(iter(arrivals), 2, 0.0, 1.0)) == [2500.0]
