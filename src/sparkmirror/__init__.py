"""Kafka MirrorMaker 2 on Spark: copies record batches between Kafka clusters."""

from importlib.metadata import version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sparkmirror.client.mirror_client import MirrorClient

__all__ = ["MirrorClient", "__version__"]

__version__ = version("sparkmirror")


def __getattr__(name: str) -> Any:
    """Loads the client only for those who ask for it: every Spark task imports this package."""
    if name == "MirrorClient":
        from sparkmirror.client.mirror_client import MirrorClient  # noqa: PLC0415 - see above

        return MirrorClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
