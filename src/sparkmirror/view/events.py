"""Selects the events of a flow by a part of their text."""

from collections.abc import Sequence

from sparkmirror.storage.events import Event
from sparkmirror.view.flows import FlowView


def events_matching(flow: FlowView, part: str) -> Sequence[Event]:
    """Newest first; none before they were read."""
    known = (flow.events.newest_first if flow.events is not None else None) or ()
    return [it for it in known if part in f"{it.kind.value} {it.connector} {it.about} {it.text}"]
