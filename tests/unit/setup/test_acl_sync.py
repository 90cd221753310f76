"""ACLs that the target refuses are told by their reason, without brokers."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

import pytest

from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, PatternType, ResourceType
from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.domain.troubles import trouble_lines
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.policies.admin_writes import AclResults
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.acl_plan import AclPlan
from sparkmirror.setup.acl_sync import AclSync
from sparkmirror.setup.flow_admins import FlowAdmins

READ: Final = AclBinding(
    ResourceType.TOPIC, PatternType.LITERAL, "t", "User:ann", "*", AclOperation.READ, AclPermission.ALLOW
)


@dataclass
class Target:
    """A cluster on which ALTER is missing, until it is given."""

    may_alter: bool = False

    @property
    def writes(self) -> "Target":
        return self

    def create_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        return {
            each: None
            if self.may_alter
            else AuthorizationError(f"create ACL {each}: CLUSTER_AUTHORIZATION_FAILED; needs ALTER: acl", 31)
            for each in bindings
        }

    def delete_acls(self, bindings: Sequence[AclBinding]) -> AclResults:
        return dict.fromkeys(bindings)


@pytest.mark.parametrize("count", [1, 3000])
def test_refused_acls_have_one_cause_with_the_right_and_the_switch(
    settings: MirrorSourceSettings, count: int
) -> None:
    target = Target()
    log = flow_log("tests.acl_sync", settings.flow, ConnectorName("mirror"))
    sync = AclSync(settings, cast("FlowAdmins", target), log)
    bindings = [replace(READ, resource_name=f"t{number:04}") for number in range(count)]
    sync.apply(AclPlan(tuple(bindings)))
    (line,) = trouble_lines(sync.troubles)
    assert line.startswith("ALLOW READ on TOPIC t0000 to User:ann")
    assert line.endswith(
        "not synced: create ACL ALLOW READ on TOPIC t0000 to User:ann: CLUSTER_AUTHORIZATION_FAILED; "
        "needs ALTER: acl; or switch it off: sync.topic.acls.enabled"
    )
    assert all(it.requires_action for it in sync.troubles)
    target.may_alter = True
    sync.apply(AclPlan(tuple(bindings)))
    assert not sync.troubles
    sync.apply(AclPlan(unavailable="no authorizer"))
    assert not sync.troubles
