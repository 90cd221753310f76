"""Defines `sparkmirror group-offset-sync`: MM2GroupOffsetSync, with its flags and its properties file."""

import argparse
import logging
import sys
import threading
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from sparkmirror.cli.arguments import not_negative, positive
from sparkmirror.cli.exit_codes import CANNOT_TELL, FINE, NOT_FINE
from sparkmirror.cli.logging import add_logging_arguments
from sparkmirror.cli.process import stop_on_signals
from sparkmirror.cli.service_manager import ServiceManager
from sparkmirror.client.group_offset_sync import GroupOffsetSync, Outcome, SyncPass
from sparkmirror.config.properties import Properties, read_properties
from sparkmirror.domain.errors import ConfigError, KafkaError
from sparkmirror.domain.ids import Alias, GroupId
from sparkmirror.domain.printable import printable
from sparkmirror.kafka.wire.error_codes import UNKNOWN_TOPIC_OR_PARTITION

_log = logging.getLogger("sparkmirror.group-offset-sync")


_DEFAULT_FILE: Final = Path("/tmp/kafka/consumer.properties")  # noqa: S108 - the tool's own, only read
_DEFAULT_SERVERS: Final = "http://127.0.0.1:9092"
_TURN_S: Final = 1.0
_SERVERS: Final = {"BOOTSTRAP_SERVERS_CONFIG": ("bootstrap.servers", _DEFAULT_SERVERS)}
_TRUSTSTORE: Final = {
    "SSL_TRUSTSTORE_LOCATION_CONFIG": ("ssl.truststore.location", "/tmp/kafka.client.truststore.jks")  # noqa: S108
}
_KEYSTORE: Final = {
    "SSL_KEYSTORE_LOCATION_CONFIG": ("ssl.keystore.location", "/tmp/kafka.client.keystore.jks"),  # noqa: S108
    "SSL_KEYSTORE_PASSWORD_CONFIG": ("ssl.keystore.password", "password"),
    "SSL_KEY_PASSWORD_CONFIG": ("ssl.key.password", "password"),
}
"""The file's names, Kafka's, and the tool's defaults for missing or empty values."""

_HELP = """\
Lets a consumer group continue in the cluster that it moves to: commits the checkpoints that a mirror, Java's
or this one, has written there as the group's offsets. Offsets are not changed while the group has members
there, and never set back. Mirrors with sync.group.offsets.enabled=true do the same by themselves.

examples:
  sparkmirror group-offset-sync -cgi billing -src us-west -pfp /etc/kafka/consumer.properties_sync_dest
  sparkmirror group-offset-sync -cgi billing -src us-west -pfp dest.properties --dry-run
  sparkmirror group-offset-sync -cgi billing -src us-west -pfp dest.properties --once
  sparkmirror group-offset-sync -cgi billing -src us-west -pfp dest.properties -int 5 -rf 600
  sparkmirror group-offset-sync -src us-west -rpc com.amazonaws.kafka.samples.CustomMM2ReplicationPolicy

the properties file, about the cluster that the group moves to:
  BOOTSTRAP_SERVERS_CONFIG = b1:9092, b2:9092
  SSL_TRUSTSTORE_LOCATION_CONFIG, SSL_KEYSTORE_LOCATION_CONFIG, SSL_KEYSTORE_PASSWORD_CONFIG,
  SSL_KEY_PASSWORD_CONFIG with -ssl and -mtls; Kafka's own names (bootstrap.servers, …) are accepted too
"""


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = subparsers.add_parser(
        "group-offset-sync",
        description=_HELP,
    )
    parser.add_argument(
        "-cgi",
        "--consumerGroupID",
        dest="group",
        default="mm2TestConsumer1",
        metavar="GROUP",
        help="the consumer group (%(default)s)",
    )
    parser.add_argument(
        "-src",
        "--sourceCluster",
        dest="source",
        default="msksource",
        metavar="ALIAS",
        help="the cluster that the group comes from, as the mirror's configuration calls it (%(default)s)",
    )
    parser.add_argument(
        "-pfp",
        "--propertiesFilePath",
        dest="file",
        type=Path,
        metavar="FILE",
        help=f"the properties file ({_DEFAULT_FILE})",
    )
    parser.add_argument("-ssl", "--sslEnable", dest="ssl", action="store_true", help="use TLS")
    parser.add_argument(
        "-mtls", "--mTLSEnable", dest="mtls", action="store_true", help="use TLS with a client key"
    )
    parser.add_argument(
        "-rpc",
        "--replicationPolicyClass",
        dest="policy_class",
        metavar="CLASS",
        help="the mirror's replication.policy.class (Kafka's DefaultReplicationPolicy)",
    )
    parser.add_argument(
        "-rps",
        "--replicationPolicySeparator",
        dest="separator",
        metavar="TEXT",
        help="the mirror's replication.policy.separator (.)",
    )
    parser.add_argument("-t", "--topic", help=argparse.SUPPRESS)  # the tool accepts and ignores it
    _add_times(parser)
    add_logging_arguments(parser)
    parser.set_defaults(run=run)


