"""The jobs that sync topic configs, ACLs and accounts, on a source that allows none of them."""

from dataclasses import replace
from typing import NoReturn, cast

import pytest

from sparkmirror.domain.errors import AuthorizationError
from sparkmirror.mirror.target_syncs import sync_jobs
from sparkmirror.periodic.flow_log import flow_log
from sparkmirror.setup.flow_admins import FlowAdmins
from sparkmirror.storage.troubles import Troubles
from tests.support.source_settings import SETTINGS

ACLS_ONLY = replace(SETTINGS, sync_topic_configs_interval_s=None)
LOG = flow_log(__name__, SETTINGS.flow)


class DenyingAdmin:
    """Counts requests for ACLs."""

    def __init__(self) -> None:
        self.asked = 0

    def acls(self, kind: object) -> NoReturn:
        self.asked += 1
        raise AuthorizationError(f"no right to list {kind}")


class DenyingAdmins:
    def __init__(self) -> None:
        self.source = self.target = DenyingAdmin()


def test_syncs_that_are_off_have_no_job() -> None:
    jobs = sync_jobs(ACLS_ONLY, cast("FlowAdmins", None), LOG, Troubles(LOG))
    assert [(job.name, job.interval_s) for job in jobs] == [("sync topic ACLs", 600)]


def test_a_missing_right_is_a_trouble_with_the_switch_and_is_not_asked_for_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    admins, troubles = DenyingAdmins(), Troubles(LOG)
    (job,) = sync_jobs(ACLS_ONLY, cast("FlowAdmins", admins), LOG, troubles)
    job.action()
    job.action()
    assert admins.source.asked == 1
    (trouble,) = troubles.now
    assert (trouble.word, trouble.what) == ("not synced", "sync topic ACLs")
    assert "switch it off: sync.topic.acls.enabled" in trouble.cause.remedy
    assert len(caplog.messages) == 1
