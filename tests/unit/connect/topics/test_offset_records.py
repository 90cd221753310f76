"""Checks offset records and requests, with the messages of Java's MirrorUtils."""

from collections.abc import Iterable
from http import HTTPStatus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.connect.topics.offset_records import (
    OffsetFold,
    OffsetKey,
    checked_offsets,
    copied_offsets,
    offset_key,
    offset_record,
    parse_offset_key,
    set_back,
)
from sparkmirror.domain.connect import ConnectError, ConnectorOffset
from sparkmirror.domain.errors import MalformedRecordError

SOURCE = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
CHECKPOINT = "MirrorCheckpointConnector"
HEARTBEAT = "MirrorHeartbeat"
ORDERS = {"topic": "orders", "partition": 3, "cluster": "A"}
GROUP = {"topic": "A.orders", "partition": 3, "group": "g"}
ALIASES = {"targetClusterAlias": "B", "sourceClusterAlias": "A"}


@pytest.mark.parametrize(
    ("partition", "key"),
    [
        (ORDERS, b'["c",{"cluster":"A","partition":3,"topic":"orders"}]'),
        (GROUP, b'["c",{"partition":3,"topic":"A.orders","group":"g"}]'),
        (ALIASES, b'["c",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]'),
    ],
)
def test_offset_keys_have_connects_bytes(partition: dict[str, object], key: bytes) -> None:
    for given_order in (partition, dict(reversed(partition.items()))):
        assert offset_key("c", given_order) == key
    assert parse_offset_key(key) == OffsetKey("c", partition)


def test_offset_values_have_connects_bytes() -> None:
    assert offset_record("c", ConnectorOffset(ORDERS, {"offset": 99})).value == b'{"offset":99}'
    assert offset_record("c", ConnectorOffset(ORDERS, None)).value is None
    assert offset_record("c", ConnectorOffset(ORDERS, None)).partition is None


def test_partition_whose_producer_id_is_stored_before_its_first_record_is_not_shown() -> None:
    nothing, first = ConnectorOffset(ORDERS, {"offset": -1}), ConnectorOffset(ORDERS, {"offset": 0})
    removed = ConnectorOffset(ALIASES, None)
    assert copied_offsets([nothing, first, removed]) == [first, removed]


def test_the_fold_keeps_the_last_of_one_connector() -> None:
    other = {**ORDERS, "partition": 10}
    records = [
        offset_record("c", ConnectorOffset(other, {"offset": 5})),
        offset_record("c", ConnectorOffset(ORDERS, {"offset": 1})),
        offset_record("another", ConnectorOffset(ORDERS, {"offset": 7})),
        offset_record("c", ConnectorOffset(ALIASES, {"offset": 0})),
        offset_record("c", ConnectorOffset(ORDERS, {"offset": 2})),
        offset_record("c", ConnectorOffset(ALIASES, None)),
    ]
    assert folded(records) == [ConnectorOffset(ORDERS, {"offset": 2}), ConnectorOffset(other, {"offset": 5})]


def test_under_a_key_in_another_order_there_is_a_partition_without_an_offset() -> None:
    """Java shows the same, since it never finds that value."""
    odd = LogRecord(b'["c",{"topic":"orders","partition":3,"cluster":"A"}]', b'{"offset":4}')
    assert folded([odd]) == [ConnectorOffset(ORDERS, None)]
    whole = offset_record("c", ConnectorOffset(ORDERS, {"offset": 5}))
    assert folded([whole, odd]) == [ConnectorOffset(ORDERS, {"offset": 5})]
    assert folded([odd, offset_record("c", ConnectorOffset(ORDERS, None))]) == []


@pytest.mark.parametrize("value", [b"null", b"", b"{", b"[1]"])
def test_a_value_that_is_no_offset_is_shown_as_none(value: bytes) -> None:
    assert folded([LogRecord(offset_key("c", ORDERS), value)]) == [ConnectorOffset(ORDERS, None)]


@pytest.mark.parametrize(
    "key",
    [None, b"", b"{", b"{}", b"[]", b'["c"]', b'["c",{},1]', b"[1,{}]", b'["c",null]', b'["c",[]]', b"\xff"],
)
def test_malformed_keys_are_errors(key: bytes | None) -> None:
    with pytest.raises(MalformedRecordError):
        OffsetFold("c").take(LogRecord(key, b'{"offset":1}'))


def test_fields_of_requests_are_put_into_javas_order() -> None:
    checked = checked_offsets(
        SOURCE,
        [
            ConnectorOffset(ORDERS, {"offset": 1}),
            ConnectorOffset({"any": "thing"}, None),
            ConnectorOffset(dict(reversed(ORDERS.items())), {"offset": 2}),
        ],
    )
    assert checked == [ConnectorOffset(ORDERS, {"offset": 2}), ConnectorOffset({"any": "thing"}, None)]
    assert list(checked[0].partition) == ["cluster", "partition", "topic"]
    assert checked_offsets(CHECKPOINT, [ConnectorOffset(GROUP, {"offset": 0})])
    assert checked_offsets(HEARTBEAT, [ConnectorOffset(ALIASES, {"offset": 0})])


