"""Names of data frames' options: written in any case, known or refused."""

from collections.abc import Mapping
from typing import Final

from sparkmirror.config.client_options import ADMIN
from sparkmirror.config.definitions import Definition, nearest
from sparkmirror.config.properties import Properties

PREFIX: Final = "kafka."
"""The prefix of the options of Kafka's clients."""


def canonical(options: Mapping[str, str], known: Definition) -> Properties:
    """The options under their own names; Spark passes them in lower case."""
    names = {name.lower(): name for name in known.names}
    return Properties({names.get(key.lower(), key.lower()): options[key] for key in options})


def refuse_unknown(properties: Properties, known: Definition, client: Definition, where: str) -> None:
    """Raises ConfigError for the first option that is neither known nor one of Kafka's client."""
    clients = {PREFIX + name for name in client.names | ADMIN.names}
    for key in properties:
        if key in known.names or key in clients:
            continue
        similar = nearest(key, known.names | clients)
        hint = f"; {similar} exists" if similar else ""
        raise properties.refusal(key, f"the {where} has no such option{hint}")
