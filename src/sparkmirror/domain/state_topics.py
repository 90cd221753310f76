"""Names the topics that hold the state of mirrors, and recognizes them. Pure.

Java's names are in Kafka's `DefaultReplicationPolicy` and `MirrorMakerConfig`; the others are ours, after the
same pattern.
"""

from enum import Enum
from typing import Final

from sparkmirror.domain.ids import Alias

PRODUCER_IDS_TOPIC: Final = "mm2-producer-ids.internal"


class StateTopic(Enum):
    """A kind of state topic by the beginning of its name; there is one for each source cluster."""

    OFFSETS = "mm2-offsets"
    CONFIGS = "mm2-configs"
    STATUS = "mm2-status"
    OFFSET_SYNCS = "mm2-offset-syncs"
    PROGRESS = "mm2-progress"
    ATTEMPTS = "mm2-attempts"
    EVENTS = "mm2-events"
    MIGRATIONS = "mm2-migrations"
    DEAD_LETTERS = "mm2-dead-letters"
    ACLS = "mm2-acls"

    def of(self, source: Alias) -> str:
        """Return the topic's name for a source cluster. Dots separate, whatever the policy's separator is."""
        return f"{self.value}.{source}.internal"


_BEGINNINGS: Final = tuple(kind.value for kind in StateTopic)


def is_state_topic(topic: str) -> bool:
    """Return whether a topic's name is that of a mirror's state, with any separator.

    A separator may have been another one when the topic was created, so only the ends of names count.
    """
    if topic.endswith(".checkpoints.internal") or topic == PRODUCER_IDS_TOPIC:
        return True
    return topic.startswith(_BEGINNINGS) and topic.endswith("internal")
