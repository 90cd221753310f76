from sparkmirror.config.connector_options import CHECKPOINT_CONNECTOR
from sparkmirror.config.properties import Properties
from sparkmirror.domain.ids import TopicPartition
from sparkmirror.groups.checkpoint_connector import translation_of
from sparkmirror.metrics.readings import GroupTranslation
from sparkmirror.offsets.translation import SyncHistory
from sparkmirror.offsets.wire_records import OffsetSync
from sparkmirror.settings.parsing import mirror_checkpoint_settings

A, B, C = (TopicPartition("orders", partition) for partition in range(3))


def test_places_are_exact_approximate_or_unknown_and_others_topics_do_not_count() -> None:
    settings = mirror_checkpoint_settings(
        Properties(
            {
                "name": "checkpoints",
                "connector.class": CHECKPOINT_CONNECTOR,
                "source.cluster.alias": "us",
                "target.cluster.alias": "eu",
                "topics": "orders",
            }
        )
    )
    assert settings is not None
    histories = {partition: SyncHistory(OffsetSync(partition, 100, 90)) for partition in (A, B)}
    histories[A].add(OffsetSync(A, 200, 180))
    committed = {A: (150, ""), B: (100, ""), C: (5, ""), TopicPartition("others", 0): (7, "")}
    found = translation_of(settings, committed, histories, 1000.0)
    assert found == GroupTranslation(1000.0, exact=1, approximate=1, unknown=1, reread_max=180 - 91)
