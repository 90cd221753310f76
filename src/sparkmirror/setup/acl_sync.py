"""Creates the ACLs on the target that the source's call for, and removes its own where that is configured."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Final

from sparkmirror.domain.acls import AclBinding, Claim, ResourceType, SyncAcls
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.state_topics import StateTopic
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.kafka.wire import error_codes
from sparkmirror.periodic.flow_log import FlowLog, LogOnce
from sparkmirror.policies.admin_writes import AclResults
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.acl_plan import AclPlan, SourceAcls, plan_acls
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.storage.synced_acls import claim_record, read_claims

_LINES_MAX: Final = 10


class AclSync:
    """Plans and applies ACLs."""

    def __init__(self, settings: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog) -> None:
        self._settings = settings
        self._admins = admins
        self._log = log
        self._logged_unavailable = False
        self._warnings = LogOnce(log, lines_max=_LINES_MAX, overflow="and %d more ACLs with problems")
        self.troubles: Sequence[Trouble] = ()
        """The ACLs that the target has not made, or not removed, at the last time."""

    def run(self) -> None:
        """Raises KafkaError."""
        self.apply(self.plan())

    def plan(self) -> AclPlan:
        """Reads only. Raises KafkaError."""
        takes_all = self._settings.sync_acls is SyncAcls.ALL
        # ACLs that were made under other settings have claims too.
        kind = ResourceType.ANY if takes_all or self._settings.sync_acls_delete else ResourceType.TOPIC
        try:
            source = tuple(self._admins.source.acls(kind))
            target = set(self._admins.target.acls(kind))
        except KafkaError as error:
            if error.code != error_codes.SECURITY_DISABLED:
                raise
            return AclPlan(unavailable=str(error))
        topics = self._admins.source.partition_counts() if takes_all else ()
        return plan_acls(self._settings, SourceAcls(source, topics), target, self._claims())

    def apply(self, plan: AclPlan) -> None:
        """Raises KafkaError when a request as a whole failed, or claims can't be stored."""
        if plan.unavailable is not None:
            self.troubles = ()
            if not self._logged_unavailable:
                self._logged_unavailable = True
                reason = plan.unavailable
                self._log.info("no ACLs to sync: %s. Consider sync.topic.acls.enabled=false", reason)
            return
        self._store_claims(plan.claims)
        created = self._admins.writes.create_acls(plan.creates)
        self._store_claims(dict.fromkeys(_done(created), Claim.MADE))
        deleted = self._admins.writes.delete_acls(plan.deletes)
        self._store_claims(dict.fromkeys(_done(deleted)))
        if made := len(_done(created)):
            self._log.info("created %d ACLs", made)
        for binding in _done(deleted):
            self._log.info("removed ACL %s, which is gone from the source", binding)
        self._warnings.log(plan.warnings)
        self.troubles = [
            _not_synced(str(binding), error)
            for binding, error in [*created.items(), *deleted.items()]
            if error is not None
        ]

    def _claims(self) -> Mapping[AclBinding, Claim] | None:
        if not self._settings.sync_acls_delete:
            return None
        connector = self._admins.connector
        return read_claims(
            connector.target_admin, StateTopic.ACLS.of(self._settings.flow.source), connector.name
        )

    def _store_claims(self, claims: Mapping[AclBinding, Claim | None]) -> None:
        """The claims are acknowledged when this returns."""
        if not claims or not self._settings.sync_acls_delete:
            return
        connector = self._admins.connector
        records = [claim_record(connector.name, binding, claim) for binding, claim in claims.items()]
        with closing(TopicWriter(connector.target_admin)) as writer:
            writer.write(StateTopic.ACLS.of(self._settings.flow.source), records)


def _not_synced(binding: str, error: KafkaError) -> Trouble:
    off = "or switch it off: sync.topic.acls.enabled"
    return Trouble(Cause.of_error(TroubleWord.NOT_SYNCED, Subject.ACL, binding, error, off), binding)


def _done(results: AclResults) -> Sequence[AclBinding]:
    return [binding for binding, error in results.items() if error is None]
