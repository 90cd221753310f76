import pytest

from sparkmirror.domain.connect import NotLeaderError
from sparkmirror.metrics.looks import ConnectorLook
from sparkmirror.ui.current_view import CurrentView
from sparkmirror.view.making import Node
from tests.support.mirror_looks import look, source


def test_a_view_is_made_once_a_second_however_many_look() -> None:
    asked, now = [], 100.0

    def looks() -> list[ConnectorLook]:
        asked.append(now)
        return [source(look())]

    current = CurrentView(lambda: Node("n", "1"), looks, clock=lambda: now, wall_clock=lambda: 5.0)
    first = current.get()
    now += 0.75
    assert current.get() is first
    now += 0.25
    assert current.get() is not first
    assert (asked, first.made_at) == ([100.0, 101.0], 5.0)


def test_a_node_that_no_longer_leads_shows_no_old_view() -> None:
    leads = True

    def looks() -> list[ConnectorLook]:
        if not leads:
            raise NotLeaderError("http://other/")
        return []

    now = 0.0
    current = CurrentView(lambda: Node("n", "1"), looks, clock=lambda: now)
    current.get()
    leads, now = False, 1.0
    with pytest.raises(NotLeaderError):
        current.get()
    with pytest.raises(NotLeaderError):
        current.get()
