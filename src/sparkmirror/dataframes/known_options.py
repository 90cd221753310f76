"""Names of data frames' options: written in any case, known or refused."""

from collections.abc import Mapping
from typing import Final

from sparkmirror.config.client_options import ADMIN, CONSUMER
from sparkmirror.config.definitions import Definition, nearest
from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import ConfigError

PREFIX: Final = "kafka."
"""In front of the options of Kafka's clients."""


def canonical(options: Mapping[str, str], known: Definition) -> Properties:
    """The options under their own names; Spark passes them in lower case."""
    names = {name.lower(): name for name in known.names}
    return Properties({names.get(key.lower(), key.lower()): options[key] for key in options})


def refuse_unknown(properties: Properties, known: Definition, where: str) -> None:
    """Raises ConfigError for the first option that is neither known nor one of Kafka's clients."""
    clients = {PREFIX + name for name in CONSUMER.names | ADMIN.names}
    for key in properties:
        if key in known.names or key in clients:
            continue
        similar = nearest(key, known.names | clients)
        hint = f"; {similar} exists" if similar else ""
        raise properties.refusal(key, f"the {where} has no such option{hint}")


def refuse(properties: Properties, name: str, reason: str) -> None:
    """Refuse one of Kafka's options, if it is given."""
    if PREFIX + name in properties:
        raise ConfigError(PREFIX + name, None, reason)
