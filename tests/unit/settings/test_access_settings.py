"""Settings of a source connector about ACLs."""

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.domain.acls import SyncAcls
from sparkmirror.domain.errors import ConfigError
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


def test_more_on_request() -> None:
    settings = source(**{"sync.acls": "all", "sync.acls.delete": "true"})
    assert (settings.sync_acls, settings.sync_acls_delete) == (SyncAcls.ALL, True)
    with pytest.raises(ConfigError, match=r"sync\.acls"):
        source(**{"sync.acls": "groups"})
