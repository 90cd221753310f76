"""Plans of ACLs: MM2's rules, and what the target lacks."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.ids import Alias, Flow
from sparkmirror.policies.filters import DefaultTopicFilter
from sparkmirror.policies.replication import DefaultReplicationPolicy, IdentityReplicationPolicy
from sparkmirror.setup.acl_plan import AclPlan, plan_acls
from tests.support.source_settings import SETTINGS as SOURCE_SETTINGS

READ = AclBinding(
    ResourceType.TOPIC,
    PatternType.LITERAL,
    "orders",
    "User:alice",
    "10.0.0.1",
    AclOperation.READ,
    AclPermission.ALLOW,
)
COPY = replace(READ, resource_name="us.orders")
SETTINGS = replace(
    SOURCE_SETTINGS,
    flow=Flow(Alias("us"), Alias("eu")),
    topic_filter=DefaultTopicFilter((".*",), ("private", "secrets")),
    offset_syncs_topic=None,
)


def targets(*source: AclBinding) -> tuple[AclBinding, ...]:
    return plan_acls(SETTINGS, source, ()).creates


def test_a_binding_moves_to_the_remote_topic() -> None:
    assert targets(READ) == (COPY,)


def test_only_what_the_target_lacks_is_created_and_nothing_is_removed() -> None:
    assert plan_acls(SETTINGS, [READ], [COPY]) == AclPlan()
    assert plan_acls(SETTINGS, [], [COPY]) == AclPlan()


def test_rights_to_write_are_not_given() -> None:
    write = replace(READ, operation=AclOperation.WRITE)
    assert targets(write) == ()
    denied = replace(write, permission=AclPermission.DENY)
    assert targets(denied) == (replace(denied, resource_name="us.orders"),)


def test_all_rights_become_the_right_to_read_and_denials_stay() -> None:
    everything = replace(READ, operation=AclOperation.ALL)
    assert targets(everything) == (COPY,)
    denied = replace(everything, permission=AclPermission.DENY)
    assert targets(denied) == (replace(denied, resource_name="us.orders"),)


@pytest.mark.parametrize(
    "binding",
    [
        replace(READ, pattern_type=PatternType.PREFIXED),
        replace(READ, resource_type=ResourceType.GROUP),
        replace(READ, resource_name="private"),
    ],
)
def test_other_resources_patterns_and_topics_are_left_out(binding: AclBinding) -> None:
    assert targets(binding) == ()


def test_bindings_that_become_equal_are_created_once() -> None:
    assert targets(READ, replace(READ, operation=AclOperation.ALL)) == (COPY,)


@pytest.mark.parametrize(
    ("permission", "operation", "there"),
    [
        (AclPermission.ALLOW, AclOperation.WRITE, None),
        (AclPermission.ALLOW, AclOperation.ALL, AclOperation.READ),
        (AclPermission.DENY, AclOperation.ALL, AclOperation.ALL),
        (AclPermission.DENY, AclOperation.WRITE, AclOperation.WRITE),
        (AclPermission.ALLOW, AclOperation.DESCRIBE, AclOperation.DESCRIBE),
        (AclPermission.ALLOW, AclOperation.ALTER_CONFIGS, AclOperation.ALTER_CONFIGS),
    ],
)
def test_as_kafkas_own_test_of_its_connector(
    permission: AclPermission, operation: AclOperation, there: AclOperation | None
) -> None:
    """`testAclFiltering`, `testAclTransformation` of MirrorSourceConnectorTest, and what is beside them."""
    binding = AclBinding(
        ResourceType.TOPIC, PatternType.LITERAL, "test_topic", "kafka", "", operation, permission
    )
    copied = [] if there is None else [replace(binding, resource_name="us.test_topic", operation=there)]
    assert targets(binding) == tuple(copied)


class Reversed(DefaultReplicationPolicy):
    """Puts the alias behind."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return f"{topic}.{source_alias}"


BINDINGS = st.builds(
    AclBinding,
    st.sampled_from([ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER]),
    st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["orders", "us.orders", "us.", "ord", "*", "secrets"]),
    st.sampled_from(["User:a", "User:b"]),
    st.just("*"),
    st.sampled_from([AclOperation.READ, AclOperation.WRITE, AclOperation.ALL]),
    st.sampled_from(AclPermission).filter(lambda permission: permission >= AclPermission.DENY),
)
SOME = st.frozensets(BINDINGS, max_size=6)
POLICIES = st.sampled_from(
    [DefaultReplicationPolicy(), IdentityReplicationPolicy(source_alias="us"), Reversed()]
)


@given(SOME, SOME, POLICIES)
def test_a_plan_after_one_that_was_carried_out_is_empty(
    source: frozenset[AclBinding], there: frozenset[AclBinding], policy: DefaultReplicationPolicy
) -> None:
    settings = replace(SETTINGS, policy=policy)
    creates = plan_acls(settings, source, there).creates
    assert plan_acls(settings, source, {*there, *creates}) == AclPlan()
