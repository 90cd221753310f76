from dataclasses import replace

import pytest

from sparkmirror.domain.acls import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    target_acls,
)

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
