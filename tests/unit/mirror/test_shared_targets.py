"""Topics of one target that several flows of a process write."""

from sparkmirror.config.mirror_maker import MirrorMakerConfig
from sparkmirror.config.properties import Properties
from sparkmirror.domain.troubles import TroubleWord, trouble_lines
from sparkmirror.mirror.shared_targets import SharedTargets
from sparkmirror.settings.configured import ConfiguredSource, configured_flow

FILE = {
    "clusters": "a, b, c, elsewhere",
    **{f"{alias}.bootstrap.servers": f"{alias}:9092" for alias in ("a", "b", "c", "elsewhere")},
    "a->c.enabled": "true",
    "b->c.enabled": "true",
    "b->elsewhere.enabled": "true",
}
ORDERS = [("orders", "orders"), ("heartbeats", "heartbeats")]


def connectors() -> list[ConfiguredSource]:
    flows = MirrorMakerConfig(Properties(FILE), {}).flows()
    found = {str(flow.flow): configured_flow(flow).source for flow in flows}
    named = [found[name] for name in ("a->c", "b->c", "b->elsewhere")]
    return [source for source in named if source is not None]


def test_both_flows_are_told_and_no_other() -> None:
    shared, (first, second, other) = SharedTargets(), connectors()
    shared.note(first, [*ORDERS, ("mine", "mine")])
    assert shared.troubles(first) == []
    shared.note(second, ORDERS)
    shared.note(other, ORDERS)
    (trouble,) = shared.troubles(first)
    assert shared.troubles(second) == [trouble]
    assert (trouble.word, trouble.what, trouble.requires_action) == (TroubleWord.SHARED, "orders", False)
    assert trouble.text.startswith("2 flows write it: orders of a and orders of b. ")
    assert "verify compares its own" in trouble.text
    assert shared.of(other) == {}


def test_topics_of_the_same_flows_have_one_cause() -> None:
    shared, (first, second, _) = SharedTargets(), connectors()
    for each in (first, second):
        shared.note(each, [*ORDERS, ("bills", "bills")])
    assert [line.partition(": ")[0] for line in trouble_lines(shared.troubles(first))] == [
        "bills, orders shared"
    ]


def test_a_flow_that_ends_shares_nothing() -> None:
    shared, (first, second, _) = SharedTargets(), connectors()
    for each in (first, second):
        shared.note(each, ORDERS)
    shared.note(second, ())
    assert (shared.of(first), shared.of(second)) == ({}, {})


def test_other_names_are_not_shared() -> None:
    shared, (first, second, _) = SharedTargets(), connectors()
    for each in (first, second):
        shared.note(each, [("orders", f"{each.settings.flow.source}.orders")])
    assert shared.of(first) == {}
