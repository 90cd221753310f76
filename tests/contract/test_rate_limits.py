"""A flow's rate limits are published in the progress topic, from which running tasks read them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import pytest

from sparkmirror.batches.log_records import LogRecord
from sparkmirror.clusters import LocalCluster
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.ids import ConnectorName
from sparkmirror.mirror.rate_limit_updates import RateLimitUpdates
from sparkmirror.policies.rate_limits import NO_LIMITS, RateLimits
from sparkmirror.settings.configured import configured_flow
from sparkmirror.storage.progress import FlowLimits, parse
from tests.support.broker_data import admin, create_topic, records, topics
from tests.support.waiting import await_value

CONNECTOR: Final = ConnectorName("MirrorSourceConnector")
WAIT_S: Final = 20.0


@contextmanager
def running(cluster: LocalCluster, source: str, more: Mapping[str, str]) -> Iterator[RateLimitUpdates]:
    """Run the rate limit updates of a flow from this source, with a progress topic of its own."""
    properties = {
        "clusters": f"{source}, B",
        f"{source}.bootstrap.servers": cluster.bootstrap_servers,
        "B.bootstrap.servers": cluster.bootstrap_servers,
        f"{source}->B.enabled": "true",
        "emit.heartbeats.enabled": "false",
        **more,
    }
    (config,) = MirrorMakerConfig(Properties(properties), {}).flows()
    settings = configured_flow(config)
    assert settings.source is not None
    current = RateLimitUpdates(settings, settings.source)
    current.thread.start()
    try:
        yield current
    finally:
        current.thread.stop()
        assert current.thread.join(WAIT_S)


def published(cluster: LocalCluster, topic: str) -> list[RateLimits]:
    """Read the published limits in order; none while the topic does not exist."""
    if topic not in topics(cluster):
        return []
    written = [parse(LogRecord(found.key(), found.value())) for found in records(cluster, topic)]
    return [each.limits for each in written if isinstance(each, FlowLimits) and each.connector == CONNECTOR]


def await_published(cluster: LocalCluster, topic: str, expected: list[RateLimits]) -> None:
    await_value(
        lambda: published(cluster, topic) == expected,
        WAIT_S,
        lambda: f"{published(cluster, topic)}, not {expected}",
    )


def await_line(caplog: pytest.LogCaptureFixture, start: str) -> None:
    await_value(
        lambda: any(line.startswith(start) for line in caplog.messages), WAIT_S, lambda: f"{caplog.messages}"
    )


def test_limits_are_published_at_the_start_and_after_each_change(
    target_cluster: LocalCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "sparkmirror")
    topic = "mm2-progress.paced.internal"
    with running(target_cluster, "paced", {"paced->B.max.bytes.per.second": "5000000"}) as current:
        assert current.limits == RateLimits(5_000_000), "plans need no topic"
        create_topic(target_cluster.bootstrap_servers, topic)  # only now, as at a first start
        await_published(target_cluster, topic, [RateLimits(5_000_000)])
        current.change(RateLimits(5_000_000))
        slower = RateLimits(1000, (("orders.*", 10),))
        current.change(slower)
        assert current.limits == slower, "plans have it before tasks hear of it"
        await_published(target_cluster, topic, [RateLimits(5_000_000), slower])
        client = admin(target_cluster)
        client.delete_topics([topic])[topic].result()
        await_value(lambda: topic not in topics(target_cluster), WAIT_S, lambda: f"{topic} is still there")
        current.change(NO_LIMITS)
        await_line(caplog, "the tasks can't be notified to copy without limits: ")
        create_topic(target_cluster.bootstrap_servers, topic)
        await_published(target_cluster, topic, [NO_LIMITS])
        await_line(caplog, "now copies without limits")
    said = [record for record in caplog.records if record.name == "sparkmirror.mirror.rate_limit_updates"]
    assert [record.levelname for record in said] == ["INFO", "INFO", "WARNING", "INFO"], "failures: once"
    assert [record.getMessage() for record in said[:2]] == [
        "copies at most 5 MB/s",
        "now copies at most 1 KB/s, each topic of orders.* at most 10 B/s",
    ]


def test_start_without_limits_removes_former_ones(target_cluster: LocalCluster) -> None:
    topic = "mm2-progress.unpaced.internal"
    create_topic(target_cluster.bootstrap_servers, topic)
    with running(target_cluster, "unpaced", {"topic.max.bytes.per.second": "a=5"}):
        await_published(target_cluster, topic, [RateLimits(None, (("a", 5),))])
    with running(target_cluster, "unpaced", {}):
        await_published(target_cluster, topic, [RateLimits(None, (("a", 5),)), NO_LIMITS])
