"""Checks the topics whose records are numbered: only what unclean elections removed may differ.

An incident of the mirror names what is concerned, and where it names something, it must be so.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from sparkmirror.clusters import LocalCluster
from sparkmirror.domain.ids import Alias, TopicPartition
from sparkmirror.domain.state_topics import StateTopic
from tests.faults.numbered import COMPACTED, NUMBERED, NUMBERED_PARTITIONS, OLD, key_of
from tests.support.topic_reader import TopicReader

_SOURCE_LOST: Final = re.compile(r"offsets (\d+) to (\d+) were copied, and the source has lost them since")
_TARGET_LOST: Final = re.compile(r"ends at (\d+), but was acknowledged up to (\d+)")
_MARKERS_MAX: Final = 10
"""So many markers of attempts may stand where the first lost records were."""


class Election(NamedTuple):
    """An unclean one of a source partition, or of its copy on the target.

    `lost` are the numbers that it removed, by their offsets there.
    """

    side: str
    partition: TopicPartition
    lost: Mapping[int, int]


class Notice(NamedTuple):
    """The text of an incident."""

    partition: TopicPartition
    text: str


class Told(NamedTuple):
    """The numbers that incidents name.

    `extra` are those that were copied before the source lost them, `missing` those that the target
    acknowledged and lost.
    """

    extra: AbstractSet[int]
    missing: AbstractSet[int]


NOTHING: Final = Told(frozenset(), frozenset())


class Judged(NamedTuple):
    """The errors found, and the number of records that are there twice where that is allowed."""

    problems: Sequence[str]
    repeated: int


def judge_numbered(
    source: LocalCluster,
    target: LocalCluster,
    alias: str,
    elections: Sequence[Election],
    *,
    were_delayed: bool,
) -> Judged:
    """After the mirror has caught up and ended.

    Where brokers forget the producer, no fence holds: what arrived late may be there twice.
    """
    told, problems = told_by(_notices(target, alias), elections)
    repeated = 0
    for topic in NUMBERED:
        with (
            TopicReader(source.bootstrap_servers, topic) as at_source,
            TopicReader(target.bootstrap_servers, f"{alias}.{topic}") as at_target,
        ):
            for number in range(NUMBERED_PARTITIONS):
                originals, copies = (_numbers(reader, number) for reader in (at_source, at_target))
                may_repeat = topic == OLD and were_delayed
                repeated += _surplus(copies) - _surplus(originals) if may_repeat else 0
                found = (
                    compacted_problems(originals, copies)
                    if topic == COMPACTED
                    else numbered_problems(
                        originals, copies, told[TopicPartition(topic, number)], may_repeat=may_repeat
                    )
                )
                problems += [f"{topic}-{number}: {text}" for text in found]
    return Judged(problems, repeated)


def _numbers(reader: TopicReader, partition: int) -> list[int]:
    return [int(message.value() or b"-1") for message in reader.read(partition)]


def numbered_problems(
    source: Sequence[int], target: Sequence[int], told: Told, *, may_repeat: bool = False
) -> list[str]:
    """Every record is there once and in order, but for those that incidents name, which must be so.

    The source's producer may have repeated some there already. Where records may repeat, what comes without
    the batch before it comes again behind that: then the order is that of the last ones.
    """
    there = set(source)
    problems = [] if may_repeat else _repeated(source, target)
    problems += _named("missing", there - set(target) - told.missing)
    problems += _named("extra", set(target) - there - told.extra)
    problems += _named("not there, though incidents say so", told.extra - told.missing - set(target))
    problems += _named("there, though an incident calls it lost", told.missing & set(target))
    expected = [number for number in dict.fromkeys(source) if number not in told.missing]
    copies = [number for number in target if number in there]
    orders = [list(dict.fromkeys(copies)), list(dict.fromkeys(reversed(copies)))[::-1]]
    if not problems and expected not in (orders if may_repeat else orders[:1]):
        problems.append("the order differs")
    if not told.missing and _surplus(target) < _surplus(source):
        problems.append("the source has more records twice")
    return problems


def compacted_problems(source: Sequence[int], target: Sequence[int]) -> list[str]:
    """The cleaner may have removed any record but the newest of a key."""
    newest = {key_of(number): number for number in source}
    problems = _repeated(source, target)
    problems += _named("missing", set(newest.values()) - set(target))
    both = set(source) & set(target)
    if [number for number in target if number in both] != [number for number in source if number in both]:
        problems.append("the order differs")
    return problems


def _surplus(numbers: Sequence[int]) -> int:
    """Count the records that are there more than once."""
    return len(numbers) - len(set(numbers))


def _repeated(source: Sequence[int], target: Sequence[int]) -> list[str]:
    """More often than at the source."""
    allowed = Counter(source)
    counts = Counter(target).items()
    return _named("there twice", {number for number, count in counts if count > max(1, allowed[number])})


def _named(what: str, numbers: AbstractSet[int]) -> list[str]:
    if not numbers:
        return []
    return [f"{len(numbers)} {what}: {', '.join(map(str, sorted(numbers)[:10]))}"]


def told_by(
    notices: Iterable[Notice], elections: Sequence[Election]
) -> tuple[Mapping[TopicPartition, Told], list[str]]:
    """Return losses by source partition, and the incidents that no election explains."""
    found: dict[TopicPartition, Told] = defaultdict(lambda: NOTHING)
    problems = []
    for partition, text in sorted(set(notices)):
        if match := _SOURCE_LOST.search(text):
            side, first, end = "source", int(match[1]), int(match[2]) + 1
        elif match := _TARGET_LOST.search(text):
            side, first, end = "target", int(match[1]), int(match[2])
        else:
            continue
        election = _cause(elections, side, partition, first, end)
        if election is None:
            problems.append(f"{partition}: no unclean election explains: {text}")
            continue
        numbers = {number for offset, number in election.lost.items() if offset < end}
        extra, missing = found[partition]
        if side == "source":
            found[partition] = Told(extra | numbers, missing)
        else:
            found[partition] = Told(extra, missing | numbers)
    return found, problems


def _cause(
    elections: Sequence[Election], side: str, partition: TopicPartition, first: int, end: int
) -> Election | None:
    """The newest that can be it."""
    for election in reversed(elections):
        if (election.side, election.partition) != (side, partition) or not election.lost:
            continue
        if 0 <= first - min(election.lost) <= _MARKERS_MAX and end <= max(election.lost) + 1 + _MARKERS_MAX:
            return election
    return None


def _notices(target: LocalCluster, alias: str) -> Iterator[Notice]:
    """All that progress records have ever told of these topics."""
    with TopicReader(target.bootstrap_servers, StateTopic.PROGRESS.of(Alias(alias))) as reader:
        for message in reader.read(0):
            match json.loads(message.key() or b"[]"):
                case ["progress", _, str(topic), int(number)] if topic in NUMBERED:
                    text = json.loads(message.value() or b"{}").get("notice")
                    if text is not None:
                        yield Notice(TopicPartition(topic, number), text)
