import io

from rich.console import Console

from sparkmirror.cli.demo.compare import Comparison, Difference
from sparkmirror.cli.demo.verdict import TopicVerdict, is_whole, print_verdict
from sparkmirror.domain.ids import TopicPartition

EQUAL = TopicVerdict("orders", "source.orders", 4, 1000, Comparison(1000, 2_000_000))
LACKING = TopicVerdict("payments", "source.payments", 4, 1000, Comparison(999, 1))
DIFFERENT = TopicVerdict(
    "customers",
    "source.customers",
    4,
    1000,
    Comparison(
        7,
        1,
        Difference(
            TopicPartition("customers", 2),
            TopicPartition("source.customers", 2),
            8,
            7,
            "key b'[a]' became b'b'",
        ),
    ),
)


def printed(*verdicts: TopicVerdict) -> str:
    out = io.StringIO()
    print_verdict(Console(file=out, width=120), verdicts)
    return out.getvalue()


def test_equal_clusters() -> None:
    assert is_whole([EQUAL])
    assert "✓ All 1,000 records (2.0 MB) are the same on both clusters" in printed(EQUAL)


def test_records_that_are_on_neither_cluster_are_missed() -> None:
    assert not is_whole([EQUAL, LACKING])
    assert "payments: 1,000 records were written, 999 are on both clusters" in printed(EQUAL, LACKING)


def test_the_first_difference_is_printed_as_it_is() -> None:
    assert not is_whole([DIFFERENT])
    assert "customers-2 offset 8 and source.customers-2 offset 7: key b'[a]' became b'b'" in printed(
        EQUAL, DIFFERENT
    )
