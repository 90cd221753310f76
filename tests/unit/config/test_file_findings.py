import pytest

from sparkmirror.config.file_findings import all_topics, file_findings
from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.findings import Severity
from sparkmirror.domain.ids import Alias, Flow

FLOW = Flow(Alias("west"), Alias("east"))
FILE = {
    "clusters": "west, east",
    "west.bootstrap.servers": "w:1",
    "east.bootstrap.servers": "e:1",
    "west->east.enabled": "true",
    "west->east.topics": "orders",
}


def config(**changed: str | None) -> MirrorMakerConfig:
    """Return the file's config, with other values for some keys, `__` for `->`; None leaves a key out."""
    properties = {**FILE, **{key.replace("__", "->"): value for key, value in changed.items()}}
    return MirrorMakerConfig(Properties({key: value for key, value in properties.items() if value}), {})


def test_nothing_is_found_in_a_file_that_is_read_whole() -> None:
    assert file_findings(config()) == ()
    assert list(all_topics(config(), FLOW)) == []


@pytest.mark.parametrize(
    ("key", "severity", "text", "remedy"),
    [
        ("west->east.topcis", Severity.WARNS, "nothing reads this key", "did you mean west->east.topics?"),
        (
            "wset->east.topics",
            Severity.WARNS,
            "nothing reads this key: wset is not in clusters (west, east)",
            "did you mean west->east.topics?",
        ),
        (
            "west->nowhere.qwertz",
            Severity.WARNS,
            "nothing reads this key: nowhere is not in clusters (west, east)",
            "",
        ),
        ("xyzzy", Severity.WARNS, "nothing reads this key", ""),
        (
            "use.incremental.alter.configs",
            Severity.WARNS,
            "nothing reads this key: removed in Kafka 4.0, incremental alteration is always required",
            "",
        ),
    ],
)
def test_keys_that_nothing_reads(key: str, severity: Severity, text: str, remedy: str) -> None:
    (found,) = file_findings(config(**{key: "x"}))
    assert (found.subject, found.severity, found.text, found.remedy) == (key, severity, text, remedy)


def test_a_file_without_an_enabled_flow() -> None:
    (found,) = file_findings(config(**{"west->east.enabled": None}))
    assert (found.severity, found.remedy) == (Severity.WARNS, "set west->east.enabled=true")
    assert found.text == "no flow is enabled: nothing is mirrored, only heartbeats are emitted"


def test_topics_that_are_left_at_all_are_a_note() -> None:
    unset = config(**{"west->east.topics": None})
    (found,) = all_topics(unset, FLOW)
    assert (found.subject, found.severity) == ("west->east.topics", Severity.NOTE)
    assert list(all_topics(config(**{"west->east.topics": None, "topics": "a"}), FLOW)) == []
    assert list(all_topics(unset, Flow(FLOW.target, FLOW.source))) == []
