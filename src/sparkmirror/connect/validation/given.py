"""A connector's config as it was given, placeholders resolved for judging it and never shown resolved."""

from collections.abc import Iterator, Mapping

from sparkmirror.config.properties import HIDDEN, Properties, is_sensitive
from sparkmirror.config.providers import Provider, resolved
from sparkmirror.domain.errors import ConfigError


class Given:
    """`failures` are the keys whose placeholder leads nowhere, each with the reason."""

    __slots__ = ("_written", "failures", "properties")

    def __init__(self, config: Mapping[str, str | None], providers: Mapping[str, Provider]) -> None:
        self._written = dict(config)
        self.failures: dict[str, str] = {}
        self.properties = Properties()
        """What is not null, resolved."""
        for key, text in config.items():
            if text is not None:
                self.properties |= self._resolved(key, text, providers)

    def only(self, key: str, name: str) -> "Given":
        """One entry alone, under another name."""
        found = Given({}, {})
        found._written[name] = self._written[key]
        found.properties = self.properties.only({key}).under(key.removesuffix(name))
        return found

    def _resolved(self, key: str, text: str, providers: Mapping[str, Provider]) -> Properties:
        one = Properties({key: text})
        try:
            return resolved(one, providers)
        except ConfigError as error:
            self.failures[key] = str(error)
            return one

    def __contains__(self, key: str) -> bool:
        return key in self._written

    def __iter__(self) -> Iterator[str]:
        return iter(self._written)

    def nulls(self) -> list[str]:
        return [key for key, text in self._written.items() if text is None]

    def resolved(self, key: str) -> str | None:
        return self.properties.get(key)

    def is_resolved(self, key: str) -> bool:
        """Whether something stands behind a placeholder of this key."""
        return self.properties.get(key) != self._written[key]

    def shown(self, key: str) -> str:
        """A value as it was written, if it may be shown at all."""
        text = self._written[key]
        return HIDDEN if is_sensitive(key) else "null" if text is None else text
