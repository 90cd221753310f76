"""The options of `spark.read` and `spark.readStream`: those of Spark's Kafka source, and a few of this one.

Names are case-insensitive, as all options of Spark. Every option is known, or refused by its name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sparkmirror.config.client_layers import data_frame_consumer
from sparkmirror.config.client_options import CONSUMER
from sparkmirror.config.definitions import Definition, Option, Type, Value, Values
from sparkmirror.config.properties import Properties
from sparkmirror.dataframes.known_options import canonical, refuse_unknown
from sparkmirror.dataframes.offset_limits import (
    AtOffsets,
    AtTime,
    AtTimes,
    Bound,
    OffsetLimit,
    parse_offsets,
    parse_partitions,
    parse_times,
)
from sparkmirror.domain.client_settings import ConsumerSettings
from sparkmirror.domain.errors import ConfigError
from sparkmirror.domain.ids import TopicPartition

_TIME: Final = re.compile(r"(-?\d+)\s*(us|ms|s|m|min|h|d)?", re.IGNORECASE)
_UNITS_S: Final = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def _positive(value: Value) -> Value:
    if isinstance(value, int) and value <= 0:
        raise ValueError("must be positive")
    return value


def _span(value: Value) -> Value:
    """A time as Spark writes it, by default in ms; in seconds."""
    found = _TIME.fullmatch(str(value))
    if found is None:
        raise ValueError("expected a time such as 500ms, 30s or 15m")
    return int(found[1]) * _UNITS_S[(found[2] or "ms").lower()]


def _strategy(value: Value) -> Value:
    if str(value).lower() not in ("error", "latest"):
        raise ValueError("must be error or latest")
    return str(value).lower()


def _filled(value: Value) -> Value:
    if not str(value).strip(" ,"):
        raise ValueError("names no topic")
    return value


OPTIONS: Final = Definition(
    [
        Option("subscribe", Type.STRING, None, validator=_filled),
        Option("subscribePattern", Type.STRING, None, validator=_filled),
        Option("assign", Type.STRING, None),
        Option("startingOffsets", Type.STRING, None),
        Option("startingOffsetsByTimestamp", Type.STRING, None),
        Option("startingTimestamp", Type.LONG, None),
        Option("startingOffsetsByTimestampStrategy", Type.STRING, "error", validator=_strategy),
        Option("endingOffsets", Type.STRING, None),
        Option("endingOffsetsByTimestamp", Type.STRING, None),
        Option("endingTimestamp", Type.LONG, None),
        Option("failOnDataLoss", Type.BOOLEAN, default=True),
        Option("includeHeaders", Type.BOOLEAN, default=False),
        Option("minPartitions", Type.INT, None, validator=_positive),
        Option("maxRecordsPerPartition", Type.LONG, None, validator=_positive),
        Option("minOffsetsPerTrigger", Type.LONG, None),
        Option("maxOffsetsPerTrigger", Type.LONG, None),
        Option("maxTriggerDelay", Type.STRING, 900.0, validator=_span),
        Option("kafkaConsumer.pollTimeoutMs", Type.LONG, 120_000, validator=_positive),
        Option("fetchOffset.numRetries", Type.INT, 3),
        Option("fetchOffset.retryIntervalMs", Type.LONG, 1000),
        Option("groupIdPrefix", Type.STRING, None),
        Option("commit.group.id", Type.STRING, None),
        Option("pushdown", Type.BOOLEAN, default=False),
    ]
)
"""All options but those that begin with `kafka.`, which are the consumer's."""

_SELECTIONS: Final = ("subscribe", "subscribePattern", "assign")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The options of a data frame's source. Made once on the driver; tasks get them pickled."""

    consumer: ConsumerSettings
    topics: tuple[str, ...]
    """Subscribed by name."""
    pattern: str | None
    """A Java regular expression over topics."""
    assigned: tuple[TopicPartition, ...]
    starting: OffsetLimit | None
    ending: OffsetLimit | None
    starts_at_latest: bool
    """Whether a time behind all records of a partition means its end; it is an error else."""
    fails_on_data_loss: bool
    includes_headers: bool
    partitions_min: int | None
    partition_records_max: int | None
    trigger_offsets_min: int | None
    trigger_offsets_max: int | None
    trigger_delay_max_s: float
    poll_timeout_s: float
    lookup_retries: int
    lookup_interval_s: float
    commit_group: str | None
    pushes_down: bool

    def batch_limits(self) -> tuple[OffsetLimit, OffsetLimit]:
        """Parse where a batch query starts and ends. Raises ConfigError."""
        starting = Bound.EARLIEST if self.starting is None else self.starting
        ending = Bound.LATEST if self.ending is None else self.ending
        _refuse_bound("startingOffsets", starting, Bound.LATEST)
        _refuse_bound("endingOffsets", ending, Bound.EARLIEST)
        _check_order(starting, ending)
        return starting, ending

    def stream_start(self) -> OffsetLimit:
        """Parse where a streaming query without a checkpoint starts. Raises ConfigError."""
        if self.ending is not None:
            raise ConfigError(
                "endingOffsets", None, "a streaming query has no end: remove it, also as a timestamp"
            )
        return Bound.LATEST if self.starting is None else self.starting