def _add_times(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-int",
        "--interval",
        dest="interval_s",
        type=positive,
        default=20,
        metavar="SECONDS",
        help="time between two passes (%(default)s)",
    )
    how_long = parser.add_mutually_exclusive_group()
    how_long.add_argument(
        "-rf",
        "--runFor",
        dest="run_for_s",
        type=not_negative,
        default=0,
        metavar="SECONDS",
        help="end after this time (0: run until SIGINT, SIGTERM or SIGHUP)",
    )
    how_long.add_argument("--once", action="store_true", help="one pass")
    how_long.add_argument(
        "--dry-run", action="store_true", help="one pass that prints the offsets it would write"
    )


def run(arguments: argparse.Namespace) -> int:
    try:
        properties = client_properties(arguments, _read(arguments.file))
        sync = GroupOffsetSync(properties, Alias(arguments.source), GroupId(arguments.group))
    except ConfigError as error:
        sys.stderr.write(f"sparkmirror group-offset-sync: {printable(str(error))}\n")
        return CANNOT_TELL
    stopping, service = threading.Event(), ServiceManager()
    stop_on_signals(stopping.set)
    is_synced = _passes(sync, arguments, stopping, service)
    service.stopping()
    return FINE if is_synced or stopping.is_set() else NOT_FINE


def client_properties(arguments: argparse.Namespace, file: Properties) -> Mapping[str, str]:
    """Properties for a `MirrorClient`: the tool's names in the file, else Kafka's."""
    properties = {key: value for key, value in file.items() if not key.endswith("_CONFIG")}
    wanted = dict(_SERVERS)
    if arguments.ssl or arguments.mtls:
        wanted |= _TRUSTSTORE
        properties["security.protocol"] = "SSL"
    if arguments.mtls:
        wanted |= _KEYSTORE
    for name, (key, default) in wanted.items():
        properties[key] = file.get(name, "").strip() or properties.get(key) or default
    if arguments.policy_class:
        properties["replication.policy.class"] = arguments.policy_class
    if arguments.separator is not None:
        properties["replication.policy.separator"] = arguments.separator
    return properties


def _read(file: Path | None) -> Properties:
    """Read the properties as the Java tool does: a missing file means defaults, unless the file was named."""
    if file is None and not _DEFAULT_FILE.exists():
        _log.warning("there is no %s: using %s; -pfp names another file", _DEFAULT_FILE, _DEFAULT_SERVERS)
        return Properties()
    return read_properties(file or _DEFAULT_FILE)


def _passes(
    sync: GroupOffsetSync, arguments: argparse.Namespace, stopping: threading.Event, service: ServiceManager
) -> bool:
    """Whether the last pass left the group synced. An error ends its pass, not those after it."""
    deadline = time.monotonic() + (arguments.run_for_s or float("inf"))
    is_single = arguments.once or arguments.dry_run
    has_read = False
    while True:
        found = _pass(sync, arguments)
        has_read = has_read or found is not None
        next_at = min(deadline, time.monotonic() + arguments.interval_s)
        while not (is_single or stopping.is_set()) and time.monotonic() < next_at:
            service.turn(partial(_status, found, arguments.group), is_ready=has_read)
            stopping.wait(min(_TURN_S, max(0.0, next_at - time.monotonic())))
        if is_single or stopping.is_set() or time.monotonic() >= deadline:
            return found is not None and found.is_synced


def _status(found: SyncPass | None, group: str) -> str:
    return f"group {group}: {'the last pass failed' if found is None else found.outcome}"


def _pass(sync: GroupOffsetSync, arguments: argparse.Namespace) -> SyncPass | None:
    """Sync the group once; returns None where it failed."""
    try:
        found = sync.sync(dry_run=arguments.dry_run)
    except (KafkaError, ConfigError) as error:
        is_missing = isinstance(error, KafkaError) and error.code == UNKNOWN_TOPIC_OR_PARTITION
        hint = ": is -src the alias that the mirror uses?" if is_missing else ""
        _log.error("group %s: %s%s", arguments.group, error, hint)
        return None
    _log_result(found, arguments)
    return found


def _log_result(found: SyncPass, arguments: argparse.Namespace) -> None:
    group, source = arguments.group, arguments.source
    verb = "would continue" if arguments.dry_run else "continues"
    for partition, checkpoint in sorted(found.offsets.items()):
        downstream, upstream = checkpoint.downstream_offset, checkpoint.upstream_offset
        _log.info(
            "group %s %s at %s offset %d (%s: %d)", group, verb, partition, downstream, source, upstream
        )
    for partition, error in sorted(found.refused.items()):
        _log.error("group %s: %s is not written: %s", group, partition, error)
    match found.outcome:
        case Outcome.HAS_MEMBERS:
            _log.warning("group %s has members on the target cluster: its offsets are not changed", group)
        case Outcome.NO_CHECKPOINT:
            _log.warning(
                "group %s has no checkpoint from %s: it has committed no offsets there, the mirror's groups "
                "exclude it, or -src is not the alias that the mirror uses",
                group,
                source,
            )
        case Outcome.NO_CONSUMER_GROUP:
            _log.warning("group %s is not a consumer group: not changed", group)
        case Outcome.NOTHING_NEW:
            _log.info("group %s is at its %d checkpoints, or ahead of them", group, len(found.checkpoints))
