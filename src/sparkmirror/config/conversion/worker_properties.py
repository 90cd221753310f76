"""A Connect worker's own properties, as `connect-distributed.sh` takes them: where positions are stored."""

from sparkmirror.config.client_options import SHARED_NAMES
from sparkmirror.config.conversion.connector_json import JsonConnector
from sparkmirror.config.conversion.model import PROVIDERS, Remarks
from sparkmirror.config.known_keys import unknown_worker_keys
from sparkmirror.config.properties import Properties


def is_worker(properties: Properties) -> bool:
    """Whether these are a worker's: mm2.properties have `clusters`."""
    return "clusters" not in properties and {"group.id", "offset.storage.topic"} <= properties.keys()


def worker_of(
    properties: Properties, connectors: list[JsonConnector], file: str, remarks: Remarks
) -> Properties:
    """What of the worker counts for the flows of its connectors. What they share with it is theirs."""
    unknown = unknown_worker_keys(key for key in properties if not key.startswith(PROVIDERS))
    for key in unknown:
        remarks.note(f"{file}: nothing reads {key}")
    for one in connectors:
        _compare_clients(properties, one, file, remarks)
    unread = {key.key for key in unknown} | SHARED_NAMES
    others = properties.where(lambda key: key not in unread and not key.startswith(("consumer.", "admin.")))
    shared = {f"producer.{key}" for key in SHARED_NAMES if f"producer.{key}" in others}
    alike = {key for key in shared if properties[key] == properties.get(key.removeprefix("producer."))}
    return others.where(lambda key: key not in alike)


def _compare_clients(worker: Properties, one: JsonConnector, file: str, remarks: Remarks) -> None:
    target = one.settings.under("target.cluster.")
    for key in worker.only(SHARED_NAMES):
        if worker[key] != target.get(key):
            remarks.leave_out(f"{file}: {key} is not that of {one.flow.target}, and a flow has one target")
