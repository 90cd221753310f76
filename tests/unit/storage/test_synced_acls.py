import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.acls import (
    AclBinding,
    AclOperation,
    AclPermission,
    Claim,
    PatternType,
    ResourceType,
)
from sparkmirror.domain.ids import Alias, ConnectorName
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.storage.synced_acls import claim_record, parse_claim

CONNECTOR = ConnectorName("größe")
BINDINGS = st.builds(
    AclBinding,
    st.sampled_from(ResourceType),
    st.sampled_from(PatternType),
    st.text(),
    st.text(),
    st.text(),
    st.sampled_from(AclOperation),
    st.sampled_from(AclPermission),
)


@given(BINDINGS, st.sampled_from([None, *Claim]))
def test_what_is_written_is_read_back(binding: AclBinding, claim: Claim | None) -> None:
    assert parse_claim(claim_record(CONNECTOR, binding, claim)) == (CONNECTOR, binding, claim)


@given(BINDINGS, BINDINGS)
def test_a_tombstone_has_the_key_of_its_binding_alone(one: AclBinding, other: AclBinding) -> None:
    made, forgotten = claim_record(CONNECTOR, one, Claim.MADE), claim_record(CONNECTOR, other, None)
    assert forgotten.value is None
    assert (made.key == forgotten.key) == (one == other)


def test_a_record_can_be_read_by_people() -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        PatternType.LITERAL,
        "us.orders",
        "User:a",
        "*",
        AclOperation.READ,
        AclPermission.ALLOW,
    )
    record = claim_record(CONNECTOR, binding, Claim.INTENDED)
    assert record.key == b'["gr\xc3\xb6\xc3\x9fe","TOPIC","LITERAL","us.orders","User:a","*","READ","ALLOW"]'
    assert json.loads(record.value or b"") == {"claim": "intended"}


@pytest.mark.parametrize(
    "record",
    [
        LogRecord(None, b"{}"),
        LogRecord(b"x", b"{}"),
        LogRecord(b'["c","TOPIC","LITERAL","t","p","*","FLY","ALLOW"]', b'{"claim":"made"}'),
        LogRecord(b'["c","TOPIC","LITERAL","t","p","*","READ","ALLOW"]', b"{}"),
        LogRecord(b'["c","TOPIC","LITERAL","t","p","*","READ","ALLOW"]', b'{"claim":"found"}'),
    ],
)
def test_what_is_none_of_ours_is_left_out(record: LogRecord) -> None:
    assert parse_claim(record) is None


def test_the_topic_is_named_as_no_mirror_copies() -> None:
    assert StateTopic.ACLS.of(Alias("us-west")) == "mm2-acls.us-west.internal"
