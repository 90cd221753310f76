"""Names the machine, or the container, in which this process runs.

Each container numbers its processes from 1 and may have its host's name: host and process alone do not tell
two of them apart.
"""

import re
import socket
from functools import lru_cache
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
_FILES: Final = ("/etc/hostname", "/etc/hosts", "/etc/resolv.conf")
"""Files that every container runtime mounts from a folder that has the container's id in its name."""
_ID: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_SHOWN: Final = 12
"""The number of characters of an id that `docker ps` shows."""


@lru_cache(maxsize=1)
def machine_name() -> str:
    """Return the host's name, with the container's id unless that is the name."""
    try:
        mounts = _MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:  # another system than Linux
        mounts = ""
    return named(socket.gethostname(), container_id(mounts))


def named(host: str, container: str | None) -> str:
    """Join a host's name and a container's id to one name."""
    if container is None or host.startswith(container):
        return host
    return f"{host} (container {container})"


def container_id(mounts: str) -> str | None:
    """The beginning of the container's id, from the text of `mountinfo`; None outside of a container."""
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) > 4 and fields[4] in _FILES:
            found = _ID.search(fields[3])
            if found is not None:
                return found[0][:_SHOWN]
    return None
