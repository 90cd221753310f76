"""Makes the command of a Spark executor from the variables of its pod, as Spark's own image does. Pure."""

from collections.abc import Mapping
from typing import Final

from sparkmirror.domain.errors import ConfigError

_CLASS: Final = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_OPTION: Final = "SPARK_JAVA_OPT_"
_ARGUMENTS: Final = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def executor_command(environ: Mapping[str, str]) -> list[str]:
    """Raises ConfigError naming a variable that Spark did not set."""

    def needed(name: str) -> str:
        if not environ.get(name):
            raise ConfigError(name, None, "must be set: Spark sets it in the pods of its executors")
        return environ[name]

    memory = needed("SPARK_EXECUTOR_MEMORY")
    arguments = [word for option, name in _ARGUMENTS.items() for word in (option, needed(name))]
    return [
        f"{needed('JAVA_HOME')}/bin/java",
        *_java_options(environ),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        "-cp",
        ":".join(_class_path(environ, needed("SPARK_HOME"))),
        _CLASS,
        *arguments,
    ]


def _java_options(environ: Mapping[str, str]) -> list[str]:
    """Spark numbers them from 0."""
    numbers = [name.removeprefix(_OPTION) for name in environ if name.startswith(_OPTION)]
    return [environ[_OPTION + number] for number in sorted(filter(str.isdecimal, numbers), key=int)]


def _class_path(environ: Mapping[str, str], home: str) -> list[str]:
    """The same order as Spark's: settings, Hadoop's, the user's first, jars, the user's others."""
    named = (
        environ.get("SPARK_CONF_DIR", f"{home}/conf"),
        environ.get("HADOOP_CONF_DIR"),
        environ.get("SPARK_CLASSPATH"),
        f"{home}/jars/*",
        environ.get("SPARK_EXTRA_CLASSPATH"),
        environ.get("SPARK_DIST_CLASSPATH"),
    )
    return [entry for entry in named if entry]
