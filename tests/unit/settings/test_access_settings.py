"""Settings of a source connector about ACLs, quotas and users."""

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.domain.acls import SyncAcls
from sparkmirror.domain.errors import ConfigError
from sparkmirror.files import NamedFile
from sparkmirror.settings.parsing import mirror_source_settings
from sparkmirror.settings.source import MirrorSourceSettings

CONNECTOR = {
    "name": "MirrorSourceConnector",
    "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
}


def source(**more: str) -> MirrorSourceSettings:
    return mirror_source_settings(Properties(CONNECTOR | more))


def test_mm2s_acls_and_nothing_else_by_default() -> None:
    settings = source()
    assert (settings.sync_acls, settings.sync_acls_delete) == (SyncAcls.TOPIC, False)
    assert (settings.sync_quotas, settings.sync_users, settings.sync_accounts_interval_s) == (
        False,
        None,
        None,
    )


def test_more_on_request() -> None:
    settings = source(**{"sync.acls": "all", "sync.acls.delete": "true"})
    assert (settings.sync_acls, settings.sync_acls_delete) == (SyncAcls.ALL, True)
    with pytest.raises(ConfigError, match=r"sync\.acls"):
        source(**{"sync.acls": "groups"})


@pytest.mark.parametrize("asked", [{"sync.quotas": "true"}, {"sync.users": " users.properties "}])
def test_accounts_are_synced_as_often_as_acls(asked: dict[str, str]) -> None:
    every = {"sync.topic.acls.interval.seconds": "7", "sync.topic.acls.enabled": "false"}
    settings = source(**asked, **every)
    assert (settings.sync_topic_acls_interval_s, settings.sync_accounts_interval_s) == (None, 7.0)
    assert settings.sync_quotas is ("sync.quotas" in asked)
    assert settings.sync_users == (NamedFile("users.properties") if "sync.users" in asked else None)
    assert source(**asked, **{"sync.topic.acls.interval.seconds": "-1"}).sync_accounts_interval_s is None
    with pytest.raises(ConfigError, match="must be at least 1"):
        source(**asked, **{"sync.topic.acls.interval.seconds": "0"})


def test_no_file_is_no_file() -> None:
    assert source(**{"sync.users": " "}).sync_users is None
