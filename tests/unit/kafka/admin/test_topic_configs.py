"""DescribeConfigs responses of every version are decoded as kafka-python encodes them."""

from itertools import repeat
from typing import Any

import pytest
from kafka.protocol.admin import DescribeConfigsRequest, DescribeConfigsResponse

from sparkmirror.domain.topics import ConfigEntry, ConfigSource
from sparkmirror.kafka.admin.topic_configs import DescribedTopic, TopicConfigsReader, encode_body
from tests.support.canned_responses import CannedConnection, cluster_of

VERSIONS = range(1, 5)
Result = DescribeConfigsResponse.DescribeConfigsResult
Config = Result.DescribeConfigsResourceResult
Synonym = Config.DescribeConfigsSynonym


def config(name: str, value: str | None, source: ConfigSource, *, sensitive: bool = False) -> Any:
    return Config(
        name=name,
        value=value,
        read_only=False,
        config_source=int(source),
        is_sensitive=sensitive,
        synonyms=[Synonym(name="log." + name, value=value, source=5)],
        config_type=2,
        documentation="What it's for.",
    )


def result(topic: str, *configs: Any, error: int = 0, message: str | None = None) -> Any:
    return Result(
        error_code=error, error_message=message, resource_type=2, resource_name=topic, configs=list(configs)
    )


def broker(results: list[Any], version: int = 4) -> CannedConnection:
    """A broker that responds so to every request."""
    response = DescribeConfigsResponse(throttle_time_ms=0, results=results).encode(version=version)
    return CannedConnection(repeat(bytes(response)), version, flexible=version >= 4)


RETENTION = ("retention.ms", "1000", ConfigSource.DYNAMIC_TOPIC_CONFIG)
SECRET = ("secret", None, ConfigSource.DEFAULT_CONFIG)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_tells_the_same(version: int) -> None:
    answer = [
        result("a", config(*RETENTION), config(*SECRET, sensitive=True)),
        result("b", config(*RETENTION)),
        result("c", config(*RETENTION), config(*SECRET, sensitive=True)),
        result("d", error=3, message="gone"),
    ]
    retention, secret = ConfigEntry(*RETENTION), ConfigEntry(*SECRET, is_sensitive=True)
    reader = TopicConfigsReader(cluster_of(broker(answer, version)))
    for _ in range(2):
        a, b, c, d = reader.describe("abcd")
        assert a == DescribedTopic("a", (retention, secret))
        assert b == DescribedTopic("b", (retention,))
        assert c.entries is a.entries
        assert d == DescribedTopic("d", (), 3, "gone")


def test_more_kinds_of_topics_than_are_kept_are_all_read() -> None:
    kinds = [ConfigEntry("retention.ms", str(number)) for number in range(100)]
    answer = [result(kind.value or "", config(kind.name, kind.value, kind.source)) for kind in kinds]
    described = TopicConfigsReader(cluster_of(broker(answer))).describe(["any"])
    assert [topic.entries for topic in described] == [(kind,) for kind in kinds]


def test_thousands_are_asked_for_in_portions() -> None:
    asked = broker([])
    reader = TopicConfigsReader(cluster_of(asked))
    assert list(reader.describe([f"t{number}" for number in range(1100)])) == []
    assert len(asked.requests) == 5
    assert max(map(len, asked.requests)) < 4000


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("names", [[], ["retention.ms", "segment.ms"]])
def test_requests_are_those_of_the_library(version: int, names: list[str]) -> None:
    asked = [
        DescribeConfigsRequest.DescribeConfigsResource(
            resource_type=2, resource_name=topic, configuration_keys=names or None
        )
        for topic in ("orders", "more")
    ]
    theirs = DescribeConfigsRequest(resources=asked, include_synonyms=False, include_documentation=False)
    assert encode_body(["orders", "more"], names, version) == bytes(theirs.encode(version=version))
