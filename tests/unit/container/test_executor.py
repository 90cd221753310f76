"""The command of a Spark executor, by the variables that Spark gives its pod."""

import pytest

from sparkmirror.container.executor import executor_command
from sparkmirror.domain.errors import ConfigError

POD = {
    "JAVA_HOME": "/opt/java",
    "SPARK_HOME": "/opt/spark",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "4",
    "SPARK_EXECUTOR_MEMORY": "512m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.1.2.3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "mirror-exec-3",
    "SPARK_CONF_DIR": "/opt/spark/conf",
    "SPARK_JAVA_OPT_10": "-Dlast=1",
    "SPARK_JAVA_OPT_2": "-XX:+UseSerialGC",
    "SPARK_JAVA_OPT_0": "-Dspark.driver.port=7078",
}


def test_the_command_is_that_of_sparks_own_image() -> None:
    assert executor_command(POD) == [
        "/opt/java/bin/java",
        "-Dspark.driver.port=7078",
        "-XX:+UseSerialGC",
        "-Dlast=1",
        "-Xms512m",
        "-Xmx512m",
        "-cp",
        "/opt/spark/conf:/opt/spark/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        "--driver-url",
        "spark://CoarseGrainedScheduler@driver:7078",
        "--executor-id",
        "3",
        "--cores",
        "4",
        "--app-id",
        "spark-1",
        "--hostname",
        "10.1.2.3",
        "--resourceProfileId",
        "0",
        "--podName",
        "mirror-exec-3",
    ]


def test_the_users_jars_and_settings_are_on_the_class_path() -> None:
    more = {"SPARK_CLASSPATH": "/first/*", "SPARK_EXTRA_CLASSPATH": "/more/*", "HADOOP_CONF_DIR": "/hadoop"}
    command = executor_command({**POD, **more})
    expected = "/opt/spark/conf:/hadoop:/first/*:/opt/spark/jars/*:/more/*"
    assert command[command.index("-cp") + 1] == expected


@pytest.mark.parametrize("name", ["SPARK_DRIVER_URL", "SPARK_EXECUTOR_MEMORY", "JAVA_HOME"])
def test_a_variable_that_spark_did_not_set_is_named(name: str) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: must be set"):
        executor_command({**POD, name: ""})
