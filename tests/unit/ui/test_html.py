"""Pages show whatever names and errors hold, and never run it."""

from html.parser import HTMLParser
from typing import Final

import pytest

from sparkmirror.domain.printable import printable
from sparkmirror.metrics.looks import EventsLook, MigrationsLook
from sparkmirror.storage.migrations import Migrations
from sparkmirror.ui.html import error_page, page, part
from sparkmirror.ui.needs import needs_of
from sparkmirror.ui.page_looks import PageLook, look_of
from sparkmirror.view.flows import MirrorView
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.tasks import tasks_of
from tests.support.mirror_looks import HOSTILE, behind, everything, groups, look, source

FLOW: Final = "a->b"
LOOKS: Final = (
    PageLook("overview"),
    PageLook("flow", FLOW),
    PageLook("flow", FLOW, number=2),
    PageLook("topic", FLOW, "orders"),
    PageLook("groups", FLOW),
    PageLook("events", FLOW),
    PageLook("connectors", FLOW),
    PageLook("verify", FLOW),
    PageLook("verify", "b->lab"),
    PageLook("migrations", FLOW),
    PageLook("migrations", "b->a"),
    PageLook("migrations", "b->lab"),
    PageLook("events", "b->lab"),
    PageLook("connectors", "b->lab"),
    *(PageLook("events", FLOW, matching=name) for name in HOSTILE),
    *(PageLook("groups", FLOW, matching=name) for name in HOSTILE),
    *(PageLook("migrations", FLOW, matching=name) for name in HOSTILE),
    *(PageLook("topic", FLOW, name) for name in HOSTILE),
    *(PageLook("group", FLOW, name) for name in HOSTILE),
    *(PageLook("flow", FLOW, matching=name) for name in HOSTILE),
)
VOID: Final = frozenset({"meta", "link", "input", "br", "img"})
SCRIPTS: Final = 4
NODES_MAX: Final = 3000


