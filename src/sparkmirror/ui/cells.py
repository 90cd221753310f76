"""Writes HTML that pages repeat in each row, as filters of the templates: macros take several times as long.

All functions return HTML: texts that strangers chose go through `shown`.

Pure.
"""

from collections.abc import Callable, Mapping
from typing import Final, Protocol

from markupsafe import Markup, escape

from sparkmirror.domain.ids import Flow
from sparkmirror.domain.printable import printable
from sparkmirror.ui.numbers import UNKNOWN, count, duration, latencies, rate, size
from sparkmirror.ui.page_looks import query
from sparkmirror.view.flows import FlowView
from sparkmirror.view.moves import Answer
from sparkmirror.view.values import PartitionView, State, TopicView
from sparkmirror.view.words import Word

_SLUGS: Final[Mapping[Word, str]] = {word: word.value.replace(" ", "-") for word in Word}
_WORDS: Final[Mapping[Word, str]] = {
    word: f'<span class="word w-{slug}">{word.value}</span>' for word, slug in _SLUGS.items()
}
_UNKNOWN: Final = f'<span class="num unknown">{UNKNOWN}</span>'
_NO_TIME: Final = '<span class="soft">\N{EN DASH}</span>'
_HOLDS: Final = {True: "yes", False: "no", None: "unknown"}
_NO_INCIDENTS: Final = '<span class="soft">none</span>'


class Thing(Protocol):
    """A flow, topic or partition."""

    @property
    def state(self) -> State: ...

    @property
    def left_s(self) -> float | None: ...


def num(text: str, unit: str = "") -> str:
    """A number as `ui.numbers` writes it."""
    return _UNKNOWN if text == UNKNOWN else f'<span class="num">{text}{unit}</span>'


def word(state: State) -> str:
    return _WORDS[state.word]


def slug(state: State) -> str:
    """The end of the names of classes that colour the state."""
    return _SLUGS[state.word]


def since(state: State) -> str:
    """Write how long the state has held, nothing where that is not known."""
    return "" if state.for_s is None else f' <span class="soft">for {duration(state.for_s)}</span>'


def why(state: State) -> str:
    """The error, and what to do."""
    error = f'<div class="error"><bdi>{shown(state.error)}</bdi></div>\n' if state.error else ""
    return f'{error}<div class="advice">{escape(state.advice)}</div>\n' if state.advice else error


def left(thing: Thing) -> str:
    return num(duration(thing.left_s)) if thing.state.word is Word.CATCHING_UP else _NO_TIME


def latency(thing: Thing, median_and_high: tuple[float | None, float | None]) -> str:
    return _UNKNOWN if thing.state.word is Word.UNKNOWN else num(latencies(median_and_high))


def flow_name(flow: Flow) -> str:
    return f"<bdi>{shown(flow.source)}</bdi> → <bdi>{shown(flow.target)}</bdi>"


def shown(name: object) -> str:
    """A text that strangers chose, on one line."""
    return escape(printable(str(name)))


def checks(answer: Answer) -> str:
    """The facts that an answer is made of."""
    items = [
        f'<li class="{"yes" if it.holds else "no"}"><b>{it.name}: {_HOLDS[it.holds]}</b> '
        f"<span><bdi>{shown(it.fact)}</bdi></span></li>\n"
        for it in answer.checks
    ]
    return f'<ul class="checks">\n{"".join(items)}</ul>'


def verdict(answer: Answer) -> str:
    may_move = answer.may_move
    text = "may move" if may_move else "not yet"
    return f'<span class="verdict {"yes" if may_move else "no"}">{text}</span>'


def topic_row(topic: TopicView, flow: FlowView) -> str:
    """Write a topic's cells in the table of a flow."""
    link = f'<a href="topic?{escape(query(str(flow.flow), topic.name))}"><bdi>{shown(topic.name)}</bdi></a>'
    has_other_name = topic.target is not None and topic.target != topic.name
    copy = f'<div class="soft">→ <bdi>{shown(topic.target)}</bdi></div>' if has_other_name else ""
    return (
        f'<th scope="row">{link}{copy}</th>\n{_state(topic)}'
        f"{_numbers(('Partitions', count(len(topic.partitions))))}"
        f"{_behind(topic)}"
        f"{_numbers(('Bytes/s', num(size(topic.speed.bytes))), _quiet(flow, topic))}"
    )


def partition_row(partition: PartitionView, flow: FlowView) -> str:
    """Write a partition's cells in the table of a topic."""
    task = f'<span class="soft">task {partition.task}</span>' if partition.task is not None else ""
    kinds = [f"{shown(kind)} {count(number)}" for kind, number in sorted(partition.incidents.items())]
    lost = f", {count(partition.lost)} records lost" if partition.lost else ""
    notice = f'<div class="advice"><bdi>{shown(partition.notice)}</bdi></div>' if partition.notice else ""
    ends = ("Source end", num(count(partition.source_end))), ("Position", num(count(partition.position)))
    return (
        f'<th scope="row">{partition.source.partition} {task}</th>\n{_state(partition)}'
        f"{_numbers(*ends)}"
        f"{_behind(partition)}"
        f"{_numbers(('p50, p99', latency(partition, partition.median_and_high_ms)), _quiet(flow, partition))}"
        f'<td data-label="Incidents">{", ".join(kinds) or _NO_INCIDENTS}{lost}{notice}</td>\n'
    )


def _state(of: TopicView | PartitionView) -> str:
    return f'<td data-label="State">{word(of.state)}{since(of.state)}{why(of.state)}</td>\n'


def _behind(of: TopicView | PartitionView) -> str:
    return _numbers(
        ("Lag", num(count(of.lag.records))),
        ("Behind by", num(duration(of.lag.seconds))),
        ("Time left", left(of)),
        ("Records/s", num(rate(of.speed.records))),
    )


def _quiet(flow: FlowView, of: TopicView | PartitionView) -> tuple[str, str]:
    return "Quiet for", num(duration(flow.age(of.quiet_since)))


def _numbers(*labels_and_cells: tuple[str, str]) -> str:
    return "".join(f'<td data-label="{label}" class="r">{cell}</td>\n' for label, cell in labels_and_cells)


def _filter(write: Callable[..., str]) -> Callable[..., Markup]:
    return lambda *arguments: Markup(write(*arguments))  # noqa: S704 - these functions return HTML


CELLS: Final = {
    write.__name__: _filter(write)
    for write in (
        num,
        word,
        slug,
        since,
        why,
        left,
        latency,
        flow_name,
        shown,
        checks,
        verdict,
        topic_row,
        partition_row,
    )
}
"""The filters, by their names."""
