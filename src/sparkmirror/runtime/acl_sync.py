"""Gives the target's topics the ACLs that their sources call for."""

from sparkmirror.connectors.acl_plan import AclPlan, SourceAcls, plan_acls
from sparkmirror.connectors.source import MirrorSourceSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.kafka import error_codes
from sparkmirror.runtime.flow_admins import FlowAdmins
from sparkmirror.runtime.flow_log import FlowLog


class AclSync:
    """One owner."""

    def __init__(self, told: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog) -> None:
        self._told = told
        self._admins = admins
        self._log = log
        self._said_unavailable = False

    def run(self) -> None:
        """Raises KafkaError."""
        self.apply(self.plan())

    def plan(self) -> AclPlan:
        """Reads only. Raises KafkaError."""
        try:
            bindings = tuple(self._admins.source.topic_acls())
            return plan_acls(self._told, SourceAcls(bindings), set(self._admins.target.topic_acls()))
        except KafkaError as error:
            if error.code != error_codes.SECURITY_DISABLED:
                raise
            return AclPlan(unavailable=str(error))

    def apply(self, plan: AclPlan) -> None:
        """Raises KafkaError when the request as a whole failed."""
        if plan.unavailable is not None and not self._said_unavailable:
            self._said_unavailable = True
            reason = plan.unavailable
            self._log.info("no ACLs to sync: %s. Consider sync.topic.acls.enabled=false", reason)
        for error in self._admins.writes.create_acls(plan.creates).values():
            if error is not None:
                self._log.warning("%s", error)
