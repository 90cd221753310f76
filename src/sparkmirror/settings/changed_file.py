"""Notices changes of a running mirror's mm2.properties, and returns its rate limits."""

import logging
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from sparkmirror.config.properties import Properties
from sparkmirror.domain.errors import SparkmirrorError
from sparkmirror.domain.ids import Flow
from sparkmirror.policies.rate_limits import FLOW_KEY, TOPICS_KEY, RateLimits
from sparkmirror.settings.mirror_maker_file import read_mirror_maker_file, read_mirror_maker_properties

_log = logging.getLogger(__name__)

_LIMITS_KEY: Final = re.compile(f"(?:.+->[^.]+\\.)?(?:{re.escape(FLOW_KEY)}|{re.escape(TOPICS_KEY)})")
_NAMED_MAX: Final = 10


class _Version(NamedTuple):
    """Identifies a version of the file; editors put a new file in its place."""

    modified_ns: int
    size: int
    inode: int


class ChangedFile:
    """Notices changes of a file.

    Create it before the settings are read, so that it notices a change in between.

    Raises ConfigError when the file can't be read.
    """

    def __init__(self, file: Path, into_clusters: Collection[str] | None = None) -> None:
        self._file = file
        self._into_clusters = into_clusters
        self._seen = self._taken = _version(file)
        self._at_start = self._now = read_mirror_maker_properties(file)

    def poll(self) -> Mapping[Flow, RateLimits]:
        """The limits of the file's flows when it has changed, else nothing.

        A new version counts when it's the same at the next poll: before, it may still be being written.
        """
        seen, self._seen = self._seen, _version(self._file)
        if self._seen is None or self._seen != seen or self._seen == self._taken:
            return {}
        self._taken = self._seen
        try:
            properties = read_mirror_maker_properties(self._file)
            flows = read_mirror_maker_file(self._file, self._into_clusters).flows
        except SparkmirrorError as error:
            _log.warning("the file has changed and is invalid, settings stay as they are: %s", error)
            return {}
        self._warn(properties)
        return {flow.flow: flow.source.settings.rate_limits for flow in flows if flow.source is not None}

    def _warn(self, properties: Properties) -> None:
        """Warn once for each change of other keys, not each time that limits change after it."""
        before, self._now = self._now, properties
        waiting = _changed(self._at_start, properties)
        if not waiting or not _changed(before, properties):
            return
        more = f" and {len(waiting) - _NAMED_MAX} more" if len(waiting) > _NAMED_MAX else ""
        _log.warning(
            "%s%s changed in %s and will take effect at the next start; only %s and %s take effect now",
            ", ".join(waiting[:_NAMED_MAX]),
            more,
            self._file,
            FLOW_KEY,
            TOPICS_KEY,
        )


def _version(file: Path) -> _Version | None:
    """Return the file's version, None while there is no file: for a moment, when another takes its place."""
    try:
        found = file.stat()
    except OSError:
        return None
    return _Version(found.st_mtime_ns, found.st_size, found.st_ino)


def _changed(before: Properties, after: Properties) -> list[str]:
    """The keys, other than limits, that have another value, are new or are gone."""
    keys = sorted(before.keys() | after.keys())
    return [key for key in keys if before.get(key) != after.get(key) and not _LIMITS_KEY.fullmatch(key)]
