"""Kafka MirrorMaker 2 on Spark: copies record batches between Kafka clusters."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkmirror.client.mirror_client import MirrorClient
    from sparkmirror.guest import Mirror, MirrorException, MirrorListener

    __version__: str

__all__ = ["Mirror", "MirrorClient", "MirrorException", "MirrorListener", "__version__"]

_MODULES = {
    "Mirror": "sparkmirror.guest",
    "MirrorClient": "sparkmirror.client.mirror_client",
    "MirrorException": "sparkmirror.guest",
    "MirrorListener": "sparkmirror.guest",
}


def __getattr__(name: str) -> Any:
    """Loads these only for those who ask for them: every Spark task imports this package."""
    if name == "__version__":
        return import_module("importlib.metadata").version("sparkmirror")
    if name in _MODULES:
        return getattr(import_module(_MODULES[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
