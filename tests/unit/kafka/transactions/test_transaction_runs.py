"""Answers that only a moved coordinator gives; `tests/contract/test_transactions.py` has the rest."""

import pytest

from sparkmirror.kafka.transactions.transaction_runs import Transactions
from sparkmirror.kafka.wire.error_codes import PRODUCER_FENCED
from tests.memory.server import serving
from tests.support.connections import connection


def test_the_response_of_a_coordinator_that_has_moved_away_fences_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """PRODUCER_FENCED is Kafka 4.3's between the loss of the coordinator's partition and of its memory."""
    with serving("moved") as server:
        coordinators = server.cluster.transactions
        carry_out, aborted = coordinators.end, list[int]()

        def end(name: str, producer: tuple[int, int], *, commit: bool, bumps: bool) -> tuple[int, int, int]:
            aborted.append(producer[1])
            if len(aborted) == 1:
                return PRODUCER_FENCED, -1, -1
            return carry_out(name, producer, commit=commit, bumps=bumps)

        monkeypatch.setattr(coordinators, "end", end)
        transactions = Transactions(connection(server), "contract.moved", 60.0)
        first = transactions.init()
        assert transactions.init().id == first.id
        assert aborted == [first.epoch, first.epoch]
        transactions.close()
