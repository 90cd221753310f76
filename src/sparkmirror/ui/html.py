"""Renders pages and their parts. Every text is escaped by the templates, names are isolated by `<bdi>`.

Pure.
"""

import json
from collections.abc import Sequence
from functools import cache, partial
from typing import Any, Final
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined, Template

from sparkmirror.domain.quantities import as_date, clock_time
from sparkmirror.metrics.flow_history import HistoryPoint
from sparkmirror.ui import numbers
from sparkmirror.ui.actions import ACTIONS, Action
from sparkmirror.ui.cells import CELLS
from sparkmirror.ui.charts import HEIGHT, WIDTH, plot_points, spark
from sparkmirror.ui.graph import graph_of
from sparkmirror.ui.needs import needs_of
from sparkmirror.ui.page_looks import PageLook, query
from sparkmirror.ui.plans import PlanLines
from sparkmirror.view.flows import MirrorView
from sparkmirror.view.groups import groups_of, lag_of
from sparkmirror.view.migrations import migrations_matching
from sparkmirror.view.moves import group_answer, group_answers, topic_answer
from sparkmirror.view.pages import page_of
from sparkmirror.view.tasks import tasks_of
from sparkmirror.view.view_json import flow_of, topic_of
from sparkmirror.view.words import CALM, severity

_MACROS: Final = "macros.html"
_ROWS: Final = 50
_NEEDS_MAX: Final = 20
_GROUPS_OF_TOPIC: Final = 20
_TASKS_MAX: Final = 50
_PROBLEMS_MAX: Final = 3
_PLACES_MAX: Final = 5
_SETTINGS_MAX: Final = 120
_PLAN_KINDS: Final = {"+": "new", "~": "changed", "-": "gone", "✗": "blocks", "!": "warns"}


def page(view: MirrorView, look: PageLook, *, may_act: bool = False) -> str:
    """The whole page. Raises LookupError with a text for the user."""
    content = part(view, look, may_act=may_act)
    return _template("page.html").render(look=look, view=view, part=content)


def part(view: MirrorView, look: PageLook, *, may_act: bool = False) -> str:
    """Render what changes of the page, with links to actions if the user may act. Raises LookupError."""
    context = {"view": view, "look": look, "may_act": may_act, **_CONTEXTS[look.page](view, look)}
    return _template(f"{look.page}.html").render(context)


def error_page(look: PageLook, message: str) -> str:
    """A page that says why there is nothing to see, and looks again."""
    content = _template("error.html").render(message=message, look=look)
    return _template("page.html").render(look=look, view=None, part=content)


def act_page(look: PageLook, action: Action, token: str) -> str:
    """Asks whether a connector should be changed; `token` makes the form good for one use."""
    content = _template("act.html").render(look=look, action=action, token=token)
    return _template("page.html").render(look=look, view=None, part=content)


def plan_page(look: PageLook, plan: PlanLines, made_at: float) -> str:
    """A plan, made when it was asked for."""
    context = {"look": look, "plan": plan, "made_at": made_at, "kinds": _PLAN_KINDS}
    content = _template("plan.html").render(context)
    return _template("page.html").render(look=look, view=None, part=content)


def _overview(view: MirrorView, _look: PageLook) -> dict[str, Any]:
    needs, count = needs_of(view, _NEEDS_MAX)
    return {
        "graph": graph_of(view),
        "needs": needs,
        "needs_left": count - _NEEDS_MAX,
        "flows": sorted(view.flows, key=lambda it: (severity(it.state.word), it.flow)),
    }


def _flow(view: MirrorView, look: PageLook) -> dict[str, Any]:
    flow = flow_of(view, look.flow)
    return {"flow": flow, "topics": page_of(flow.topics.worst_first(look.matching), look.number, _ROWS)}


def _topic(view: MirrorView, look: PageLook) -> dict[str, Any]:
    flow = flow_of(view, look.flow)
    topic = topic_of(flow, look.name)
    known = groups_of(flow)
    groups = group_answers(known, topic.name)
    return {
        "flow": flow,
        "topic": topic,
        "answer": topic_answer(flow, topic),
        "known": known,
        "groups": groups[:_GROUPS_OF_TOPIC],
        "groups_left": len(groups) - _GROUPS_OF_TOPIC,
        "partitions": page_of(topic.worst_first(), look.number, _ROWS),
    }


