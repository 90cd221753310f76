import pyarrow as pa
import pytest

from sparkmirror.copy.task.outcomes import SCHEMA, EndReason, Outcome

ARROW = {"int": pa.int32(), "string": pa.string()}


@pytest.mark.parametrize("reason", EndReason)
def test_an_outcome_is_one_row(reason: EndReason) -> None:
    batch = Outcome(3, reason).to_batch()
    assert batch.to_pylist() == [{"task": 3, "reason": reason.value}]


def test_a_pulse_has_no_row() -> None:
    pulse = Outcome.empty_batch()
    pulse.validate(full=True)
    assert pulse.num_rows == 0


def test_outcome_and_pulse_have_the_schema_of_the_spark_job() -> None:
    columns = [column.split() for column in SCHEMA.split(", ")]
    schema = pa.schema([(name, ARROW[kind]) for name, kind in columns])
    assert Outcome.empty_batch().schema == schema
    assert Outcome(0, EndReason.STOPPED).to_batch().schema == schema
