"""The synced-ACLs topic, `mm2-acls.<source>.internal` on the target: which ACLs there the mirror made.

Kept where `sync.acls.delete` is set, because Kafka doesn't say who made an ACL. Compacted, one partition, a
record per connector and binding, a tombstone for what the mirror took back or nobody needs to remember.
"""

import json
from collections.abc import Mapping

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.domain.acls import AclBinding, AclOperation, AclPermission, Claim, PatternType, ResourceType
from sparkmirror.domain.client_settings import ConnectionSettings
from sparkmirror.domain.errors import KafkaError
from sparkmirror.domain.ids import Alias, ConnectorName
from sparkmirror.kafka.error_codes import UNKNOWN_TOPIC_OR_PARTITION
from sparkmirror.kafka.topic_log import read_topic
from sparkmirror.storage.compact_json import compact_json


def synced_acls_topic(source: Alias) -> str:
    """Named like Connect's own topics in dedicated mode, so that MM2's filters leave it alone (KIP-1074)."""
    return f"mm2-acls.{source}.internal"


def claim_record(connector: ConnectorName, binding: AclBinding, claim: Claim | None) -> LogRecord:
    """None forgets."""
    value = None if claim is None else compact_json({"claim": claim.value})
    return LogRecord(_key(connector, binding), value)


def parse_claim(record: LogRecord) -> tuple[ConnectorName, AclBinding, Claim | None] | None:
    """Whose, of which binding, with None for a tombstone; None for what is none of ours."""
    try:
        connector, kind, pattern, name, principal, host, operation, permission = json.loads(
            record.key or b"null"
        )
        binding = AclBinding(
            ResourceType[kind],
            PatternType[pattern],
            str(name),
            str(principal),
            str(host),
            AclOperation[operation],
            AclPermission[permission],
        )
        claim = None if record.value is None else Claim(json.loads(record.value)["claim"])
    except (ValueError, TypeError, KeyError):
        return None
    return ConnectorName(str(connector)), binding, claim


def read_claims(
    settings: ConnectionSettings, topic: str, connector: ConnectorName
) -> Mapping[AclBinding, Claim]:
    """Those of a connector; none where there is no such topic. Raises KafkaError."""
    claims: dict[AclBinding, Claim] = {}
    try:
        for record in read_topic(settings, topic):
            parsed = parse_claim(record)
            if parsed is None or parsed[0] != connector:
                continue
            _, binding, claim = parsed
            claims.pop(binding, None)
            if claim is not None:
                claims[binding] = claim
    except KafkaError as error:
        if error.code != UNKNOWN_TOPIC_OR_PARTITION:
            raise
        return {}
    return claims


def _key(connector: ConnectorName, binding: AclBinding) -> bytes:
    """Names instead of numbers, for whoever reads the topic by hand."""
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