def _groups(view: MirrorView, look: PageLook) -> dict[str, Any]:
    flow = flow_of(view, look.flow)
    known = groups_of(flow)
    shown = page_of(() if known is None else known.matching(look.matching), look.number, _ROWS)
    answers = {it.name: group_answer(it, known) for it in shown.items if known is not None}
    trouble = next((it.state.error for it in flow.connectors if it.kind == "checkpoint"), None)
    return {"flow": flow, "known": known, "groups": shown, "answers": answers, "trouble": trouble}


def _group(view: MirrorView, look: PageLook) -> dict[str, Any]:
    flow = flow_of(view, look.flow)
    known = groups_of(flow)
    group = None if known is None else known.named(look.name)
    if known is None or group is None:
        raise LookupError(f"Flow {flow.flow} follows no group {look.name}, or has not listed it yet")
    return {
        "flow": flow,
        "known": known,
        "group": group,
        "answer": group_answer(group, known),
        "partitions": page_of(group.partitions, look.number, _ROWS),
        "lag_of_partition": partial(lag_of, flow),
    }


def _events(view: MirrorView, look: PageLook) -> dict[str, Any]:
    flow = flow_of(view, look.flow)
    found = flow.events_matching(look.matching)
    return {"flow": flow, "known": flow.events, "events": page_of(found, look.number, _ROWS)}


def _connectors(view: MirrorView, look: PageLook) -> dict[str, Any]:
    flow = flow_of(view, look.flow)
    return {
        "flow": flow,
        "tasks": tasks_of(flow),
        "tasks_max": _TASKS_MAX,
        "settings_max": _SETTINGS_MAX,
    }


def _verify(view: MirrorView, look: PageLook) -> dict[str, Any]:
    flow = flow_of(view, look.flow)
    return {
        "flow": flow,
        "made": flow.verify,
        "rows": page_of(() if flow.verify is None else flow.verify.rows, look.number, _ROWS),
        "problems_max": _PROBLEMS_MAX,
    }


def _migrations(view: MirrorView, look: PageLook) -> dict[str, Any]:
    flow = flow_of(view, look.flow)
    return {
        "flow": flow,
        "history": flow.migrations,
        "migrations": page_of(migrations_matching(flow, look.matching), look.number, _ROWS),
        "places_max": _PLACES_MAX,
    }


_CONTEXTS: Final = {
    "overview": _overview,
    "flow": _flow,
    "topic": _topic,
    "groups": _groups,
    "group": _group,
    "events": _events,
    "connectors": _connectors,
    "verify": _verify,
    "migrations": _migrations,
}


def points_json(history: Sequence[HistoryPoint], made_at: float) -> str:
    """Write times in epoch seconds, seconds behind and records/s, as uPlot takes them."""
    return json.dumps(plot_points(history, made_at), separators=(",", ":"))


@cache
def _template(name: str) -> Template:
    """Load a template with its globals in one dict; otherwise each rendering walks a chain of them."""
    template = _environment().get_template(name)
    template.globals = dict(template.globals)
    if name != _MACROS:
        _template(_MACROS)
    return template


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("sparkmirror.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        auto_reload=False,  # else each part looks whether its files have changed
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "count": numbers.count,
        "duration": numbers.duration,
        "ago": numbers.ago,
        "rate": numbers.rate,
        "size": numbers.size,
        "clock": clock_time,
        "date": as_date,
        **CELLS,
        "plural": lambda number, name: f"{number:,} {name}{'' if number == 1 else 's'}",
    }
    environment.globals |= {
        "spark": spark,
        "lag_of": lambda point: point.lag_s,
        "rate_of": lambda point: point.record_rate,
        "bytes_of": lambda point: point.byte_rate,
        "points_json": points_json,
        "query": query,
        "actions": tuple(ACTIONS),
        "action_query": lambda flow, name, action: urlencode({"flow": flow, "name": name, "action": action}),
        "spark_width": WIDTH,
        "spark_height": HEIGHT,
        "unknown": numbers.UNKNOWN,
        "calm": CALM,
    }
    return environment