def read_options(options: Mapping[str, str]) -> ReadOptions:
    """Raises ConfigError with the name of the option that can't be used."""
    properties = canonical(options, OPTIONS)
    refuse_unknown(properties, OPTIONS, CONSUMER, "sparkmirror source")
    values = OPTIONS.parse(properties)
    _check_selection(properties)
    _check_trigger(properties, values)
    subscribed = values["subscribe"]
    assigned = properties.get("assign")
    return ReadOptions(
        consumer=data_frame_consumer(properties),
        topics=tuple(filter(None, map(str.strip, str(subscribed or "").split(",")))),
        pattern=properties.get("subscribePattern", "").strip() or None,
        assigned=() if assigned is None else _assigned(properties, assigned),
        starting=_limit(properties, values, "starting"),
        ending=_limit(properties, values, "ending"),
        starts_at_latest=values.string("startingOffsetsByTimestampStrategy") == "latest",
        fails_on_data_loss=values.boolean("failOnDataLoss"),
        includes_headers=values.boolean("includeHeaders"),
        partitions_min=_whole(values, "minPartitions"),
        partition_records_max=_whole(values, "maxRecordsPerPartition"),
        trigger_offsets_min=_whole(values, "minOffsetsPerTrigger"),
        trigger_offsets_max=_whole(values, "maxOffsetsPerTrigger"),
        trigger_delay_max_s=float(str(values["maxTriggerDelay"])),
        poll_timeout_s=values.seconds("kafkaConsumer.pollTimeoutMs"),
        lookup_retries=values.integer("fetchOffset.numRetries"),
        lookup_interval_s=values.seconds("fetchOffset.retryIntervalMs"),
        commit_group=properties.get("commit.group.id"),
        pushes_down=values.boolean("pushdown"),
    )


def _check_selection(properties: Properties) -> None:
    given = [name for name in _SELECTIONS if name in properties]
    if not given:
        raise ConfigError(" or ".join(_SELECTIONS), None, "one of them is needed, to say what is read")
    if len(given) > 1:
        raise ConfigError(" and ".join(given), None, "only one of them can be used")


def _check_trigger(properties: Properties, values: Values) -> None:
    least, most = _whole(values, "minOffsetsPerTrigger"), _whole(values, "maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise properties.error("minOffsetsPerTrigger", f"is above maxOffsetsPerTrigger, which is {most}")


def _assigned(properties: Properties, text: str) -> tuple[TopicPartition, ...]:
    try:
        return parse_partitions(text)
    except ValueError as error:
        raise properties.error("assign", str(error)) from None


def _whole(values: Values, name: str) -> int | None:
    return None if values[name] is None else values.integer(name)


def _limit(properties: Properties, values: Values, side: str) -> OffsetLimit | None:
    """Parse a limit, in Spark's order: one time for all, times, offsets."""
    if values[f"{side}Timestamp"] is not None:
        return AtTime(values.integer(f"{side}Timestamp"))
    name = f"{side}OffsetsByTimestamp" if f"{side}OffsetsByTimestamp" in properties else f"{side}Offsets"
    text = properties.get(name, "").strip()
    try:
        if name.endswith("ByTimestamp"):
            return AtTimes(parse_times(text))
        match text.lower():
            case "":
                return None
            case "earliest":
                return Bound.EARLIEST
            case "latest":
                return Bound.LATEST
            case _:
                return AtOffsets(parse_offsets(text))
    except ValueError as error:
        raise properties.error(name, f"{error}, earliest or latest") from None


def _refuse_bound(option: str, limit: OffsetLimit, bound: Bound) -> None:
    if limit is bound:
        raise ConfigError(option, bound.name.lower(), "makes no sense for a batch query")
    if isinstance(limit, AtOffsets):
        for partition, offset in limit.offsets.items():
            if offset == bound:
                reason = f"{bound.name.lower()} makes no sense for a batch query"
                raise ConfigError(option, f"{partition}: {offset}", reason)


def _check_order(starting: OffsetLimit, ending: OffsetLimit) -> None:
    match starting, ending:
        case AtOffsets(starts), AtOffsets(ends):
            pairs = starts, ends
        case AtTimes(starts), AtTimes(ends):
            pairs = starts, ends
        case _:
            return
    if pairs[0].keys() != pairs[1].keys():
        odd = ", ".join(map(str, sorted(pairs[0].keys() ^ pairs[1].keys())))
        raise ConfigError("startingOffsets", None, f"and endingOffsets name other partitions: {odd}")
    for partition, start in pairs[0].items():
        if 0 <= pairs[1][partition] < start:
            raise ConfigError("startingOffsets", None, f"{partition} starts behind its end")
