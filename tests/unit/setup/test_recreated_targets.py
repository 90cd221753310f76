"""Copies that are another topic than before, whether anything is copied to them or not."""

from sparkmirror.domain.ids import TopicPartition
from sparkmirror.domain.topics import ListedTopic, TopicListing
from sparkmirror.settings.copy_partition import CopyPartition
from sparkmirror.setup.recreated_targets import RecreatedTargets

ORDERS = [CopyPartition(TopicPartition("orders", at), "us.orders") for at in range(2)]


def listing(**ids: bytes) -> TopicListing:
    return TopicListing({f"us.{name}": ListedTopic(2, topic_id) for name, topic_id in ids.items()})


def test_a_copy_that_was_created_again_is_found_once() -> None:
    copies, again = RecreatedTargets(), listing(orders=b"2", bystander=b"4")
    assert copies.found(listing(orders=b"1", bystander=b"3"), ORDERS) == []
    assert copies.found(again, ORDERS) == ["us.orders"]
    assert copies.found(again, ORDERS) == []
    assert copies.found(listing(orders=b"2"), ORDERS) == []


def test_a_copy_that_was_away_at_a_look_is_found() -> None:
    copies = RecreatedTargets()
    for seen in (listing(orders=b"1"), listing()):
        assert copies.found(seen, ORDERS) == []
    assert copies.found(listing(orders=b"2"), ORDERS) == ["us.orders"]


def test_one_that_comes_back_with_its_id_is_the_same() -> None:
    copies = RecreatedTargets()
    for seen in (listing(orders=b"1"), listing(), listing(orders=b"1")):
        assert copies.found(seen, ORDERS) == []


def test_brokers_without_ids_say_nothing() -> None:
    copies = RecreatedTargets()
    for seen in (listing(orders=b""), listing(), listing(orders=b"")):
        assert copies.found(seen, ORDERS) == []
