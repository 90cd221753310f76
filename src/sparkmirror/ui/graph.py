"""Lays out the graph of clusters and flows: clusters on a circle, or in a row if they are two. Pure."""

from collections.abc import Sequence
from math import cos, hypot, pi, sin
from typing import Final, NamedTuple

from sparkmirror.metrics.looks import ClusterLook
from sparkmirror.view.flows import FlowView, MirrorView

CLUSTERS_MAX: Final = 12
"""The most clusters that are drawn; more are a list only."""
_RADIUS_X, _RADIUS_Y, _DOT, _BEND = 120.0, 80.0, 11.0, 11.0


class Place(NamedTuple):
    cluster: ClusterLook
    x: float
    y: float
    label_y: float


class Arrow(NamedTuple):
    """A curve from one cluster to another."""

    flow: FlowView
    path: str


class Graph(NamedTuple):
    places: Sequence[Place]
    arrows: Sequence[Arrow]
    width: float
    height: float


def graph_of(view: MirrorView) -> Graph | None:
    """Draw the flows; None where there is nothing to draw, or too much."""
    count = len(view.clusters)
    if not 2 <= count <= CLUSTERS_MAX:
        return None
    is_row = count == 2
    radius_y = 0.0 if is_row else _RADIUS_Y
    width, height = 2 * _RADIUS_X + 130, 2 * radius_y + 84
    places = []
    for at, cluster in enumerate(view.clusters):
        angle = pi + 2 * pi * at / count
        x, y = width / 2 + _RADIUS_X * cos(angle), height / 2 - 8 + radius_y * sin(angle)
        places.append(Place(cluster, x, y, y + _DOT + 17))
    by_alias = {place.cluster.alias: place for place in places}
    arrows = [
        Arrow(flow, _curve(by_alias[flow.flow.source], by_alias[flow.flow.target]))
        for flow in view.flows
        if flow.flow.source != flow.flow.target
    ]
    return Graph(places, arrows, width, height)


def _curve(start: Place, end: Place) -> str:
    """Bent to the left, so that the flow back has a curve of its own."""
    dx, dy = end.x - start.x, end.y - start.y
    length = hypot(dx, dy)
    ux, uy = dx / length, dy / length
    gap = _DOT + 6
    x0, y0 = start.x + ux * gap, start.y + uy * gap
    x1, y1 = end.x - ux * gap, end.y - uy * gap
    middle_x, middle_y = (x0 + x1) / 2 + uy * _BEND * 2, (y0 + y1) / 2 - ux * _BEND * 2
    return f"M{x0:.1f} {y0:.1f} Q{middle_x:.1f} {middle_y:.1f} {x1:.1f} {y1:.1f}"
