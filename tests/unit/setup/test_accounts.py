from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.accounts import (
    CLIENT_ID,
    IP,
    USER,
    QuotaChange,
    QuotaEntity,
    Quotas,
    ScramCredential,
    ScramMechanism,
)
from sparkmirror.setup.accounts import plan_quotas, plan_users

ALICE = QuotaEntity(((USER, "alice"),))
ANYBODY = QuotaEntity(((USER, None),))
SHA_256 = ScramCredential("alice", ScramMechanism.SCRAM_SHA_256, 4096)
SHA_512 = ScramCredential("alice", ScramMechanism.SCRAM_SHA_512, 8192)

ENTITIES = st.sampled_from(
    [ALICE, ANYBODY, QuotaEntity(((CLIENT_ID, "app"), (USER, None))), QuotaEntity(((IP, "10.0.0.1"),))]
)
VALUES = st.dictionaries(
    st.sampled_from(["producer_byte_rate", "request_percentage"]), st.floats(1, 9), min_size=1
)
QUOTAS = st.dictionaries(ENTITIES, VALUES)


def test_only_what_differs_is_set() -> None:
    source = {
        ALICE: {"producer_byte_rate": 5.0, "consumer_byte_rate": 7.0},
        ANYBODY: {"request_percentage": 9.0},
    }
    target = {ALICE: {"producer_byte_rate": 5.0, "consumer_byte_rate": 1.0, "request_percentage": 50.0}}
    assert plan_quotas(source, target) == (
        QuotaChange(ANYBODY, (("request_percentage", 9.0),)),
        QuotaChange(ALICE, (("consumer_byte_rate", 7.0),)),
    )


def test_what_only_the_target_has_stays() -> None:
    assert plan_quotas({}, {ALICE: {"producer_byte_rate": 5.0}}) == ()


@given(QUOTAS, QUOTAS)
def test_a_plan_after_one_that_was_carried_out_is_empty(source: Quotas, target: Quotas) -> None:
    after = {entity: dict(values) for entity, values in target.items()}
    for change in plan_quotas(source, target):
        after.setdefault(change.entity, {}).update(change.values)
    assert plan_quotas(source, after) == ()
    assert all(after[entity].items() >= values.items() for entity, values in source.items())
    only_there = {entity: values for entity, values in target.items() if entity not in source}
    assert all(after[entity] == values for entity, values in only_there.items())


def test_users_get_the_sources_mechanisms_and_iterations() -> None:
    source = {"alice": [SHA_256, SHA_512], "bob": []}
    weaker = ScramCredential("alice", ScramMechanism.SCRAM_SHA_512, 4096)
    users, warnings = plan_users({"alice", "bob"}, source, {"alice": [weaker]})
    assert users == (SHA_256, SHA_512)
    assert warnings == ("user bob of sync.users has no SCRAM credential at the source: it's left out",)


def test_users_that_are_as_at_the_source_stay() -> None:
    there: Mapping[str, list[ScramCredential]] = {"alice": [SHA_512, SHA_256]}
    assert plan_users({"alice"}, {"alice": [SHA_512]}, there) == ((), ())


def test_only_named_users_are_created() -> None:
    assert plan_users(set(), {"alice": [SHA_512]}, {}) == ((), ())
