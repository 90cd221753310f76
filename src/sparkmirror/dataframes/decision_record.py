"""The decision that the transactions of a batch's tasks are committed, as its record has it. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sparkmirror.batches.producer import NOT_IDEMPOTENT, ProducerId
from sparkmirror.domain.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Prepared:
    """The rows that a task has written in a transaction that is still open."""

    task: int
    rows: int
    digest: str
    transactional_id: str = ""
    """Empty for a task without rows, which has no transaction."""
    producer: ProducerId = NOT_IDEMPOTENT
    is_version_2: bool = False
    partitions: Sequence[TopicPartition] = ()
    last_offset: int = -1
    """The offset of the last batch, in the last of the partitions; -1 if it is unknown."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`batch` is the micro-batch's number, or a name of a batch query's write that no other has."""

    batch: int
    tasks: Sequence[Prepared]

    def encode(self) -> bytes:
        return json.dumps({"batch": self.batch, "tasks": [asdict(task) for task in self.tasks]}).encode()

    @classmethod
    def decode(cls, content: bytes) -> "Decision":
        parsed = json.loads(content)
        return cls(parsed["batch"], [_prepared(task) for task in parsed["tasks"]])

    @property
    def by_task(self) -> Mapping[int, Prepared]:
        return {task.task: task for task in self.tasks}


def _prepared(content: Mapping[str, Any]) -> Prepared:
    return Prepared(
        **{
            **content,
            "producer": ProducerId(*content["producer"]),
            "partitions": [TopicPartition(*each) for each in content["partitions"]],
        }
    )
