from typing import Final

from sparkmirror.metrics.flow_history import HistoryPoint
from sparkmirror.ui.charts import plot_points, spark
from sparkmirror.ui.graph import graph_of
from sparkmirror.view.making import Node, view_of
from tests.support.mirror_looks import everything, look, source

HOUR: Final = [
    HistoryPoint(3600.0, 10.0, 1000.0, 0, 0.0),
    HistoryPoint(3590.0, 20.0, 2000.0, None, None),
    HistoryPoint(3580.0, 30.0, 3000.0, 40, 4.0),
    HistoryPoint(20.0, 5.0, 500.0, 0, 0.0),
]


def test_a_line_is_broken_where_nothing_is_known() -> None:
    line = spark(HOUR, lambda point: point.lag_s)
    assert line.path == "M0.0 27.0 M1.0 1.0 M179.0 27.0"
    assert (line.now, line.most) == (0.0, 4.0)
    assert spark(HOUR, lambda point: point.record_rate).path == "M0.0 18.3 L0.5 9.7 L1.0 1.0 M179.0 22.7"


def test_old_values_are_not_those_of_now() -> None:
    assert spark(HOUR[:3], lambda point: point.lag_s).now is None
    assert spark([], lambda point: point.lag_s) == ("", None, None)


def test_a_plot_has_a_point_without_values_in_a_gap() -> None:
    assert plot_points(HOUR, 10_000.0) == [
        [6400, 6410, 6420, 6421, 9980],
        [0.0, None, 4.0, None, 0.0],
        [10.0, 20.0, 30.0, None, 5.0],
    ]


def test_two_clusters_are_drawn_in_a_row_and_one_is_not() -> None:
    graph = graph_of(view_of(Node("n", "1"), [source(look())], 0.0))
    assert graph is not None
    assert [(place.cluster.alias, round(place.y)) for place in graph.places] == [("a", 34), ("b", 34)]
    assert graph_of(view_of(Node("n", "1"), [], 0.0)) is None
    several = graph_of(view_of(Node("n", "1"), everything(), 0.0))
    assert several is not None
    assert len(several.arrows) == 4
