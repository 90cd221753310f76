"""Has series for each alert of `monitoring/alerts.yml`: some for which it fires, some for which it does not.

Series are promtool's: a value each step, `0+1x10` begins at 0 and rises by 1 ten times. A step is a minute,
or longer where promtool would take minutes for the windows of days.
"""

from typing import Final, NamedTuple

_FLOW: Final = 'source="a",target="b"'
_CONNECTOR: Final = f'{_FLOW},connector="c"'
_LAG: Final = f'sparkmirror_lag_seconds{{{_FLOW},destination="b",topic="t",partition="0"}}'
_RECORDS: Final = f'sparkmirror_lag_records{{{_FLOW},destination="b",topic="t",partition="0"}}'
_STATE: Final = f'sparkmirror_partitions{{{_CONNECTOR},state="%s"}}'
_TROUBLES: Final = f'sparkmirror_troubles{{{_CONNECTOR},word="%s"}}'
_LOST: Final = f"sparkmirror_lost_records_total{{{_CONNECTOR}}}"
_INCIDENTS: Final = f'sparkmirror_incidents_total{{{_CONNECTOR},kind="%s"}}'
_TRANSLATED: Final = f"sparkmirror_last_translation_timestamp_seconds{{{_CONNECTOR}}}"
_GROUP: Final = f'sparkmirror_group_translation_timestamp_seconds{{{_FLOW},group="g"}}'
_DIFFERENCES: Final = f"sparkmirror_verify_differences{{{_CONNECTOR}}}"
_COMPARED: Final = f'sparkmirror_verify_partitions{{{_CONNECTOR},result="%s"}}'
_VERIFIED: Final = f"sparkmirror_verify_last_timestamp_seconds{{{_CONNECTOR}}}"
_UP: Final = f'sparkmirror_cluster_up{{{_CONNECTOR},cluster="b"}}'
_LEADS: Final = 'sparkmirror_leader{job="mirror",instance="%s"}'
_PROCESS: Final = 'process_start_time_seconds{instance="i",job="mirror"}'
_BUILD: Final = ('sparkmirror_build_info{instance="i",job="mirror",version="1"}', "1x7000")

Series = tuple[str, str]


class Case(NamedTuple):
    """Whether the alert fires at this minute, a multiple of `step`, which is in minutes."""

    alert: str
    minute: int
    fires: bool
    series: tuple[Series, ...]
    step: int = 1


def _both(alert: str, minute: int, fires: tuple[Series, ...], quiet: tuple[Series, ...]) -> list[Case]:
    return [Case(alert, minute, True, fires), Case(alert, minute, False, quiet)]


def _budget(window: str, minute: int, behind: int, short: int, step: int) -> list[Case]:
    """While all of a flow is behind, for `behind` minutes now, the budget burns a thousand times too quickly.

    What was behind as long, but has caught up for more than the `short` window, fires no more.
    """
    name = f"MirrorFreshnessBudget{window}"
    before, during, after = (at // step for at in (minute - behind, behind, short + 2 * step))
    firing = Case(name, minute, True, ((_LAG, f"0x{before} 600x{during}"),), step)
    over = Case(name, minute, False, ((_LAG, f"0x{before - after} 600x{during} 0x{after}"),), step)
    return [firing, over]


CASES: Final = (
    *_both("MirrorBehind", 5, ((_LAG, "90x10"),), ((_LAG, "90x1 30x10"),)),
    *_both("MirrorFallingBehind", 40, ((_RECORDS, "20000+500x60"),), ((_RECORDS, "90000-500x60"),)),
    Case("MirrorFallingBehind", 40, False, ((_RECORDS, "0+10x60"),)),
    *_both(
        "MirrorStalled",
        3,
        ((f"sparkmirror_stalled_partitions{{{_CONNECTOR}}}", "2x10"),),
        ((f"sparkmirror_stalled_partitions{{{_CONNECTOR}}}", "0x10"),),
    ),
    *_both("MirrorSilent", 3, ((_STATE % "silent", "1x10"),), ((_STATE % "silent", "0x10"),)),
    *_both("MirrorSilent", 3, ((_STATE % "unknown", "1x10"),), ((_STATE % "running", "1x10"),)),
    *_both("MirrorPartitionFailed", 1, ((_STATE % "failed", "1x10"),), ((_STATE % "failed", "0x10"),)),
    *_both("MirrorTrouble", 7, ((_TROUBLES % "not created", "9x20"),), ((_TROUBLES % "throttled", "9x20"),)),
    *_both("MirrorRetrying", 12, ((_STATE % "retrying", "1x20"),), ((_STATE % "retrying", "1x5 0x20"),)),
    *_both("MirrorLostRecords", 8, ((_LOST, "0x5 40x10"),), ((_LOST, "40x20"),)),
    *_both(
        "MirrorTopicRecreated",
        8,
        ((_INCIDENTS % "source-recreated", "0x5 1x10"),),
        ((_INCIDENTS % "batch-skipped", "0x5 1x10"),),
    ),
    Case("MirrorTopicRecreated", 8, True, ((_INCIDENTS % "target-truncated", "0x5 1x10"),)),
    *_both(
        "MirrorTopicsGone",
        12,
        ((f"sparkmirror_topics_gone{{{_CONNECTOR}}}", "1x20"),),
        ((f"sparkmirror_topics_gone{{{_CONNECTOR}}}", "0x20"),),
    ),
    *_both("MirrorCheckpointsStale", 15, ((_TRANSLATED, "0x30"),), ((_TRANSLATED, "0+60x30"),)),
    *_both("MirrorGroupsStale", 25, ((_GROUP, "0x30"),), ((_GROUP, "0+60x30"),)),
    *_both(
        "MirrorNoLeader",
        3,
        ((_LEADS % "i", "0x9"), (_LEADS % "j", "0x9")),
        ((_LEADS % "i", "0x9"), (_LEADS % "j", "1x9")),
    ),
    *_both(
        "MirrorRestarting",
        20,
        ((_PROCESS, "0+60x30"), _BUILD),
        ((_PROCESS, "5x30"), _BUILD),
    ),
    Case("MirrorRestarting", 20, False, ((_PROCESS, "0+60x30"),)),  # another program's
    *_both("MirrorClusterDown", 3, ((_UP, "0x10"),), ((_UP, "1x10"),)),
    *_both(
        "MirrorNotScraped",
        3,
        (('up{job="mirror",instance="i"}', "0x10"),),
        (('up{job="other",instance="i"}', "0x10"),),
    ),
    *_both("MirrorDiffers", 1, ((_DIFFERENCES, "3x10"),), ((_DIFFERENCES, "0x10"),)),
    *_both(
        "MirrorNotComparable",
        12,
        ((_COMPARED % "unreadable", "1x20"),),
        ((_COMPARED % "equal", "9x20"),),
    ),
    Case("MirrorComparisonOld", 4410, True, ((_VERIFIED, "0x200"),), 30),
    Case("MirrorComparisonOld", 4410, False, ((_VERIFIED, "0+1800x200"),), 30),
    *_both("MirrorAbsent", 7, (("other", "1x10"),), ((_STATE % "running", "1x10"),)),
    *_budget("1h", 120, behind=15, short=5, step=1),
    *_budget("6h", 720, behind=60, short=30, step=5),
    *_budget("1d", 2880, behind=4 * 60, short=2 * 60, step=10),
    *_budget("3d", 7200, behind=12 * 60, short=6 * 60, step=30),
)  # fmt: skip

FIRES_WITHOUT_SERIES: Final = frozenset({"MirrorAbsent"})
