import io

from rich.console import Console

from sparkmirror.cli.commands.demo.dashboard import Dashboard, plain_line
from sparkmirror.cli.commands.demo.throughput import Rates

ORDERS = Rates("orders", 4, 1234.4, 2_500_000.0, 17, 1.26, 9.0)
TOTAL = Rates("all", 8, 5000.0, 4_000_000.0, None, None, None)


def test_a_plain_line_has_units() -> None:
    assert plain_line(ORDERS, "live: 3 of 5 s") == (
        "1,234 records/s, 2.50 MB/s, lag 17, latency p50 1.3 ms, p99 9.0 ms; live: 3 of 5 s"
    )


def test_unknown_values_are_dashes() -> None:
    assert "lag -, latency p50 - ms" in plain_line(TOTAL, "")


def test_a_terminal_gets_a_table_with_a_total() -> None:
    out = io.StringIO()
    with Dashboard(Console(file=out, width=120, force_terminal=True)) as dashboard:
        dashboard.show([ORDERS], TOTAL, "live: 3 of 5 s", now=3.0)

    for text in ("topic", "offset lag", "orders", "1,234", "all", "5,000", "live: 3 of 5 s"):
        assert text in out.getvalue()
