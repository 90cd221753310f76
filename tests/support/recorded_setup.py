"""Reads and writes tests/golden/setup: topics, configs and ACLs of two clusters, as recorded.

`source.json` is a source as its broker described it, `java.json` what Java's MM2 4.3.1 created from it
on a target as `flows.properties` says, of the configs only those that were set on topics.
`python -m tests.system.setup_scenario` records both again.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "setup"
FLOWS: Final = ("plain", "src", "excl", "id", "sep")
"""The aliases of the one source; each flow has other settings."""
TARGET: Final = "T"
DEPARTURES: Final = frozenset({"plain.plain.heartbeats", "sep_north.checkpoints.internal"})
"""Copies that only Java makes: of a copy on its own source, and of a mirror's state (docs/decisions/0013)."""
SET: Final = "DYNAMIC_TOPIC_CONFIG"
"""The source of a config that was set on the topic itself."""

Config = tuple[str | None, str]
"""A value and the name of its source."""
Acl = tuple[str, str, str, str, str, str, str]
"""Resource type, pattern type, name, principal, host, operation, permission."""


@dataclass(frozen=True, slots=True)
class Topic:
    partitions: int
    replicas: int
    configs: Mapping[str, Config] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Setup:
    """Topics, configs and ACLs of a cluster without the internal topics of workers."""

    topics: Mapping[str, Topic]
    acls: frozenset[Acl]

    def as_set(self) -> "Setup":
        """Keep only the configs that were set on topics."""
        topics = {
            name: Topic(
                topic.partitions,
                topic.replicas,
                {key: config for key, config in topic.configs.items() if config[1] == SET},
            )
            for name, topic in self.topics.items()
        }
        return Setup(topics, self.acls)

    def without(self, names: Collection[str]) -> "Setup":
        """Leave topics and their ACLs out."""
        topics = {name: topic for name, topic in self.topics.items() if name not in names}
        return Setup(topics, frozenset(acl for acl in self.acls if acl[2] not in names))

    def difference(self, other: "Setup") -> str:
        """Describe the differences."""
        sides = {"-": set(self._lines()), "+": set(other._lines())}
        return "\n".join(
            f"{sign} {line}"
            for sign, left, right in (("-", sides["-"], sides["+"]), ("+", sides["+"], sides["-"]))
            for line in sorted(left - right)
        )

    def _lines(self) -> Iterable[str]:
        for name, topic in self.topics.items():
            yield f"{name}: {topic.partitions} partitions, {topic.replicas} replicas"
            yield from (f"{name}: {key} = {config}" for key, config in topic.configs.items())
        yield from map(str, self.acls)


def recorded(name: str) -> Setup:
    """Read `source`, or `java`, its target with only the configs that were set."""
    saved = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    topics = {
        topic: Topic(
            partitions,
            replicas,
            {key: _config(saved_config) for key, saved_config in (saved["defaults"] | configs_here).items()},
        )
        for topic, (partitions, replicas, configs_here) in saved["topics"].items()
    }
    return Setup(topics, frozenset(tuple(acl) for acl in saved["acls"]))


def _config(saved: str | list[str]) -> Config:
    """Encode a config; one that was set on the topic is only its value."""
    return (saved, SET) if isinstance(saved, str) else (saved[0], saved[1])


def record(name: str, setup: Setup) -> None:
    """Write what `recorded` reads."""
    usual = _usual(setup)

    def as_saved(config: Config) -> str | Config | None:
        return config[0] if config[1] == SET else config

    saved = {
        "defaults": {key: as_saved(config) for key, config in usual.items()},
        "topics": {
            name: (
                topic.partitions,
                topic.replicas,
                {
                    key: as_saved(each)
                    for key, each in sorted(topic.configs.items())
                    if each != usual.get(key)
                },
            )
            for name, topic in sorted(setup.topics.items())
        },
        "acls": sorted(setup.acls),
    }
    (GOLDEN / f"{name}.json").write_text(_lines(saved), encoding="utf-8")


def _usual(setup: Setup) -> Mapping[str, Config]:
    """Return the most frequent value of each config that all topics have."""
    described = [topic.configs for topic in setup.topics.values()]
    shared = set.intersection(*(set(configs) for configs in described))
    return {
        key: Counter(configs[key] for configs in described).most_common(1)[0][0] for key in sorted(shared)
    }


def _lines(saved: Mapping[str, Any]) -> str:
    """JSON with a line for each config, topic and ACL."""

    def text(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    def block(value: Any) -> str:
        if isinstance(value, dict):
            lines = ",\n".join(f"{text(key)}: {text(each)}" for key, each in value.items())
            return f"{{\n{lines}\n}}"
        return "[\n" + ",\n".join(map(text, value)) + "\n]"

    blocks = ",\n".join(f"{text(key)}: {block(value)}" for key, value in saved.items())
    return f"{{{blocks}}}\n"
