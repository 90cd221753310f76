"""Records are copied between each pair of security protocols and mechanisms but GSSAPI, and back.

No part of `make test`: `python -m pytest tests/contract/check_security_pairs.py` takes two minutes.
"""

import pytest

from tests.contract.copying import Bench
from tests.contract.security_ways import NAMES, copy_between
from tests.support.secured_broker import SecuredBroker


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("source", NAMES)
def test_records_are_copied(
    source: str,
    target: str,
    secured: SecuredBroker,
    secured_bench: Bench,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    copy_between(source, target, secured, secured_bench, monkeypatch)
