"""Shows the plugins of a worker and validates settings: the commands `plugins` and `validate`."""

import argparse
from typing import Any

from sparkmirror.cli.commands.connectors.input_files import GIVEN_HELP, read_given
from sparkmirror.cli.commands.connectors.queries import add_secrets_argument
from sparkmirror.cli.commands.connectors.rest_commands import DONE, REFUSED, RestCommand, add_rest_command
from sparkmirror.cli.commands.connectors.views import View, add_output_argument, show
from sparkmirror.client.connect_objects import ConfigInfos
from sparkmirror.client.connect_rest import ConnectRest
from sparkmirror.config.masking import masked
from sparkmirror.domain.errors import ConfigError

_PLUGINS_HELP = """\
The connectors that a worker can run, or the settings that one of them has.

examples:
  sparkmirror connectors plugins
  sparkmirror connectors plugins MirrorSourceConnector
"""
_DEFAULT_MAX = 40
_VALIDATE_HELP = """\
Let a worker validate settings without applying them. The exit code is 1 when it finds an error.

examples:
  sparkmirror connectors validate mm2-msc.json
  sparkmirror connectors validate mm2-msc.json tasks.max=0 -o json
"""


def add_commands(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = add_rest_command(
        verbs, RestCommand("plugins", "plugins that a worker can run", _PLUGINS_HELP, _plugins)
    )
    parser.add_argument("plugin", nargs="?", metavar="PLUGIN", help="print the settings that it has")
    parser.add_argument("--all", action="store_true", help="converters, transformations and so on too")
    add_output_argument(parser)
    parser = add_rest_command(
        verbs, RestCommand("validate", "validate settings on a worker", _VALIDATE_HELP, _validate)
    )
    parser.add_argument("given", nargs="+", metavar="FILE|KEY=VALUE", help=GIVEN_HELP)
    add_secrets_argument(parser)
    add_output_argument(parser)


def _plugins(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    if arguments.plugin:
        options = connect.plugin_config(arguments.plugin)
        rows = [
            (each["name"], each["type"], _default(each.get("default_value")), each["importance"])
            for each in options
        ]
        view = View(options, ("setting", "type", "default", "importance"), rows)
    else:
        plugins = connect.plugins(connectors_only=not arguments.all)
        found = [(each["class"], each["type"], each.get("version") or "-") for each in plugins]
        view = View(plugins, ("class", "type", "version"), found, 2)
    show(view, arguments.output)
    return DONE


def _validate(connect: ConnectRest, arguments: argparse.Namespace) -> int:
    given = read_given(arguments.given)
    config = given.texts()
    plugin = config.get("connector.class")
    if not plugin:
        raise ConfigError(
            "connector.class", None, "is missing; it names the plugin that validates the settings"
        )
    # A missing name is no error where it comes with the request, as in a PUT.
    config.setdefault("name", given.name or plugin.rpartition(".")[2])
    infos = connect.validate(plugin, config)
    if not arguments.show_secrets:
        _mask(infos)
    rows = [(each["value"]["name"], error) for each in infos["configs"] for error in each["value"]["errors"]]
    errors = infos["error_count"]
    notes = [] if errors else [f"{infos['name']}: no errors"]
    show(View(infos, ("setting", "error"), rows, 2, notes), arguments.output)
    return REFUSED if errors else DONE


def _mask(infos: ConfigInfos) -> None:
    for each in infos["configs"]:
        name, value = each["value"]["name"], each["value"]["value"]
        if value is not None:
            each["value"]["value"] = masked({name: value})[name]


def _default(value: Any) -> str:
    """One list of topics would make every row as long as itself; -o json and yaml have it whole."""
    text = "-" if value is None else str(value)
    return text if len(text) <= _DEFAULT_MAX else f"{text[: _DEFAULT_MAX - 1]}…"
