"""Spark settings that keep private what tasks bring to executors."""

import pytest

from sparkmirror.spark.session import unprotected


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({}, "spark.authenticate"),
        ({"spark.network.crypto.enabled": "true"}, "spark.authenticate"),
        ({"spark.authenticate": "true"}, "spark.network.crypto.enabled"),
        (
            {"spark.authenticate": "true", "spark.network.crypto.enabled": "false"},
            "spark.network.crypto.enabled",
        ),
        ({"spark.authenticate": "True", "spark.network.crypto.enabled": " true "}, None),
        ({"spark.authenticate": "true", "spark.ssl.rpc.enabled": "true"}, None),
    ],
)
def test_what_is_missing(settings: dict[str, str], missing: str | None) -> None:
    assert unprotected(settings.get) == missing
