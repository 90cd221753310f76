"""Changes the transaction version that a cluster has agreed on."""

from typing import Final

from kafka.protocol.admin import UpdateFeaturesRequest, UpdateFeaturesResponse

from sparkmirror.kafka.transactions.transaction_runs import Transactions
from sparkmirror.kafka.wire.error_codes import NONE
from tests.support.broker_requests import Asker
from tests.support.waiting import await_value

_SAFE_DOWNGRADE: Final = 2
_UPGRADE: Final = 1
_TIMEOUT_S: Final = 60.0


def finalize(asker: Asker, version: int) -> None:
    """Set the cluster's `transaction.version`; returns when its broker applies it."""
    kind = _SAFE_DOWNGRADE if version == 1 else _UPGRADE
    update = UpdateFeaturesRequest.FeatureUpdateKey(
        feature="transaction.version", max_version_level=version, upgrade_type=kind
    )
    request = UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[update], validate_only=False)
    answer = asker.ask(request, UpdateFeaturesResponse)
    assert answer.error_code == NONE, answer

    def is_known() -> bool:
        probe = Transactions(asker.settings, f"contract.probe-{version}", _TIMEOUT_S)
        probe.init()
        probe.close()
        return probe.is_version_2 == (version == 2)

    await_value(is_known, _TIMEOUT_S, lambda: f"transaction.version is not {version}")
