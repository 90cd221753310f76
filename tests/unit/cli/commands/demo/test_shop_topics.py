import json
import random
from collections import Counter

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.cli.commands.demo.shop_topics import SHOP_TOPICS, ShopTopic

TOPICS = {topic.name: topic for topic in SHOP_TOPICS}


def records(name: str, count: int = 2000) -> list[LogRecord]:
    rng = random.Random(7)
    return [TOPICS[name].make_record(rng, number) for number in range(count)]


def test_the_shares_are_a_whole() -> None:
    assert sum(topic.share for topic in SHOP_TOPICS) == pytest.approx(1)


@pytest.mark.parametrize("topic", SHOP_TOPICS, ids=lambda topic: topic.name)
def test_values_are_json_and_the_seed_decides(topic: ShopTopic) -> None:
    made = records(topic.name)

    assert all(json.loads(record.value) for record in made if record.value is not None)
    assert made == records(topic.name)


def test_orders_have_headers_with_null_values_and_repeated_names() -> None:
    headers = [record.headers for record in records("orders")]

    assert any(value is None for pairs in headers for _, value in pairs)
    assert any(Counter(name for name, _ in pairs)["voucher"] == 2 for pairs in headers)


def test_customers_have_tombstones_in_a_compacted_topic() -> None:
    assert TOPICS["customers"].config == {"cleanup.policy": "compact"}
    assert 0.1 < sum(record.value is None for record in records("customers")) / 2000 < 0.2


def test_more_than_half_of_the_page_views_have_one_key() -> None:
    keys = Counter(record.key for record in records("page-views"))

    assert keys[b"/"] > 1000
