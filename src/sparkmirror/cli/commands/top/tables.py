"""Makes tables of what `GET /mirror` answers: topics, partitions, groups or events of a flow."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from sparkmirror.domain.printable import printable
from sparkmirror.ui.numbers import UNKNOWN, count, duration, rate, size
from sparkmirror.view.words import Word, severity

Json = Mapping[str, Any]
Sortable = tuple[int, float | str]
ROWS_MAX: Final = 200


class Cell(NamedTuple):
    """`order` is by what it is sorted; what is unknown comes first, since it may be anything."""

    text: str
    order: Sortable


class Column(NamedTuple):
    """`name` is its key of the keyboard, too: columns of a kind have different ones."""

    title: str
    cell: Callable[[Json], Cell]
    is_number: bool = False


class Kind(NamedTuple):
    """Describes a list; `key` is its key in the answer, and `parameters` ask for it."""

    title: str
    key: str
    parameters: Mapping[str, str]
    columns: Sequence[Column]


class Row(NamedTuple):
    """`name` is the same in each look."""

    name: str
    cells: Sequence[Cell]


class Table(NamedTuple):
    rows: Sequence[Row]
    total: int | None


def table_of(kind: Kind, flow: Json) -> Table:
    """Make a table in the order of the answer: the worst first, or the newest."""
    page = flow[kind.key]
    rows = [Row(_name(it), [column.cell(it) for column in kind.columns]) for it in page["items"]]
    return Table(rows, page["total"])


def sorted_by(table: Table, column: int | None, *, reverse: bool) -> Sequence[Row]:
    """Sort by a column; None keeps the order."""
    if column is None:
        return list(reversed(table.rows)) if reverse else table.rows
    return sorted(table.rows, key=lambda row: row.cells[column].order, reverse=reverse)


def _name(it: Json) -> str:
    return repr([it.get(key) for key in ("name", "topic", "partition", "time", "about", "text")])


def _number(key: str, shown: Callable[[float | None], str]) -> Callable[[Json], Cell]:
    def cell(it: Json) -> Cell:
        number = it[key]
        return Cell(shown(number), (0, 0.0) if number is None else (1, float(number)))

    return cell


def _text(key: str) -> Callable[[Json], Cell]:
    def cell(it: Json) -> Cell:
        text = printable(str(it[key]))
        return Cell(text, (1, text))

    return cell


def _state(it: Json) -> Cell:
    word = Word(it["state"]["word"])
    return Cell(word.value, (1, float(severity(word))))


def _error(it: Json) -> Cell:
    text = printable(it["state"]["error"] or "")
    return Cell(text, (1, text))


def _move(it: Json) -> Cell:
    return Cell("may move" if it["may_move"] else "not yet", (1, float(it["may_move"])))


def _members(it: Json) -> Cell:
    active = it["is_active_on_target"]
    text = UNKNOWN if active is None else "yes" if active else "no"
    return Cell(text, (0, 0.0) if active is None else (1, float(active)))


def _time(it: Json) -> Cell:
    text = datetime.fromtimestamp(it["time"], UTC).strftime("%Y-%m-%d %H:%M:%S")
    return Cell(text, (1, float(it["time"])))


_LAGS: Final = (
    Column("state", _state),
    Column("lag", _number("lag_records", count), is_number=True),
    Column("behind by", _number("lag_seconds", duration), is_number=True),
    Column("records/s", _number("records_per_second", rate), is_number=True),
    Column("bytes/s", _number("bytes_per_second", size), is_number=True),
)
TOPICS: Final = Kind(
    "topics",
    "topics",
    {},
    (
        *_LAGS,
        Column("partitions", _number("partition_count", count), is_number=True),
        Column("topic", _text("name")),
    ),
)
PARTITIONS: Final = Kind(
    "partitions",
    "partitions",
    {"partitions": "true"},
    (
        *_LAGS,
        Column("position", _number("position", count), is_number=True),
        Column("end", _number("source_end", count), is_number=True),
        Column("partition", _number("partition", count), is_number=True),
        Column("topic", _text("topic")),
        Column("error", _error),
    ),
)
GROUPS: Final = Kind(
    "groups",
    "groups",
    {"groups": "true"},
    (
        Column("may move?", _move),
        Column("read again", _number("read_again_records", count), is_number=True),
        Column("partitions", _number("partition_count", count), is_number=True),
        Column("on target", _members),
        Column("group", _text("name")),
    ),
)
EVENTS: Final = Kind(
    "events",
    "events",
    {"events": "true"},
    (
        Column("time (UTC)", _time),
        Column("what", _text("kind")),
        Column("about", _text("about")),
        Column("text", _text("text")),
    ),
)
KINDS: Final = (TOPICS, PARTITIONS, GROUPS, EVENTS)
