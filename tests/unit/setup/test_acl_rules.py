from collections.abc import Callable
from dataclasses import replace

import pytest

from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.setup.acl_rules import Selection, TargetAcls, all_target_acls, remote_prefix, target_acls

READ = AclBinding(
    ResourceType.TOPIC,
    PatternType.LITERAL,
    "orders",
    "User:alice",
    "10.0.0.1",
    AclOperation.READ,
    AclPermission.ALLOW,
)


def targets(*source: AclBinding) -> tuple[AclBinding, ...]:
    return target_acls(source, lambda topic: topic != "private", lambda topic: f"us.{topic}")


def test_a_binding_moves_to_the_remote_topic() -> None:
    assert targets(READ) == (replace(READ, resource_name="us.orders"),)


def test_rights_to_write_are_not_given() -> None:
    write = replace(READ, operation=AclOperation.WRITE)
    assert targets(write) == ()
    denied = replace(write, permission=AclPermission.DENY)
    assert targets(denied) == (replace(denied, resource_name="us.orders"),)


def test_all_rights_become_the_right_to_read_and_denials_stay() -> None:
    everything = replace(READ, operation=AclOperation.ALL)
    assert targets(everything) == (replace(READ, resource_name="us.orders"),)
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
    assert targets(READ, replace(READ, operation=AclOperation.ALL)) == (
        replace(READ, resource_name="us.orders"),
    )


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


SELECTED = Selection(lambda topic: topic != "private", lambda prefix: prefix != "priv")


def all_targets(*source: AclBinding) -> TargetAcls:
    return all_target_acls(source, SELECTED, lambda topic: f"us.{topic}")


def test_groups_and_transactional_ids_keep_their_names_and_rights() -> None:
    group = replace(READ, resource_type=ResourceType.GROUP, resource_name="*")
    writer = replace(READ, resource_type=ResourceType.TRANSACTIONAL_ID, operation=AclOperation.WRITE)
    prefixed = replace(writer, pattern_type=PatternType.PREFIXED)
    assert all_targets(group, writer, prefixed) == TargetAcls((group, writer, prefixed))


@pytest.mark.parametrize(
    "resource_type", [ResourceType.CLUSTER, ResourceType.USER, ResourceType.DELEGATION_TOKEN]
)
def test_what_is_about_a_cluster_itself_is_left_out(resource_type: ResourceType) -> None:
    assert all_targets(replace(READ, resource_type=resource_type)) == TargetAcls(())


def test_prefixes_are_renamed_and_give_no_right_to_write() -> None:
    prefixed = replace(READ, pattern_type=PatternType.PREFIXED, resource_name="ord")
    there = replace(prefixed, resource_name="us.ord")
    everything = replace(prefixed, operation=AclOperation.ALL)
    write = replace(prefixed, operation=AclOperation.WRITE)
    private = replace(prefixed, resource_name="priv")
    assert all_targets(prefixed, everything, write, private) == TargetAcls((there,))


@pytest.mark.parametrize(
    ("policy", "found"),
    [
        (lambda topic: f"us.{topic}", "us.ord"),
        (lambda topic: topic, "ord"),
        (lambda topic: f"{topic}.us", None),
        (str.upper, None),
        (lambda topic: f"{len(topic)}.{topic}", None),
    ],
)
def test_a_policy_that_puts_nothing_behind_a_prefix_maps_it(
    policy: Callable[[str], str], found: str | None
) -> None:
    assert remote_prefix(policy, "ord") == found