class Parsed(HTMLParser):
    """Reads a page as a browser does; fails for tags that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        self.texts: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return "".join(self.texts)


@pytest.fixture(scope="module")
def view() -> MirrorView:
    return view_of(Node("node-1", "1.0", ("http://node-1/",)), everything(), 1000.0)


@pytest.mark.parametrize("shown", LOOKS, ids=range(len(LOOKS)))
def test_nothing_in_a_name_is_run(view: MirrorView, shown: PageLook) -> None:
    parsed = Parsed(page(view, shown))
    assert parsed.tags.count("script") == SCRIPTS
    assert "img" not in parsed.tags
    assert "style" not in parsed.tags
    names = {name for _, name, _ in parsed.attributes}
    assert not [name for name in names if name.startswith("on") or name == "style"]
    assert len(parsed.tags) <= NODES_MAX


def test_htmx_waits_for_its_extension(view: MirrorView) -> None:
    """It waits for a page that is still being read, and that is no more when a deferred script runs."""
    attributes = [
        name for tag, name, _ in Parsed(page(view, PageLook("overview"))).attributes if tag == "script"
    ]
    assert attributes == ["src"] * SCRIPTS


def test_pages_load_and_link_below_their_own_folder_only(view: MirrorView) -> None:
    for shown in LOOKS:
        urls = [
            value or ""
            for _, name, value in Parsed(page(view, shown)).attributes
            if name in ("src", "href", "action", "hx-sse:connect")
        ]
        assert not [url for url in urls if ":" in url.partition("?")[0] or url.startswith("/")]


def test_hostile_names_are_shown_as_they_are(view: MirrorView) -> None:
    topics = Parsed(part(view, PageLook("flow", FLOW)) + part(view, PageLook("flow", FLOW, number=2))).text
    groups = Parsed(part(view, PageLook("groups", FLOW))).text
    events = Parsed(part(view, PageLook("events", FLOW))).text
    settings = Parsed(part(view, PageLook("connectors", FLOW))).text
    migrations = Parsed(part(view, PageLook("migrations", FLOW))).text
    for name in HOSTILE:
        assert printable(name) in topics
        assert printable(name) in groups
        assert printable(name) in migrations
        assert events.count(printable(name)) >= 2
        assert settings.count(printable(name)) >= 2


def test_marks_that_turn_the_direction_are_written_out(view: MirrorView) -> None:
    text = Parsed(page(view, PageLook("groups", FLOW))).text
    assert "\u202e" not in text
    assert "\\u202egnp.exe" in text


def test_errors_come_with_their_advice_and_the_worst_is_first(view: MirrorView) -> None:
    text = Parsed(page(view, PageLook("overview"))).text
    assert "raise max.message.bytes of a.orders to 2097152" in text
    assert text.index("action required") < text.index("stalled") < text.index("retrying")
    assert [need.name for need in needs_of(view, 3)[0]] == ["archive", "orders", "errors"]


def test_events_are_found_by_their_text_and_have_dates(view: MirrorView) -> None:
    text = Parsed(part(view, PageLook("events", FLOW, matching="orders-7"))).text
    assert "2023-11-14 22:13:20 UTC" in text
    assert "raise max.message.bytes" in text
    assert "alert" not in text
    assert "none runs here" in Parsed(part(view, PageLook("events", "b->lab"))).text


def test_events_that_cannot_be_read_are_not_none() -> None:
    for known, said in (
        (EventsLook(), "Events are being read"),
        (EventsLook(trouble="no right to READ"), "no right to READ"),
        (EventsLook(()), "No event was written in the last 7 days"),
    ):
        of = view_of(Node("n", "1"), [source(look(), events=known)], 0.0)
        assert said in Parsed(part(of, PageLook("events", FLOW))).text


def test_migrations_have_their_stage_and_offsets(view: MirrorView) -> None:
    text = " ".join(Parsed(part(view, PageLook("migrations", FLOW))).text.split())
    assert text.index("followed") < text.index("parted") < text.index("switching") < text.index("billing")
    assert "partition 0 from 900 on, where the source ended at 900" in text
    assert "partition 1 from 70 on" in text
    assert "a.orders-0 at 97, 90 before" in text
    assert "a.orders-1 at 5, without an offset before" in text
    assert "and 4 partitions more" in text
    assert "failback of a topic" in text
    assert "partition 0 up to 800, before groups continue" in text
    assert "parted" not in Parsed(part(view, PageLook("migrations", FLOW, matching="billing"))).text


def test_migrations_that_cannot_be_read_are_not_none() -> None:
    for known, said in (
        (None, "none runs here"),
        (MigrationsLook(), "Migrations are being read"),
        (MigrationsLook(trouble="no right to READ"), "no right to READ"),
        (MigrationsLook(Migrations()), "Nothing of this flow was migrated"),
    ):
        of = view_of(Node("n", "1"), [source(look(), migrations=known)], 0.0)
        text = Parsed(part(of, PageLook("migrations", FLOW))).text
        assert said in text
        assert ("Nothing of this flow" in text) == (known == MigrationsLook(Migrations()))


def test_groups_that_cannot_be_read_are_not_none(view: MirrorView) -> None:
    text = Parsed(part(view, PageLook("groups", FLOW, matching="away"))).text
    assert "its offsets can't be read: find the coordinator of group away on a" in text
    assert "not yet" in text
    assert "No group" not in text
    assert "COORDINATOR_NOT_AVAILABLE" in Parsed(part(view, PageLook("group", FLOW, "away"))).text
    of = view_of(Node("n", "1"), [source(look()), groups(unread="list groups on a: no broker answers")], 0.0)
    assert "list groups on a: no broker answers" in Parsed(part(of, PageLook("groups", FLOW))).text


def test_tasks_have_their_partitions_and_slots(view: MirrorView) -> None:
    text = Parsed(part(view, PageLook("connectors", FLOW))).text
    assert "Spark slots for them2" in text
    assert [task.number for task in tasks_of(view.flows[1])] == [0, 1]
    assert sum(task.partitions for task in tasks_of(view.flows[1])) == 141
    assert "No copy task runs now" in Parsed(part(view, PageLook("connectors", "b->lab"))).text


def test_unknown_and_0_do_not_look_alike() -> None:
    unknown = view_of(Node("n", "1"), [source(look(), report_age_s=99.0)], 0.0)
    known = view_of(Node("n", "1"), [source(look())], 0.0)
    shown = PageLook("topic", FLOW, "orders")
    lags = [f'data-label="Lag" class="r"><span class="num{more}' for more in (' unknown">unknown<', '">0<')]
    assert [lags[0] in part(it, shown) for it in (unknown, known)] == [True, False]
    assert [lags[1] in part(it, shown) for it in (unknown, known)] == [False, True]


def test_a_partition_that_catches_up_says_how_long() -> None:
    made = view_of(Node("n", "1"), [source(behind("orders", 0, 6000, closed=3000))], 0.0)
    text = Parsed(part(made, PageLook("topic", FLOW, "orders"))).text
    assert "catching up" in text
    assert "60 s" in text


@pytest.mark.parametrize(
    "shown", [PageLook("flow", "x->y"), PageLook("topic", FLOW, "none"), PageLook("group", FLOW, "none")]
)
def test_what_is_not_there_is_said(view: MirrorView, shown: PageLook) -> None:
    with pytest.raises(LookupError, match=r"x->y|none") as raised:
        page(view, shown)
    for name in HOSTILE:
        parsed = Parsed(error_page(shown, f"{raised.value.args[0]} {name}"))
        assert printable(name) in parsed.text
        assert parsed.tags.count("script") == SCRIPTS


def test_a_mirror_without_flows_says_so() -> None:
    assert "No flow runs here yet" in page(view_of(Node("n", "1"), [], 0.0), PageLook("overview"))


@pytest.mark.parametrize(("number", "read"), [("2", 2), ("", 1), ("-1", 1), ("²", 1), ("9" * 400, 1)])
def test_parameters_that_mean_nothing_are_left_out(number: str, read: int) -> None:
    assert look_of("flow", {"page": number, "flow": FLOW}) == PageLook("flow", FLOW, number=read)
