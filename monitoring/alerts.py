"""The alerts: each with its condition, and the three paragraphs of its runbook."""

from typing import Final, NamedTuple

OBJECTIVE: Final = 0.999
FRESH_S: Final = 60
"""The objective: so many of the partitions, over 30 days, are at most this old on the target."""
COMPARED_AGO_S: Final = 3 * 86_400


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


_FLOW: Final = "{{ $labels.source }}->{{ $labels.target }}"
_BY_FLOW: Final = "sum by (source, target, connector)"

ALERTS: Final = (
    Alert(
        "MirrorBehind",
        f"max by (source, target, topic) (sparkmirror_lag_seconds) > {FRESH_S}",
        "2m",
        "warning",
        f"{_FLOW}: {{{{ $labels.topic }}}} is {{{{ $value | humanizeDuration }}}} behind",
        "The oldest record of the topic that the target does not have has been in the source for more than a minute. In an outage of either "
        "cluster this grows by the clock.",
        "Is `sparkmirror_cluster_up` 0 for a cluster? Then [MirrorClusterDown](#mirrorclusterdown) is the cause. Is the lag of all topics high, or of one? "
        'Does `sparkmirror_partitions{state=~"retrying|failed"}` count any? The log names each such partition with its error.',
        "If it falls, wait: a backlog is being copied. If a limit (`max.bytes.per.second`, `topic.max.bytes.per.second`) holds the topic back, raise it in the "
        "file; it takes effect in seconds. If all topics of the flow are behind and no partition has an error, give it more tasks (`tasks.max`) or cores.",
    ),
    Alert(
        "MirrorFallingBehind",
        "sum by (source, target, topic) (deriv(sparkmirror_lag_records[10m])) > 0 "
        "and sum by (source, target, topic) (sparkmirror_lag_records) > 10000",
        "15m",
        "warning",
        f"{_FLOW}: {{{{ $labels.topic }}}} falls behind by {{{{ $value | humanize }}}} records a second",
        "The topic is written faster than it is copied: more than 10,000 records are missing, and for a quarter of an hour there have been more and more.",
        "`kafka_connect_mirror_source_connector_byte_rate` of the flow against what its brokers, its network and its tasks can do. One partition alone "
        "that grows is one hot partition: a task copies it, and no other can help.",
        "Raise `tasks.max` up to the number of partitions, and Spark's cores with it; raise limits that are set. For a hot partition look at the round-trip time "
        "between the clusters and at the target's acknowledgement time.",
    ),
    Alert(
        "MirrorStalled",
        f"{_BY_FLOW} (sparkmirror_stalled_partitions) > 0",
        "1m",
        "critical",
        f"{_FLOW}: {{{{ $value }}}} partitions are stalled",
        "Partitions have records to copy, have made no progress for a minute, and report no error.",
        "The log line `stalled at offset …` names each. Is the source's leader of that partition overloaded, or its records in an open transaction "
        "(`consumer.isolation.level=read_committed`)? Does the Spark executor of its task still get CPU?",
        "Find hanging transactions with `kafka-transactions.sh find-hanging` and abort them. Otherwise restart the connector: it continues exactly where it was.",
    ),
    Alert(
        "MirrorSilent",
        f'{_BY_FLOW} (sparkmirror_partitions{{state=~"silent|unknown"}}) > 0',
        "1m",
        "critical",
        f"{_FLOW}: nothing is known of {{{{ $value }}}} partitions",
        "Their tasks do not report (`silent`), or no report can be read from the target (`unknown`). They may be copied or not.",
        "`unknown`: does the target answer (`sparkmirror_cluster_up`)? `silent`: Spark's log, whose path the command prints at its start; executors that are lost or can't "
        "start; too few slots for the tasks.",
        "Bring the target back, or give Spark the cores that the tasks need. The mirror continues by itself.",
    ),
    Alert(
        "MirrorPartitionFailed",
        f'{_BY_FLOW} (sparkmirror_partitions{{state="failed"}}) > 0',
        "0m",
        "critical",
        f"{_FLOW}: {{{{ $value }}}} partitions failed and need somebody",
        "Something that does not pass by itself stopped these partitions: a missing right, a record that the target refuses, lost records that `on.data.loss=fail` asks about.",
        "The log and `GET /connectors/NAME/status` have each partition with its error and what to do about it.",
        "Do what the error says. Failed partitions are tried again now and then, so that most need no restart.",
    ),
    Alert(
        "MirrorRetrying",
        f'{_BY_FLOW} (sparkmirror_partitions{{state="retrying"}}) > 0',
        "10m",
        "warning",
        f"{_FLOW}: {{{{ $value }}}} partitions have been retrying for 10 minutes",
        "These partitions meet an error that usually passes, and it has not.",
        "The log has the error. Leaders that are not available, time-outs and quotas of the brokers are the usual ones.",
        "Look after the brokers that the error names.",
    ),
    Alert(
        "MirrorLostRecords",
        "increase(sparkmirror_lost_records_total[10m]) > 0",
        "0m",
        "critical",
        f"{_FLOW}: {{{{ $value | humanize }}}} records expired before they were copied",
        "Retention, `kafka-delete-records.sh` or compaction of the source removed records that the target does not have.",
        "`sparkmirror_partition_lost_records` names the partitions, the log the offsets. Compare retention on the source with how long the mirror was away or behind.",
        "The records can't be copied any more. Raise retention on the source, and find what held the mirror back.",
    ),
    Alert(
        "MirrorTopicRecreated",
        'increase(sparkmirror_incidents_total{kind=~".*-(recreated|truncated)"}[10m]) > 0',
        "0m",
        "critical",
        f"{_FLOW}: {{{{ $labels.kind }}}}",
        "A topic was deleted and created again, or a log lost its end (an unclean leader election, a restored disk).",
        "`sparkmirror_partition_incidents` names the partitions, the log the offsets and how the mirror continued (`on.topic.recreated`, `on.data.loss`).",
        "Run `sparkmirror verify FILE --topic NAME` to see what the target has. Consumers of a topic that begins again need new offsets.",
    ),
    Alert(
        "MirrorTopicsGone",
        f"{_BY_FLOW} (sparkmirror_topics_gone) > 0",
        "10m",
        "info",
        f"{_FLOW}: {{{{ $value }}}} topics were deleted on the source and are still on the target",
        "The mirror does not delete topics on the target unless it is asked to.",
        "`sparkmirror plan FILE` names them.",
        "Delete them on the target when nobody reads them, or set `sync.topic.deletes` if the target is to follow.",
    ),
    Alert(
        "MirrorDiffers",
        f"{_BY_FLOW} (sparkmirror_verify_differences) > 0",
        "0m",
        "critical",
        f"{_FLOW}: the last comparison found {{{{ $value }}}} differences",
        "`sparkmirror verify`, or a comparison from a page, has found records of the source that are not on the target as they are there, or records that only the target has.",
        "The page *verify* of the flow has each partition that differs, the comparison's JSON and JUnit files each record. Was the topic written by others on the target? "
        "`sparkmirror_incidents_total` tells whether logs were truncated, recreated or expired.",
        "Keep consumers on the source until the cause is known. `sparkmirror verify FILE --topic NAME` compares again: the alert ends when it finds nothing, and after 7 days.",
    ),
    Alert(
        "MirrorNotComparable",
        f'{_BY_FLOW} (sparkmirror_verify_partitions{{result="unreadable"}}) > 0',
        "10m",
        "warning",
        f"{_FLOW}: {{{{ $value }}}} partitions could not be compared",
        "The last comparison could not read all of these partitions, so nothing is known of what it did not read.",
        "The page *verify*, or what `sparkmirror verify` printed, has the reason: a missing right to read the target, no leader, records that expired meanwhile.",
        "Mend what the reason names, then compare again: `sparkmirror verify FILE --topic NAME`.",
    ),
    Alert(
        "MirrorComparisonOld",
        f"time() - max by (source, target, connector) (sparkmirror_verify_last_timestamp_seconds) > {COMPARED_AGO_S}",
        "10m",
        "info",
        f"{_FLOW}: compared {{{{ $value | humanizeDuration }}}} ago",
        "Both clusters were compared once, and not for three days since. Results are kept for 7 days; a flow that was never compared has no alert.",
        "Did the job that runs `sparkmirror verify` stop, or does it write its result elsewhere (it needs the right to write `mm2-events.SOURCE.internal`)?",
        "Run `sparkmirror verify FILE`, or compare from the page *verify*. Who does not compare regularly drops this rule.",
    ),
    Alert(
        "MirrorCheckpointsStale",
        "time() - max by (source, target, connector) (sparkmirror_last_translation_timestamp_seconds) > 300",
        "5m",
        "warning",
        f"{_FLOW}: offsets of groups were translated {{{{ $value | humanizeDuration }}}} ago",
        "The checkpoint connector has not finished a round for 5 minutes: a group that moved to the target now would read more records again. Silent groups and topics do "
        "not cause this. Raise the limit if `emit.checkpoints.interval.seconds` is longer.",
        "The log of the checkpoint connector: a missing right on groups or on the offset syncs topic, a cluster that does not answer, too many groups for the interval.",
        "Do what the log says. Don't move consumers before it has passed.",
    ),
    Alert(
        "MirrorGroupsStale",
        "count by (source, target) (time() - sparkmirror_group_translation_timestamp_seconds > 900)",
        "5m",
        "warning",
        f"{_FLOW}: the offsets of {{{{ $value }}}} groups are older than a quarter of an hour",
        "Offsets of these groups can't be read or translated, while others can.",
        "`topk(10, time() - sparkmirror_group_translation_timestamp_seconds)` names the groups, `sparkmirror groups explain GROUP FILE` the reason.",
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
        "Bring the cluster of the group back. With a wrong `group.id` a node forms a group of its own.",
    ),
    Alert(
        "MirrorRestarting",
        "changes(process_start_time_seconds[30m]) > 3 and on (instance, job) sparkmirror_build_info",
        "0m",
        "warning",
        "{{ $labels.instance }} restarted {{ $value }} times in half an hour",
        "The process ends and is started again and again.",
        "Its exit code and last log lines: 2 bad settings, or another process copies a flow of the file; 3 could not start; 137 killed, mostly for its memory.",
        "Do what the last line says. After a kill for memory, give it more, or fewer tasks per node.",
    ),
    Alert(
        "MirrorClusterDown",
        "min by (source, target, cluster) (sparkmirror_cluster_up) == 0",
        "1m",
        "critical",
        f"{_FLOW}: {{{{ $labels.cluster }}}} does not answer",
        "No broker of the cluster has answered the mirror, or accepted its login, for a minute.",
        "The mirror's log has the error once a minute: a name that does not resolve, a refused connection, a certificate or a password.",
        "Bring the cluster, the network or the credentials back. The mirror continues by itself, without loss as long as retention keeps the records.",
    ),
    Alert(
        "MirrorNotScraped",
        'up{job="mirror"} == 0',
        "1m",
        "critical",
        "{{ $labels.instance }} can't be scraped",
        "The process is gone, does not serve `/metrics`, or Prometheus can't reach it.",
        "Does the process run? `curl http://HOST:PORT/metrics` from Prometheus' machine.",
        "Start it. The job must be called `mirror` in Prometheus' configuration, or change the rules.",
    ),
    Alert(
        "MirrorAbsent",
        "absent(sparkmirror_partitions)",
        "5m",
        "critical",
        "No mirror is scraped, or none mirrors anything",
        "No series of any mirrored flow is there: the other alerts would stay silent whatever happens.",
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
    return [
        Alert(
            f"MirrorFreshnessBudget{burn.long}",
            " and ".join(
                f"{STALE_RATIO}_avg_{window} > {burn.times * (1 - OBJECTIVE):.6g}"
                for window in (burn.long, burn.short)
            ),
            burn.lasting,
            burn.severity,
            f"{_FLOW}: the error budget burns {burn.times:g} times too quickly",
            f"The objective is that {OBJECTIVE:.1%} of the partitions, over 30 days, are at most {FRESH_S} s behind. In the last {burn.long} more of it was used up than "
            f"{burn.times:g} times what that allows.",
            f"`{STALE_RATIO}` tells how many partitions are behind now; the other alerts tell why.",
            "Follow the runbook of the alert that fires besides. If none does, the flow is at its limit: see [MirrorFallingBehind](#mirrorfallingbehind).",
        )
        for burn in BURNS
    ]


def every_alert() -> list[Alert]:
    return [*ALERTS, *burn_alerts()]
