"""Knows the topics that the flows of this process write, to find those that several of them write."""

import threading
from collections.abc import Mapping, Sequence

from sparkmirror.domain.ids import Alias, ConnectorName
from sparkmirror.domain.troubles import Cause, Subject, Trouble, TroubleWord
from sparkmirror.settings.configured import ConfiguredSource
from sparkmirror.settings.rings import SharedTopic, shared_topic, shared_topics
from sparkmirror.settings.topic_selection import Pairs

_Writer = tuple[Alias, ConnectorName]


class SharedTargets:
    """Knows topics that several flows of a process write. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pairs: dict[str, dict[_Writer, Pairs]] = {}
        """By bootstrap servers of the target: aliases of connectors may mean different clusters."""
        self._shared: dict[str, Mapping[str, SharedTopic]] = {}

    def note(self, connector: ConfiguredSource, pairs: Pairs) -> None:
        """Replace the topics that a connector mirrors; none when it ends."""
        target, writer = _places(connector)
        with self._lock:
            of_target = self._pairs.setdefault(target, {})
            if of_target.get(writer, ()) == pairs:
                return
            of_target[writer] = pairs
            found = shared_topics((source, of) for (source, _), of in of_target.items())
            self._shared[target] = {remote: shared_topic(writers) for remote, writers in found.items()}

    def of(self, connector: ConfiguredSource) -> Mapping[tuple[str, str], SharedTopic]:
        """Return those of its topics, each with its name on the target, that other sources' flows write."""
        target, writer = _places(connector)
        with self._lock:
            shared = self._shared.get(target)
            if not shared:
                return {}
            own = self._pairs[target].get(writer, ())
            return {pair: shared[pair[1]] for pair in own if pair[1] in shared}

    def troubles(self, connector: ConfiguredSource) -> Sequence[Trouble]:
        return [
            Trouble(Cause.of(TroubleWord.SHARED, Subject.TOPIC, topic, *found), topic)
            for (topic, _), found in self.of(connector).items()
        ]


def _places(connector: ConfiguredSource) -> tuple[str, _Writer]:
    return connector.target_admin.servers, (connector.settings.flow.source, connector.name)
