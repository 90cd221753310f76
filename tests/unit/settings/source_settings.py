"""Makes settings of a source connector from properties."""

from sparkmirror.config.properties import Properties
from sparkmirror.settings.parsing import mirror_source_settings
from sparkmirror.settings.source import MirrorSourceSettings

MIRROR = "org.apache.kafka.connect.mirror."


CONNECTOR = {
    "name": "MirrorSourceConnector",
    "connector.class": MIRROR + "MirrorSourceConnector",
    "source.cluster.alias": "A",
    "target.cluster.alias": "B",
}


def source(**more: str) -> MirrorSourceSettings:
    return mirror_source_settings(Properties(CONNECTOR | more))
