"""Builds Connect's ConfigInfos: the definition, value and errors of every option of a config."""

import copy
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

from sparkmirror.config.kafka_options import KeyInfo
from sparkmirror.domain.errors import ConfigError, InvalidConfigError

Infos = dict[str, Any]
"""`{"name", "error_count", "groups", "configs": [{"definition", "value"}]}`."""

_ENDPOINT: Final = (
    "You can also find the above list of errors at the endpoint"
    " `/connector-plugins/{connectorType}/config/validate`"
)


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """An option's value in a config as it may be shown, and its errors."""

    name: str
    value: str | None = None
    errors: tuple[str, ...] = ()
    recommended: tuple[str, ...] = ()
    visible: bool = True

    def with_error(self, error: str) -> "ConfigValue":
        return replace(self, errors=(*self.errors, error))

    def info(self, definition: KeyInfo | None) -> dict[str, Any]:
        """ConfigInfo; the definition is None for a name that no table has."""
        value = {
            "name": self.name,
            "value": self.value,
            "recommended_values": list(self.recommended),
            "errors": list(self.errors),
            "visible": self.visible,
        }
        return {"definition": definition, "value": value}


def infos(name: str, groups: Iterable[str], configs: Iterable[dict[str, Any]]) -> Infos:
    listed = list(configs)
    errors = sum(len(config["value"]["errors"]) for config in listed)
    return {"name": name, "error_count": errors, "groups": list(groups), "configs": listed}


def with_errors(config_infos: Infos, error: ConfigError) -> Infos:
    """Add an error that was found later, or each error that it holds."""
    found = copy.deepcopy(config_infos)
    for one in error.errors if isinstance(error, InvalidConfigError) else (error,):
        values = (config["value"] for config in found["configs"])
        value = next((value for value in values if value["name"] == one.key), None)
        if value is None:
            found["configs"].append(ConfigValue(one.key, errors=(str(one),)).info(None))
        elif str(one) not in value["errors"]:
            value["errors"].append(str(one))
    return infos(found["name"], found["groups"], found["configs"])


def invalid_config_message(config_infos: Infos) -> str:
    """The message with which a request to configure a connector is refused, for infos with errors."""
    errors = [error for config in config_infos["configs"] for error in config["value"]["errors"]]
    count = config_infos["error_count"]
    head = f"Connector configuration is invalid and contains the following {count} error(s):"
    return "\n".join((head, *errors, _ENDPOINT))
