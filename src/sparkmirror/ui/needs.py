"""Lists what is not well, each cause once and before what follows from it. Pure."""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

from sparkmirror.domain.ids import Flow
from sparkmirror.domain.quantities import counted, some_of
from sparkmirror.domain.troubles import Subject, Trouble, TroubleWord, by_cause, cause_line, reason_in_common
from sparkmirror.metrics.looks import ClusterLook
from sparkmirror.ui.page_looks import query
from sparkmirror.view.causes import away, needed
from sparkmirror.view.flows import FlowView, MirrorView
from sparkmirror.view.values import ConnectorView, State, TopicView
from sparkmirror.view.words import VERDICTS, Word, severity

_INSPECTED_MAX: Final = 500
"""The most topics of a flow that are sorted by their reasons."""
_WORDS: Final = {TroubleWord.THROTTLED: Word.THROTTLED}
_CONSEQUENCES: Final = (Word.UNKNOWN, Word.STARTING, Word.RETRYING)
"""The words that follow from a cluster that is away."""
_PROBLEMS: Final = frozenset(word for word in Word if not VERDICTS[word].is_calm)
_OF_CONNECTORS: Final = (Word.STOPPED, Word.PAUSED)
"""Topics have these words by their connector, which is told."""


class Need(NamedTuple):
    """Something that is not well, with the page that shows it. `more` says what else that concerns."""

    kind: str
    name: str
    flow: Flow
    state: State
    link: str
    more: str = ""


def needs_of(view: MirrorView, most: int) -> tuple[Sequence[Need], int]:
    """List causes: clusters that are away, then what is not well for other reasons, the worst first.

    At most `most` of them, and how many there are.
    """
    silent = [it for it in view.clusters if it.is_up is False]
    needs = [need for flow in view.flows for need in _needs_of_flow(flow, silent, view.made_at)]
    left = sum(max(0, len(_ill(flow, _follows(flow, silent))) - _INSPECTED_MAX) for flow in view.flows)
    found = [
        *(_cluster_need(view, it) for it in silent),
        *sorted(needs, key=lambda it: severity(it.state.word)),
    ]
    return found[:most], len(found) + left


def _cluster_need(view: MirrorView, cluster: ClusterLook) -> Need:
    flows = [flow for flow in view.flows if cluster.alias in needed(flow.flow, mirrors=flow.mirrors)]
    topics = sum(len(flow.topics.having(_CONSEQUENCES)) for flow in flows)
    parts = [f"{counted(topics, 'topic')} of"] if topics else []
    more = " ".join([*parts, some_of([str(flow.flow) for flow in flows])])
    none = Flow(cluster.alias, cluster.alias)
    return Need("cluster", cluster.alias, none, away(cluster, view.made_at), "", more)


def _needs_of_flow(flow: FlowView, silent: Sequence[ClusterLook], at: float) -> Iterator[Need]:
    """`silent` clusters are causes themselves; `at` is in epoch seconds."""
    follows = _follows(flow, silent)
    if Word.STARTING in follows and not follows.issuperset(_CONSEQUENCES):
        more = counted(len(flow.topics), "topic") if flow.topics else ""
        yield Need("flow", "", flow.flow, flow.state, _link("flow", flow), more)
    lines = set()
    for of in by_cause(it for it in flow.troubles if not it.is_remark).values():
        lines.add(cause_line(of))
        yield _trouble_need(flow, of, at)
    yield from (
        Need("connector", it.name, flow.flow, it.state, _link("flow", flow))
        for it in flow.connectors
        if _is_ill(it, flow) and it.state.word not in follows and it.state.error not in lines
    )
    yield from _topic_needs(flow, _ill(flow, follows)[:_INSPECTED_MAX])


def _follows(flow: FlowView, silent: Sequence[ClusterLook]) -> frozenset[Word]:
    """Return the words of connectors and topics that follow from what is told of the flow anyway."""
    follows: set[Word] = set()
    if any(it.alias in needed(flow.flow, mirrors=flow.mirrors) for it in silent):
        follows.update(_CONSEQUENCES)
    elif flow.state.word is Word.STARTING:
        follows.add(Word.STARTING)
    if any(it.cause.subject is Subject.TASK for it in flow.troubles):
        follows.add(Word.UNKNOWN)
    return frozenset(follows)


def _trouble_need(flow: FlowView, of: Sequence[Trouble], at: float) -> Need:
    first, since_s = of[0], max(0.0, at - min(it.since for it in of))
    word = _WORDS.get(first.word, Word.ACTION_REQUIRED if first.requires_action else Word.RETRYING)
    if first.cause.subject is Subject.TASK:
        word = Word.UNKNOWN
    state = State(word, since_s, f"{first.word}: {first.reason}", first.remedy)
    is_topic = first.cause.subject is Subject.TOPIC
    link = _link("topic", flow, first.what) if is_topic else _link("flow", flow)
    more = f"and {len(of) - 1:,} more" if len(of) > 1 else ""
    return Need(first.cause.subject.value, first.what, flow.flow, state, link, more)


def _is_ill(connector: ConnectorView, flow: FlowView) -> bool:
    """A source connector's word is that of its partitions, unless it has an error of its own."""
    if connector.kind == "source" and connector.state.error is None and flow.topics:
        return False
    return connector.state.word in _PROBLEMS


def _topic_needs(flow: FlowView, topics: Sequence[TopicView]) -> list[Need]:
    """Merge topics that have a reason in common."""
    by_reason: dict[tuple[Word, str], list[TopicView]] = {}
    for topic in topics:
        by_reason.setdefault((topic.state.word, _reason(topic)), []).append(topic)
    return [
        Need(
            "topic",
            of[0].name,
            flow.flow,
            of[0].state,
            _link("topic", flow, of[0].name),
            f"and {counted(len(of) - 1, 'more topic')}" if len(of) > 1 else "",
        )
        for of in by_reason.values()
    ]


def _reason(topic: TopicView) -> str:
    """Return the reason without the topic's name and numbers, so that equal reasons can be grouped."""
    text = f"{topic.state.error or ''} {topic.state.advice}"
    return reason_in_common(text, (topic.name, topic.target or topic.name))


def _ill(flow: FlowView, follows: Collection[Word]) -> Sequence[TopicView]:
    """The topics with problems that do not follow from others, but for those of the flow's troubles."""
    held_back = {it.what for it in flow.troubles if it.cause.subject is Subject.TOPIC and not it.is_remark}
    return flow.topics.having(_PROBLEMS.difference(follows, _OF_CONNECTORS), held_back)


def _link(page: str, flow: FlowView, name: str = "") -> str:
    return f"{page}?{query(str(flow.flow), name)}"