_ONE = {"offset": 1}
_ZERO = {"offset": 0}


@pytest.mark.parametrize(
    ("connector", "partition", "offset", "message"),
    [
        (SOURCE, {}, _ONE, 'needs "cluster", a string'),
        (SOURCE, {"cluster": "A", "partition": 3}, _ONE, 'needs "topic", a string'),
        (SOURCE, {"cluster": "A", "topic": "t"}, _ONE, 'needs "partition", a number'),
        (SOURCE, {**ORDERS, "cluster": 5}, _ONE, 'needs "cluster", a string'),
        (SOURCE, {**ORDERS, "partition": "3"}, _ONE, 'needs "partition", a number'),
        (SOURCE, {**ORDERS, "partition": 2**31}, _ONE, "from 0 to 2147483647"),
        (SOURCE, {**ORDERS, "partition": True}, _ONE, 'needs "partition", a number'),
        (SOURCE, {**ORDERS, "partition": -1}, _ONE, "from 0 to 2147483647"),
        (SOURCE, ORDERS, {}, 'needs "offset", a number'),
        (SOURCE, ORDERS, {"offset": None}, 'needs "offset", a number'),
        (SOURCE, ORDERS, {"offset": -1}, 'needs "offset", a number: from 0'),
        (CHECKPOINT, GROUP, _ONE, "0, the only one that it accepts"),
        (CHECKPOINT, ORDERS, _ZERO, 'needs "group", a string'),
        (HEARTBEAT, {"sourceClusterAlias": "A"}, _ZERO, 'needs "targetClusterAlias", a string'),
        (SOURCE, ORDERS, {"offset": {"x": 1}}, '"offset" may be a string'),
        (SOURCE, {"list": []}, None, '"list" may be a string'),
        (SOURCE, ORDERS, {"offset": 2**63}, "a number of 64 bits"),
        ("Other", ORDERS, None, "Other doesn't support external modification of offsets"),
    ],
)
def test_bad_offsets_are_refused(
    connector: str, partition: dict[str, object], offset: dict[str, object] | None, message: str
) -> None:
    with pytest.raises(ConnectError) as refused:
        checked_offsets(connector, [ConnectorOffset(partition, offset)])
    assert message in str(refused.value)
    assert refused.value.status is HTTPStatus.BAD_REQUEST


PARTITIONS = st.fixed_dictionaries(
    {"cluster": st.just("A"), "topic": st.sampled_from(["t", "é"]), "partition": st.integers(0, 3)}
)
WRITTEN = st.tuples(PARTITIONS, st.none() | st.integers(0, 2**63 - 1))


@given(st.lists(WRITTEN))
def test_the_last_offset_of_each_partition_is_read(
    written: list[tuple[dict[str, object], int | None]],
) -> None:
    last: dict[tuple[object, object], int | None] = {}
    for partition, offset in written:
        last[partition["topic"], partition["partition"]] = offset
    found = folded(
        offset_record("c", ConnectorOffset(partition, None if offset is None else {"offset": offset}))
        for partition, offset in written
    )
    assert {(one.partition["topic"], one.partition["partition"]): one.offset for one in found} == {
        place: {"offset": offset} for place, offset in last.items() if offset is not None
    }


def folded(records: Iterable[LogRecord]) -> list[ConnectorOffset]:
    fold = OffsetFold("c")
    for record in records:
        fold.take(record)
    return list(fold.offsets())


def mirrored(partition: int, offset: int | None) -> ConnectorOffset:
    at = {"topic": "orders", "partition": partition, "cluster": "A"}
    return ConnectorOffset(at, None if offset is None else {"offset": offset})


@pytest.mark.parametrize(
    ("altered", "count", "partitions"),
    [
        ([mirrored(0, 49)], "50", "1 partition"),
        ([mirrored(0, None)], "100", "1 partition"),
        ([mirrored(0, 49), mirrored(1, None)], "1,050", "2 partitions"),
        ([mirrored(0, 49), mirrored(1, 2000)], "50", "1 partition"),
    ],
)
def test_what_comes_a_second_time_is_counted(
    altered: list[ConnectorOffset], count: str, partitions: str
) -> None:
    text = set_back([mirrored(0, 99), mirrored(1, 999)], altered)
    assert text is not None
    assert text.startswith(f"offsets were set back by {count} in {partitions}: ")


@pytest.mark.parametrize(
    "altered", [[], [mirrored(0, 99)], [mirrored(0, 150)], [mirrored(7, 5)], [mirrored(7, None)]]
)
def test_nothing_comes_a_second_time(altered: list[ConnectorOffset]) -> None:
    assert set_back([mirrored(0, 99)], altered) is None
