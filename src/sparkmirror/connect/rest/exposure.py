"""Finds a REST API that is open before a secured Kafka: whoever reaches it has the worker's rights."""

from sparkmirror.config.properties import Properties
from sparkmirror.connect.rest.login_settings import HOW_TO_AUTHENTICATE
from sparkmirror.connect.rest.rest_settings import RestSettings

_OPEN = frozenset({"", "PLAINTEXT"})


def exposure(worker: Properties, rest: RestSettings) -> str | None:
    """What is open, and what to set; None where nothing is, or where Kafka is as open."""
    protocol = worker.get("security.protocol", "").strip().upper()
    if protocol in _OPEN or not rest.open_listeners:
        return None
    listeners = ", ".join(map(str, rest.open_listeners))
    remedy = f"{HOW_TO_AUTHENTICATE[0].upper()}{HOW_TO_AUTHENTICATE[1:]}"
    return (
        f"Kafka asks for {protocol}, but the REST API at {listeners} is open: whoever reaches it changes"
        f" what is mirrored, with this worker's rights. {remedy}. Or listen on this"
        " machine only: listeners=http://localhost:8083"
    )
