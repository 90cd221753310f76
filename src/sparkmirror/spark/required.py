"""Says in one line what a command that starts Spark lacks: PySpark or Java."""

import os
from importlib.util import find_spec
from typing import Final

from sparkmirror.domain.errors import NotInstalledError
from sparkmirror.domain.extras import how_to_install
from sparkmirror.java.find_java import find_java

_MODULES: Final = ("pyspark", "pyarrow", "pandas")
"""The modules that the extra `spark` brings, or a platform that has its own Spark."""


def require_spark() -> None:
    """Raises NotInstalledError. Spark takes JAVA_HOME before PATH, whatever its version."""
    missing = [name for name in _MODULES if find_spec(name) is None]
    if missing:
        raise NotInstalledError(
            f"this needs Spark, and there is no {', '.join(missing)}: {how_to_install('spark')}"
        )
    java, home = find_java(), os.environ.get("JAVA_HOME")
    if home and not java.executable.startswith(home):
        del os.environ["JAVA_HOME"]
