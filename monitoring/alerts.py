"""The alerts: each with its condition, and the three paragraphs of its runbook."""

from typing import Final, NamedTuple

OBJECTIVE: Final = 0.999
FRESH_S: Final = 60
"""The objective: so many of the partitions, over 30 days, are at most this old on the target."""
COMPARED_AGO_S: Final = 3 * 86_400
BUDGET: Final = "MirrorFreshnessBudget"


class Alert(NamedTuple):
    """`lasting` is Prometheus' `for`. The texts are Markdown."""

    name: str
    expr: str
    lasting: str
    severity: str
    summary: str
    means: str
    look: str
    do: str

    @property
    def section(self) -> str:
        """The heading of its runbook, which alerts of several windows share."""
        return BUDGET if self.name.startswith(BUDGET) else self.name


_FLOW: Final = "{{ $labels.source }}->{{ $labels.target }}"
_BY_FLOW: Final = "sum by (source, target, connector)"

ALERTS: Final = (
    Alert(
        "MirrorBehind",
        f"max by (source, target, topic) (sparkmirror_lag_seconds) > {FRESH_S}",
        "2m",
        "warning",
        f"{_FLOW}: {{{{ $labels.topic }}}} is {{{{ $value | humanizeDuration }}}} behind",
        "The oldest record that the target lacks has been in the source for more than a minute. In an outage this grows by the clock.",
        "Is `sparkmirror_cluster_up` 0 for a cluster? Then [MirrorClusterDown](#mirrorclusterdown) is the cause. Are all topics behind, or one? "
        'Does `sparkmirror_partitions{state=~"retrying|failed"}` count any? The log names them with their errors.',
        "If the lag falls, wait. If a limit applies (`max.bytes.per.second`, `topic.max.bytes.per.second`), raise it in the file; it takes effect in seconds. If all topics are behind "
        "without errors, raise `tasks.max` or give Spark more cores.",
    ),
    Alert(
        "MirrorFallingBehind",
        "sum by (source, target, topic) (deriv(sparkmirror_lag_records[10m])) > 0 "
        "and sum by (source, target, topic) (sparkmirror_lag_records) > 10000",
        "15m",
        "warning",
        f"{_FLOW}: {{{{ $labels.topic }}}} falls behind by {{{{ $value | humanize }}}} records a second",
        "The topic is written faster than it is copied: the lag is above 10,000 records, and has grown for 15 minutes.",
        "`kafka_connect_mirror_source_connector_byte_rate` against what brokers and network can do. If only one partition grows, it is a hot partition, which one task copies.",
        "Raise `tasks.max` up to the number of partitions, and Spark's cores with it; raise limits. For a hot partition check the round-trip time and the target's acknowledgement time.",
    ),
    Alert(
        "MirrorStalled",
        f"{_BY_FLOW} (sparkmirror_stalled_partitions) > 0",
        "1m",
        "critical",
        f"{_FLOW}: {{{{ $value }}}} partitions are stalled",
        "Partitions have records to copy, have made no progress for a minute, and report no error.",
        "The log line `stalled at offset …` names them. Is the partition's leader overloaded? Is a transaction open (`consumer.isolation.level=read_committed`)? Does the executor get CPU?",
        "Abort hanging transactions (`kafka-transactions.sh find-hanging`). Otherwise restart the connector; it continues at its position.",
    ),
    Alert(
        "MirrorSilent",
        f'{_BY_FLOW} (sparkmirror_partitions{{state=~"silent|unknown"}}) > 0',
        "1m",
        "critical",
        f"{_FLOW}: nothing is known of {{{{ $value }}}} partitions",
        "Their tasks don't report (`silent`), or no report can be read from the target (`unknown`). Whether they are copied is not known.",
        "`unknown`: does the target answer (`sparkmirror_cluster_up`)? `silent`: Spark's log, whose path is logged at start: lost executors, too few cores.",
        "Restore the target, or give Spark more cores. The mirror continues by itself.",
    ),
    Alert(
        "MirrorPartitionFailed",
        f'{_BY_FLOW} (sparkmirror_partitions{{state="failed"}}) > 0',
        "0m",
        "critical",
        f"{_FLOW}: {{{{ $value }}}} partitions failed and require action",
        "An error that does not pass by itself stopped these partitions: a missing right, a refused record, lost records with `on.data.loss=fail`.",
        "The log, `sparkmirror status FILE` and `GET /connectors/NAME/status` have each partition's error with its remedy.",
        "Do what the error says. Failed partitions are retried periodically; most need no restart.",
    ),
    Alert(
        "MirrorTrouble",
        f'{_BY_FLOW} (sparkmirror_troubles{{word!~"throttled|waiting"}}) > 0',
        "5m",
        "critical",
        f"{_FLOW}: {{{{ $value }}}} things that were asked for can't be done",
        "Topics can't be created or grown, internal topics can't be written, offsets of groups are refused: whatever was selected and is not done.",
        "`sparkmirror status FILE`, pages and the log have each reason, since when it holds, and the remedy.",
        "Do what the remedy says. It is tried again periodically; nothing needs a restart.",
    ),
    Alert(
        "MirrorRetrying",
        f'{_BY_FLOW} (sparkmirror_partitions{{state="retrying"}}) > 0',
        "10m",
        "warning",
        f"{_FLOW}: {{{{ $value }}}} partitions have been retrying for 10 minutes",
        "An error that usually passes by itself has lasted for 10 minutes.",
        "The log has the error; usual causes are unavailable leaders, time-outs and quotas.",
        "Check the brokers that the error names.",
    ),
    Alert(
        "MirrorLostRecords",
        "increase(sparkmirror_lost_records_total[10m]) > 0",
        "0m",
        "critical",
        f"{_FLOW}: {{{{ $value | humanize }}}} records expired before they were copied",
        "Retention, `kafka-delete-records.sh` or compaction of the source removed records that the target does not have.",
        "`sparkmirror_partition_lost_records` names the partitions, the log the offsets. Compare the source's retention with how long the mirror was down or behind.",
        "The records can't be copied any more. Raise the source's retention, and find out what delayed the mirror.",
    ),
    Alert(
        "MirrorTopicRecreated",
        'increase(sparkmirror_incidents_total{kind=~".*-(recreated|truncated)"}[10m]) > 0',
        "0m",
        "critical",
        f"{_FLOW}: {{{{ $labels.kind }}}}",
        "A topic was deleted and created again, or a log lost its end (an unclean leader election, a restored disk).",
        "`sparkmirror_partition_incidents` names the partitions, the log the offsets and the reaction (`on.topic.recreated`, `on.data.loss`).",
        "Run `sparkmirror verify FILE --topic NAME`. Consumers of a recreated topic need new offsets.",
    ),
    Alert(
        "MirrorTopicsGone",
        f"{_BY_FLOW} (sparkmirror_topics_gone) > 0",
        "10m",
        "info",
        f"{_FLOW}: {{{{ $value }}}} topics were deleted on the source and are still on the target",
        "Topics were deleted on the source; the mirror deletes no copies unless `sync.topic.deletes=true`.",
        "`sparkmirror plan FILE` names them.",
        "Delete them on the target when nobody reads them, or set `sync.topic.deletes`.",
    ),
    Alert(
        "MirrorDiffers",
        f"{_BY_FLOW} (sparkmirror_verify_differences) > 0",
        "0m",
        "critical",
        f"{_FLOW}: the last comparison found {{{{ $value }}}} differences",
        "`sparkmirror verify`, or a comparison from a page, found records that differ, or that only one cluster has.",
        "The page *verify* has each partition that differs, its JSON and JUnit files each record. Do others write to the target's topic? `sparkmirror_incidents_total` shows truncated, "
        "recreated or expired logs.",
        "Keep consumers on the source until the cause is known. `sparkmirror verify FILE --topic NAME` compares again; the alert ends when it finds nothing, or after 7 days.",
    ),
    Alert(
        "MirrorNotComparable",
        f'{_BY_FLOW} (sparkmirror_verify_partitions{{result="unreadable"}}) > 0',
        "10m",
        "warning",
        f"{_FLOW}: {{{{ $value }}}} partitions could not be compared",
        "The last comparison could not read all of these partitions.",
        "The page *verify*, or the output of `sparkmirror verify`, has the reason: a missing right, no leader, records that expired meanwhile.",
        "Correct the cause, then compare again: `sparkmirror verify FILE --topic NAME`.",
    ),
    Alert(
        "MirrorComparisonOld",
        f"time() - max by (source, target, connector) (sparkmirror_verify_last_timestamp_seconds) > {COMPARED_AGO_S}",
        "10m",
        "info",
        f"{_FLOW}: compared {{{{ $value | humanizeDuration }}}} ago",
        "The last comparison is older than three days. Results are kept for 7 days; a flow that was never compared has no alert.",
        "Did the job that runs `sparkmirror verify` stop? Does it have WRITE on `mm2-events.SOURCE.internal`?",
        "Run `sparkmirror verify FILE`, or compare from the page *verify*. Remove this rule if you don't compare regularly.",
    ),
    Alert(
        "MirrorCheckpointsStale",
        "time() - max by (source, target, connector) (sparkmirror_last_translation_timestamp_seconds) > 300",
        "5m",
        "warning",
        f"{_FLOW}: offsets of groups were translated {{{{ $value | humanizeDuration }}}} ago",
        "The checkpoint connector has not finished a round for 5 minutes: groups that move now would read more records again. Idle groups and topics don't cause this. Raise the limit if "
        "`emit.checkpoints.interval.seconds` is longer.",
        "The checkpoint connector's log: a missing right on groups or on the offset syncs topic, a cluster that does not answer, too many groups for the interval.",
        "Do what the log says. Don't move consumers until it is solved.",
    ),
    Alert(
        "MirrorGroupsStale",
        "count by (source, target) (time() - sparkmirror_group_translation_timestamp_seconds > 900)",
        "5m",
        "warning",
        f"{_FLOW}: the offsets of {{{{ $value }}}} groups are older than a quarter of an hour",
        "Offsets of these groups can't be read or translated, while others can.",
        "`topk(10, time() - sparkmirror_group_translation_timestamp_seconds)` names the groups, `sparkmirror groups explain FILE GROUP` the reason.",
        "Usually the right DESCRIBE on the group is missing on the source.",
    ),
    Alert(
        "MirrorNoLeader",
        "max by (job) (sparkmirror_leader) == 0",
        "1m",
        "critical",
        "{{ $labels.job }}: no node leads, so that nothing is mirrored",
        "The nodes of the Connect group run, and none of them leads.",
        "`GET /` of each node, and its log: can it reach the group's cluster, and may it read the group (`group.id`)?",
        "Restore the group's cluster. A node with a wrong `group.id` forms a group of its own.",
    ),
    Alert(
        "MirrorRestarting",
        "changes(process_start_time_seconds[30m]) > 3 and on (instance, job) sparkmirror_build_info",
        "0m",
        "warning",
        "{{ $labels.instance }} restarted {{ $value }} times in half an hour",
        "The process ends and is restarted repeatedly.",
        "Its exit code and last log lines: 2 bad settings, or another process copies a flow of the file; 3 could not start; 137 killed, mostly for its memory.",
        "Do what the last line says. After a kill for memory, give it more memory or fewer tasks.",
    ),
    Alert(
        "MirrorClusterDown",
        "min by (source, target, cluster) (sparkmirror_cluster_up) == 0",
        "1m",
        "critical",
        f"{_FLOW}: {{{{ $labels.cluster }}}} does not answer",
        "No broker of the cluster has answered the mirror, or accepted its login, for a minute.",
        "The mirror's log has the error once a minute: a name that does not resolve, a refused connection, a certificate or a password.",
        "Restore the cluster, the network or the credentials. The mirror continues by itself, without loss while the source's retention keeps the records.",
    ),
    Alert(
        "MirrorNotScraped",
        'up{job="mirror"} == 0',
        "1m",
        "critical",
        "{{ $labels.instance }} can't be scraped",
        "The process is gone, does not serve `/metrics`, or Prometheus can't reach it.",
        "Does the process run? `curl http://HOST:PORT/metrics` from Prometheus' machine.",
        "Start it. The Prometheus job must be called `mirror`.",
    ),
    Alert(
        "MirrorAbsent",
        "absent(sparkmirror_partitions)",
        "5m",
        "critical",
        "No mirror is scraped, or none mirrors anything",
        "No series of any flow exists, so no other alert can fire.",
        "Prometheus' targets page: is there a target of the mirror, and is it up? `GET /connectors?expand=status` of a worker: is there a MirrorSourceConnector?",
        "Repair the scrape configuration, or start the mirror and its connectors.",
    ),
)

