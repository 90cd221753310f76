"""Keeps the last comparison of a flow in its events topic, where the mirror's pages and metrics find it."""

import os
import socket
from contextlib import closing
from typing import Final

from sparkmirror.connectors.flow_settings import FlowWorker
from sparkmirror.kafka.data.topic_log import TopicWriter
from sparkmirror.storage.events import events_topic
from sparkmirror.storage.verified import verified_events
from sparkmirror.verify.verdict import FlowVerdict, in_words, verified

_TIMEOUT_S: Final = 5.0


def keep(on: FlowWorker, connector: str, verdict: FlowVerdict, at: float) -> None:
    """`at` is in epoch seconds. Creates no topic. Raises SparkmirrorError where it can't be written."""
    node = f"{socket.gethostname()}:{os.getpid()}"
    events = verified_events(verified(verdict, at), in_words(verdict), connector, node)
    with closing(TopicWriter(on.worker_client)) as writer:
        records = [event.to_record() for event in events]
        writer.write(events_topic(on.flow.source), records, timeout_s=_TIMEOUT_S)
