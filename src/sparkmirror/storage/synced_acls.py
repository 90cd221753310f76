"""Records which ACLs of the target the mirror created, in the topic `mm2-acls.<source>.internal` there.

Used where `sync.acls.delete` is set, because Kafka does not record an ACL's creator. Compacted, one
partition, a record per connector and binding, a tombstone for a binding that the mirror deleted or no longer
claims.
"""

from collections.abc import Mapping

from sparkmirror.batches.log_records import LogRecord, compact_json, parsed_json
from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, Claim, PatternType, ResourceType
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.kafka.wire.error_codes import unless_missing
from sparkmirror.storage.owned_records import read_owned


def claim_record(connector: ConnectorName, binding: AclBinding, claim: Claim | None) -> LogRecord:
    """The record of a claim; None withdraws it."""
    value = None if claim is None else compact_json({"claim": claim.value})
    return LogRecord(_key(connector, binding), value)


def parse_claim(record: LogRecord) -> tuple[ConnectorName, AclBinding, Claim | None] | None:
    """Connector, binding and claim (None in a tombstone); None for a record of another kind."""
    try:
        connector, kind, pattern, name, principal, host, operation, permission = parsed_json(record.key)
        binding = AclBinding(
            ResourceType[kind],
            PatternType[pattern],
            str(name),
            str(principal),
            str(host),
            AclOperation[operation],
            AclPermission[permission],
        )
        value = parsed_json(record.value)
        claim = None if record.value is None else Claim(value["claim"])
    except (ValueError, TypeError, KeyError):
        return None
    return ConnectorName(str(connector)), binding, claim


def read_claims(
    settings: ConnectionSettings, topic: str, connector: ConnectorName
) -> Mapping[AclBinding, Claim]:
    """Read the claims of a connector; none where there is no such topic. Raises KafkaError."""
    return unless_missing(lambda: read_owned(settings, topic, connector, parse_claim), {})


def _key(connector: ConnectorName, binding: AclBinding) -> bytes:
    """Names instead of numbers, so that the topic can be read by eye."""
    return compact_json(
        [
            connector,
            binding.resource_type.name,
            binding.pattern_type.name,
            binding.resource_name,
            binding.principal,
            binding.host,
            binding.operation.name,
            binding.permission.name,
        ]
    )
