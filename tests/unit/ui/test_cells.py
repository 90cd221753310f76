"""Filters write HTML: what strangers chose is in it as text."""

from html import escape

import pytest

from sparkmirror.domain.printable import printable
from sparkmirror.storage.progress import PartitionState
from sparkmirror.ui.cells import CELLS
from sparkmirror.view.making import Node, view_of
from sparkmirror.view.values import State
from sparkmirror.view.words import Word
from tests.support.mirror_looks import HOSTILE, look, source


@pytest.mark.parametrize("name", HOSTILE)
def test_names_errors_and_notices_are_escaped(name: str) -> None:
    report = {"state": PartitionState.FAILED, "error": name, "notice": name, "target_topic": f"{name}!"}
    (flow,) = view_of(Node("n", "1"), [source(look(name, 0, report, incidents={name: 2}))], 0.0).flows
    (topic,) = flow.topics
    written = CELLS["topic_row"](topic, flow), CELLS["partition_row"](topic.partitions[0], flow)
    for html in written:
        assert escape(printable(name)).replace("&#x27;", "&#39;").replace("&quot;", "&#34;") in html
        assert "<script" not in html
        assert "<img" not in html


def test_what_is_unknown_has_a_class_and_no_unit() -> None:
    assert CELLS["num"]("unknown", " records") == '<span class="num unknown">unknown</span>'
    assert CELLS["num"]("1,200", " records") == '<span class="num">1,200 records</span>'


def test_a_state_without_an_error_or_a_time_says_nothing_of_them() -> None:
    calm = State(Word.CAUGHT_UP)
    assert (CELLS["why"](calm), CELLS["since"](calm)) == ("", "")
    assert CELLS["since"](State(Word.STALLED, 61.0)) == ' <span class="soft">for 61 s</span>'
    assert CELLS["slug"](State(Word.ACTION_REQUIRED)) == "action-required"
