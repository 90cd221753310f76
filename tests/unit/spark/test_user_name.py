"""The name under which Spark runs."""

import os

from sparkmirror.spark.driver_jvm import name_user

NAMELESS = 4_000_000_001


def test_a_user_without_a_name_is_named_by_its_number() -> None:
    environ: dict[str, str] = {}
    name_user(environ, NAMELESS)
    assert environ == {"SPARK_USER": str(NAMELESS)}


def test_a_given_name_stays() -> None:
    environ = {"SPARK_USER": "mirror"}
    name_user(environ, NAMELESS)
    assert environ == {"SPARK_USER": "mirror"}


def test_a_user_with_a_name_needs_none() -> None:
    environ: dict[str, str] = {}
    name_user(environ, os.getuid())
    assert environ == {}
