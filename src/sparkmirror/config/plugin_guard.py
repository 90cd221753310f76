"""Guards calls of users' plug-ins: whatever fails in one becomes a PluginError that names it.

Arguments and results are checked against the Protocol of the plug-in point.
"""

import inspect
from collections.abc import Callable
from types import UnionType
from typing import Any, Final, get_origin, get_type_hints

from sparkmirror.domain.errors import ConfigError, KafkaError, PluginError

FAILURES: Final = (Exception, SystemExit)
"""The exceptions of foreign code that are caught; a plug-in that calls `sys.exit` fails like any other."""

_SHOWN_MAX: Final = 100


def methods_of(protocol: type) -> tuple[str, ...]:
    """The names of the methods that a Protocol asks for."""
    return tuple(name for name, member in vars(protocol).items() if _is_method(name, member))


def lacking(kind: type, protocol: type) -> list[str]:
    """The methods that a class lacks; those that it only inherits from the Protocol don't count."""
    return [
        name
        for name in methods_of(protocol)
        if not callable(getattr(kind, name, None)) or getattr(kind, name) is getattr(protocol, name)
    ]


class Guarded:
    """Calls the Protocol's methods on a plug-in; each raises PluginError.

    A ConfigError or KafkaError of the plug-in is passed on. Raises PluginError itself
    when a method can't be called with the Protocol's arguments.
    """

    def __init__(self, plugin: object, name: str, protocol: type) -> None:
        """`name` is what errors call it."""
        self._name = name
        for method in methods_of(protocol):
            declared = getattr(protocol, method)
            setattr(self, method, _guarded(getattr(plugin, method), f"{name}.{method}", declared))

    def __repr__(self) -> str:
        return self._name


def described(error: BaseException) -> str:
    """An exception in a line: its class and message."""
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _is_method(name: str, member: object) -> bool:
    return inspect.isfunction(member) and not name.startswith("_")


def _guarded(method: Callable[..., Any], name: str, declared: Callable[..., Any]) -> Callable[..., Any]:
    _check_arguments(method, name, declared)
    kind = _kind(get_type_hints(declared)["return"])

    def call(*arguments: object) -> Any:
        try:
            result = method(*arguments)
        except (ConfigError, KafkaError):
            raise
        except FAILURES as error:
            raise PluginError(f"{_asked(name, arguments)} raised {described(error)}") from error
        if not isinstance(result, kind):
            raise PluginError(f"{_asked(name, arguments)} returned {_shown(result)}, not a {_name(kind)}")
        return result

    return call


def _check_arguments(method: Callable[..., Any], name: str, declared: Callable[..., Any]) -> None:
    parameters = list(inspect.signature(declared).parameters)[1:]
    try:
        inspect.signature(method).bind(*parameters)
    except TypeError as error:
        raise PluginError(f"{name} can't be called with ({', '.join(parameters)}): {error}") from error
    except ValueError:
        return  # written in C, without a signature


def _kind(annotation: Any) -> Any:
    """The class for `isinstance` that an annotation stands for."""
    origin = get_origin(annotation)
    return annotation if origin in (None, UnionType) else origin


def _name(kind: Any) -> str:
    return str(kind) if isinstance(kind, UnionType) else str(kind.__name__)


def _asked(name: str, arguments: tuple[object, ...]) -> str:
    return f"{name}({', '.join(map(_shown, arguments))})"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}…"
