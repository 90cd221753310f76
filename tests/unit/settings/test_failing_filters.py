"""A filter that fails for one group, topic or config spoils that one only."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import pytest

from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import PluginError
from sparkmirror.domain.ids import GroupId
from sparkmirror.domain.topics import ConfigEntry
from sparkmirror.domain.troubles import TroubleWord
from sparkmirror.policies.config_filter import EachConfigAlone, config_changes, creation_configs
from sparkmirror.policies.replication import DefaultReplicationPolicy
from sparkmirror.settings.checkpoint import MirrorCheckpointSettings, is_followed, selected_groups
from sparkmirror.settings.parsing import mirror_checkpoint_settings
from sparkmirror.setup.config_troubles import failed_configs

FAILURE: Final = PluginError("a:Filter.should_replicate('bad') raised KeyError: 'bad'")


class FailingFilter:
    """Selects everything, and fails for `bad`."""

    def should_replicate(self, name: str) -> bool:
        if name == "bad":
            raise FAILURE
        return True

    def refused_by(self, name: str) -> str | None:
        return None if self.should_replicate(name) else "a:Filter"

    should_replicate_config_property = should_replicate
    should_replicate_source_default = should_replicate


class FailingPolicy(DefaultReplicationPolicy):
    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        FailingFilter().should_replicate(topic)
        return super().format_remote_topic(source_alias, topic)


@pytest.fixture
def settings() -> MirrorCheckpointSettings:
    made = mirror_checkpoint_settings(
        Properties(
            {
                "name": "checkpoints",
                "connector.class": "org.apache.kafka.connect.mirror.MirrorCheckpointConnector",
                "source.cluster.alias": "A",
                "target.cluster.alias": "B",
                "source.cluster.bootstrap.servers": "a:9092",
                "target.cluster.bootstrap.servers": "b:9092",
                "topics": ".*",
            }
        )
    )
    assert made is not None
    return made


def test_a_group_filter_that_fails_for_one_group_selects_the_others(
    settings: MirrorCheckpointSettings,
) -> None:
    changed = replace(settings, group_filter=FailingFilter())
    found = selected_groups(changed, map(GroupId, ["a", "bad", "c"]))
    assert found.groups == ["a", "c"]
    assert found.failed == {"bad": FAILURE}


@pytest.mark.parametrize(
    "changed",
    [
        lambda it: replace(it, topic_filter=FailingFilter()),
        lambda it: replace(it, policy=FailingPolicy(".")),
    ],
    ids=["filter", "policy"],
)
def test_a_plug_in_that_fails_for_one_topic_leaves_groups_the_others(
    settings: MirrorCheckpointSettings,
    changed: Callable[[MirrorCheckpointSettings], MirrorCheckpointSettings],
) -> None:
    spoiled = changed(settings)
    assert [topic for topic in ("a", "bad", "c") if is_followed(spoiled, topic)] == ["a", "c"]


def test_a_config_filter_that_fails_for_one_config_leaves_it_out() -> None:
    here, there = ([ConfigEntry(name, value) for name in ("a", "bad", "c")] for value in ("1", "2"))
    alone = EachConfigAlone(FailingFilter())
    assert creation_configs(alone, here) == (("a", "1"), ("c", "1"))
    assert [each.name for each in config_changes(alone, here, there).operations] == ["a", "c"]
    (trouble,) = failed_configs(alone.failed)
    assert (trouble.word, trouble.what) == (TroubleWord.DIFFERS, "bad")
    assert trouble.text.startswith(str(FAILURE))
