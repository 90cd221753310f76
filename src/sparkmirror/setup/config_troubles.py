"""Makes the troubles of configs in which topics of the target can't follow the source. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from sparkmirror.domain.errors import KafkaError, PluginError
from sparkmirror.domain.ids import Alias
from sparkmirror.domain.quantities import some_of
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.setup.refused_configs import RefusedConfigs


def unknown_configs(target: Alias, unknown: Mapping[str, Sequence[str]]) -> Iterator[Trouble]:
    """`unknown` has the configs by topic that the target's version does not have."""
    for name, topics in _by_config(unknown).items():
        reason = f"{target} does not know this config: {some_of(topics)} can't follow the source there"
        yield _differs(name, reason, f"upgrade {target}, or add {name} to config.properties.exclude")


def refused_configs(target: Alias, refused: RefusedConfigs) -> Iterator[Trouble]:
    """The reason has the answer to the first topic of each config."""
    for name, topics in _by_config(refused).items():
        reason = f"{some_of(topics)} can't follow the source in {name}: {refused[topics[0]][name]}"
        yield _differs(name, reason, remedy_of_refused(target, name))


def failed_configs(failed: Mapping[str, PluginError]) -> Iterator[Trouble]:
    """`failed` has the configs at which the filter fails."""
    for name, error in sorted(failed.items()):
        yield _differs(name, str(error), "correct the plug-in: no topic follows the source in this config")


def remedy_of_refused(target: Alias, name: str) -> str:
    return f"let {target} accept it, or add {name} to config.properties.exclude"


def not_synced(topic: str, error: KafkaError) -> Trouble:
    """A topic's configs can't be read or altered."""
    off = "or switch it off: sync.topic.configs.enabled"
    return Trouble(Cause.of_error(TroubleWord.NOT_SYNCED, Subject.CONFIG, topic, error, off), topic)


def _differs(name: str, reason: str, remedy: str) -> Trouble:
    return Trouble(Cause(TroubleWord.DIFFERS, Subject.CONFIG, reason, remedy), name)


def _by_config(configs: Mapping[str, Sequence[str] | Mapping[str, object]]) -> Mapping[str, list[str]]:
    """Return the topics of each config; both sorted."""
    topics: dict[str, list[str]] = {}
    for topic in sorted(configs):
        for name in configs[topic]:
            topics.setdefault(name, []).append(topic)
    return {name: topics[name] for name in sorted(topics)}
