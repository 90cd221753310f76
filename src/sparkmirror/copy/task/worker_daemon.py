"""Spark's Python daemon, with what a copy task needs already imported.

Forks start sooner and share memory. PySpark's own daemon imports nothing, because numpy and pyarrow may
start threads, which a fork would lose. Here numpy's are switched off, and the background thread of pyarrow's
allocator starts itself again in a fork.
"""

import gc
import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Spark puts a zip with PySpark's source first, which every daemon would compile again. Where that lies inside
# an installed PySpark, it holds the same, and there it is compiled already.
_installed = PathFinder.find_spec("pyspark", [entry for entry in sys.path if not entry.endswith(".zip")])
if _installed is not None and _installed.origin is not None:
    _packed = Path(_installed.origin).parent / "python" / "lib"
    sys.path = [entry for entry in sys.path if Path(entry).parent != _packed]

from pyspark import daemon, worker  # noqa: E402, F401 - after what is said above; imported for the forks

import sparkmirror.copy.task.copy_task  # noqa: E402, F401 - likewise

if __name__ == "__main__":
    # A worker begins with `importlib.invalidate_caches`: until Python 3.12, that reads the index of such a
    # zip again for each package that was imported from it, a tenth of a second of CPU per task.
    sys.path_importer_cache.clear()
    gc.collect()
    gc.freeze()
    daemon.manager()
