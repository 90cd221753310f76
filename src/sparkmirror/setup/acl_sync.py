"""Creates the ACLs on the target that the source's call for."""

from collections.abc import Sequence

from sparkmirror.domain.acls import AclBinding, ResourceType
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.kafka.wire import error_codes
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.acl_plan import AclPlan, plan_acls
from sparkmirror.setup.flow_admins import FlowAdmins


class AclSync:
    """Plans and applies ACLs."""

    def __init__(self, settings: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog) -> None:
        self._settings = settings
        self._admins = admins
        self._log = log
        self._logged_unavailable = False
        self.troubles: Sequence[Trouble] = ()
        """The ACLs that the target has not made at the last time."""

    def run(self) -> None:
        """Raises KafkaError."""
        self.apply(self.plan())

    def plan(self) -> AclPlan:
        """Reads only. Raises KafkaError."""
        try:
            source = self._admins.source.acls(ResourceType.TOPIC)
            target = set(self._admins.target.acls(ResourceType.TOPIC))
        except KafkaError as error:
            if error.code != error_codes.SECURITY_DISABLED:
                raise
            return AclPlan(unavailable=str(error))
        return plan_acls(self._settings, source, target)

    def apply(self, plan: AclPlan) -> None:
        """Raises KafkaError when a request as a whole failed."""
        if plan.unavailable is not None:
            self.troubles = ()
            if not self._logged_unavailable:
                self._logged_unavailable = True
                reason = plan.unavailable
                self._log.info("no ACLs to sync: %s. Consider sync.topic.acls.enabled=false", reason)
            return
        created = self._admins.writes.create_acls(plan.creates)
        if made := sum(error is None for error in created.values()):
            self._log.info("created %d ACLs", made)
        self.troubles = [
            _not_synced(binding, error) for binding, error in created.items() if error is not None
        ]


def _not_synced(binding: AclBinding, error: KafkaError) -> Trouble:
    off = "or switch it off: sync.topic.acls.enabled"
    return Trouble(
        Cause.of_error(TroubleWord.NOT_SYNCED, Subject.ACL, str(binding), error, off), str(binding)
    )
