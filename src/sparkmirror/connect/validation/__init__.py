"""Lists Connect's plugins, describes their options and validates connectors' configs.

The responses are those of Kafka's own Connect worker, field by field, apart from two things: what sparkmirror
can't do is refused here, before anything is started, and what it has beyond is described too.
"""

from sparkmirror.connect.validation.connector import validate, validate_given
from sparkmirror.connect.validation.descriptions import (
    KAFKA_VERSION,
    connector_class,
    plugin_config_keys,
    plugins,
)
from sparkmirror.connect.validation.infos import Infos, invalid_config_message, with_errors

__all__ = [
    "KAFKA_VERSION",
    "Infos",
    "connector_class",
    "invalid_config_message",
    "plugin_config_keys",
    "plugins",
    "validate",
    "validate_given",
    "with_errors",
]
