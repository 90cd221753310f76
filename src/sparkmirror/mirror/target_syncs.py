"""Makes the jobs that keep the target's topic configs, ACLs and accounts as the source's."""

from collections.abc import Callable, Iterator
from typing import Final

from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.periodic.denials import Denials
from sparkmirror.periodic.flow_log import FlowLog
from sparkmirror.periodic.jobs import Job
from sparkmirror.settings.source import MirrorSourceSettings
from sparkmirror.setup.accounts import AccountSync
from sparkmirror.setup.acl_sync import AclSync
from sparkmirror.setup.config_sync import ConfigSync
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.storage.troubles import Troubles

SYNC_CONFIGS: Final = "sync topic configs"
FIRST_SYNC_AFTER_S: Final = 10.0

_Sync = ConfigSync | AclSync | AccountSync


def sync_jobs(
    settings: MirrorSourceSettings, admins: FlowAdmins, log: FlowLog, troubles: Troubles
) -> Iterator[Job]:
    """Yield a job for each sync that is switched on. What it can't do is told to `troubles`."""
    syncs: list[tuple[str, float | None, _Sync, str]] = [
        (
            SYNC_CONFIGS,
            settings.sync_topic_configs_interval_s,
            ConfigSync(settings, admins, log),
            "sync.topic.configs.enabled",
        ),
        (
            "sync topic ACLs",
            settings.sync_topic_acls_interval_s,
            AclSync(settings, admins, log),
            "sync.topic.acls.enabled",
        ),
        (
            "sync accounts",
            settings.sync_accounts_interval_s,
            AccountSync(settings, admins, log),
            "sync.quotas and sync.users",
        ),
    ]
    for name, interval_s, sync, switch in syncs:
        if interval_s is not None:
            off = f"or switch it off: {switch}"
            denials = Denials(log, name, tell=troubles.of_denials(f"denied: {name}", _not_synced(name, off)))
            yield Job(name, interval_s, _run(name, sync, denials, troubles), first_after_s=FIRST_SYNC_AFTER_S)


def _run(name: str, sync: _Sync, denials: Denials, troubles: Troubles) -> Callable[[], None]:
    def run() -> None:
        sync.run()
        troubles.tell(name, sync.troubles)

    def attempt() -> None:
        denials.attempt(run)

    return attempt


def _not_synced(name: str, remedy: str) -> Callable[[SparkmirrorError], Trouble]:
    def trouble(error: SparkmirrorError) -> Trouble:
        return Trouble(Cause.of_error(TroubleWord.NOT_SYNCED, Subject.ACTION, name, error, remedy), name)

    return trouble
