import io

from rich.console import Console

from sparkmirror.cli.commands.demo.demo import print_proof
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.verify.rules_and_result import Comparison, Difference
from sparkmirror.verify.verdict import FlowVerdict, PartitionVerdict

WRITTEN = {"orders": 1000, "payments": 500}


def partition(topic: str, number: int, comparison: Comparison) -> PartitionVerdict:
    return PartitionVerdict(
        TopicPartition(topic, number), TopicPartition(f"source.{topic}", number), comparison
    )


def proof(*partitions: PartitionVerdict) -> tuple[bool, str]:
    out = io.StringIO()
    is_whole = print_proof(Console(file=out, width=120), FlowVerdict("source->target", partitions), WRITTEN)
    return is_whole, out.getvalue()


ORDERS = [partition("orders", 0, Comparison(equal=400)), partition("orders", 1, Comparison(equal=600))]


def test_equal_clusters_that_hold_all_that_was_written_are_whole() -> None:
    is_whole, text = proof(*ORDERS, partition("payments", 0, Comparison(equal=500)))
    assert is_whole
    assert "✓ 1,500 records are the same on both clusters" in text


def test_records_that_are_on_neither_cluster_are_missed() -> None:
    is_whole, text = proof(*ORDERS, partition("payments", 0, Comparison(equal=499)))
    assert not is_whole
    assert "payments: 500 records were written, 499 are equal on both clusters" in text


def test_a_topic_that_was_not_compared_is_missed() -> None:
    is_whole, text = proof(*ORDERS)
    assert not is_whole
    assert "payments: 500 records were written, 0 are equal on both clusters" in text


def test_a_difference_is_printed_as_it_is() -> None:
    difference = Difference("key", 8, 7, "key '[a]' became 'b'")
    different = Comparison(equal=500, counts={"key": 1}, differences=(difference,))
    is_whole, text = proof(*ORDERS, partition("payments", 2, different))
    assert not is_whole
    assert (
        "payments-2 and source.payments-2: key: source offset 8, target offset 7: key '[a]' became 'b'"
        in text
    )
