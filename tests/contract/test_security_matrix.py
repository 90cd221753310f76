"""Records are copied from and to a broker by every security protocol and mechanism but GSSAPI.

How one side is secured does not depend on the other: each is tried on both sides. `check_security_pairs.py`
tries each pair.
"""

import pytest

from tests.contract.copying import Bench
from tests.contract.security_ways import NAMES, copy_between
from tests.support.secured_broker import SecuredBroker


@pytest.mark.parametrize(("source", "target"), list(zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True)))
def test_records_are_copied(
    source: str,
    target: str,
    secured: SecuredBroker,
    secured_bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy_between(source, target, secured, secured_bench, monkeypatch)