_STALE: Final = "sum by (source, target) (sparkmirror_lag_seconds > bool {limit}) / count by (source, target) (sparkmirror_lag_seconds)"
STALE_RATIO: Final = "sparkmirror:stale_partitions:ratio"
WINDOWS: Final = ("5m", "30m", "1h", "2h", "6h", "1d", "3d")


def recording_rules() -> list[dict[str, str]]:
    """The objective's measure now, and its mean over each window."""
    rules = [{"record": STALE_RATIO, "expr": _STALE.format(limit=FRESH_S)}]
    rules += [
        {"record": f"{STALE_RATIO}_avg_{window}", "expr": f"avg_over_time({STALE_RATIO}[{window}])"}
        for window in WINDOWS
    ]
    return rules


class Burn(NamedTuple):
    """Alert when both windows use up the budget so many times as quickly as it may be used up in 30 days."""

    long: str
    short: str
    times: float
    severity: str
    lasting: str


BURNS: Final = (
    Burn("1h", "5m", 14.4, "critical", "2m"),
    Burn("6h", "30m", 6.0, "critical", "15m"),
    Burn("1d", "2h", 3.0, "warning", "1h"),
    Burn("3d", "6h", 1.0, "warning", "3h"),
)


def burn_alerts() -> list[Alert]:
    rates = ", ".join(f"{burn.times:g} times in {burn.long}" for burn in BURNS)
    return [
        Alert(
            f"{BUDGET}{burn.long}",
            " and ".join(
                f"{STALE_RATIO}_avg_{window} > {burn.times * (1 - OBJECTIVE):.6g}"
                for window in (burn.long, burn.short)
            ),
            burn.lasting,
            burn.severity,
            f"{_FLOW}: the error budget burns {burn.times:g} times too quickly",
            f"The objective is that {OBJECTIVE:.1%} of the partitions, over 30 days, are at most {FRESH_S} s behind. The error budget was used up faster than that allows: {rates}.",
            f"`{STALE_RATIO}` shows how many partitions are behind now.",
            "Follow the runbook of the other alert that fires; if none does, see [MirrorFallingBehind](#mirrorfallingbehind).",
        )
        for burn in BURNS
    ]


def every_alert() -> list[Alert]:
    return [*ALERTS, *burn_alerts()]
