"""Where downloads and named clusters live: the user's cache folder, as the platform has it."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """SPARKMIRROR_CACHE, else `sparkmirror` in XDG_CACHE_HOME, ~/Library/Caches (macOS) or ~/.cache."""
    if override := environ.get("SPARKMIRROR_CACHE"):
        return Path(override).expanduser().absolute()
    home = Path(environ["HOME"]) if environ.get("HOME") else Path.home()
    if platform == "darwin":
        return home / "Library" / "Caches" / "sparkmirror"
    xdg = Path(environ.get("XDG_CACHE_HOME", ""))
    # The XDG specification has relative paths ignored.
    return (xdg if xdg.is_absolute() else home / ".cache") / "sparkmirror"
