"""Spark's Python daemon, with what a copy task needs already imported.

Its forks start sooner and share memory. PySpark's own daemon imports nothing, because numpy and pyarrow may
start threads, which a fork would lose. Here numpy's are switched off, and the background thread of pyarrow's
allocator starts itself again in a fork.
"""

import gc
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from pyspark import daemon, worker  # noqa: F401 - after the environment; imported for the forks

import sparkmirror.engine.copy_task  # noqa: F401 - likewise

if __name__ == "__main__":
    gc.collect()
    gc.freeze()
    daemon.manager()
