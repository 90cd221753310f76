import json
from typing import Any, Final

import pytest

from sparkmirror.view.making import Node, view_of
from sparkmirror.view.view_json import Asked, view_json
from tests.support.mirror_looks import HOSTILE, everything, look, source

NODE: Final = Node("node-1", "1.0", ("http://node-1/",))
LARGE: Final = 5000
ALL: Final = Asked()


def answer(asked: Asked = ALL, looks: Any = None) -> Any:
    view = view_of(NODE, everything() if looks is None else looks, 1000.0)
    return json.loads(json.dumps(view_json(view, asked), allow_nan=False))


def test_a_mirror_has_its_clusters_and_flows() -> None:
    content = answer()
    assert (content["node"], content["made_at_ms"], content["state"]["word"]) == (
        "node-1",
        1_000_000,
        "action required",
    )
    assert {it["alias"]: it["answers"] for it in content["clusters"]} == {
        "a": True,
        "archive": False,
        "b": True,
        "lab": None,
    }
    flows = {f"{it['source']}->{it['target']}": it for it in content["flows"]}
    assert list(flows) == ["a->archive", "a->b", "b->a", "b->lab"]
    assert flows["b->a"]["lag_records"] == 0
    assert flows["b->a"]["partitions_by_state"] == {"caught up": 4}
    unknown = flows["a->archive"]
    assert (unknown["lag_records"], unknown["records_per_second"], unknown["lag_seconds"]) == (
        None,
        None,
        75.0,
    )
    assert "topics" not in unknown


def test_topics_come_worst_first_and_by_pages() -> None:
    first, second = (answer(Asked("a->b", page=page))["flows"] for page in (1, 2))
    assert [it["name"] for it in first[0]["topics"]["items"][:2]] == ["orders", "errors"]
    assert (first[0]["topics"]["pages"], first[0]["topics"]["total"]) == (1, 53)
    assert second == first  # the nearest page there is
    (only,) = answer(Asked("a->b", matching="clicks.0"))["flows"]
    assert only["topics"]["total"] == 10


def test_a_topic_has_its_partitions_and_who_may_move() -> None:
    (flow,) = answer(Asked("a->b", "orders"))["flows"]
    worst = flow["partitions"]["items"][0]
    assert (worst["partition"], worst["state"]["word"], worst["lag_records"]) == (7, "action required", 12)
    assert "raise max.message.bytes" in worst["state"]["error"]
    assert [it["name"] for it in flow["may_move"][0]["checks"]] == [
        "drained",
        "producers quiet",
        "verified",
    ]
    assert {it["what"] for it in flow["may_move"]} >= {"orders", "behind", *HOSTILE}


def test_partitions_of_all_topics_come_worst_first() -> None:
    (flow,) = answer(Asked("a->b", partitions=True, size=7))["flows"]
    page = flow["partitions"]
    assert (page["total"], page["pages"], len(page["items"])) == (141, 21, 7)
    assert [(it["topic"], it["partition"]) for it in page["items"][:2]] == [("orders", 7), ("errors", 0)]
    (flow,) = answer(Asked("a->b", matching="payments", partitions=True))["flows"]
    assert {it["topic"] for it in flow["partitions"]["items"]} == {"payments"}


def test_events_come_newest_first() -> None:
    (flow,) = answer(Asked("a->b", events=True, matching="orders-7"))["flows"]
    (event,) = flow["events"]["items"]
    assert (event["kind"], event["about"], flow["spark_slots"]) == ("failed", "orders-7", 2)


def test_migrations_come_newest_first() -> None:
    (flow,) = answer(Asked("a->b", migrations=True))["flows"]
    remade, followed, parted, _, billing = flow["migrations"]["items"][:5]
    assert (remade["kind"], remade["partitions"][0]["copied_up_to"]) == ("remake", 800)
    assert (followed["kind"], followed["partitions"][0]["goes_on_from"]) == ("failback", 900)
    assert [it["source_end"] for it in parted["partitions"]] == [900, None]
    assert (parted["stage"], parted["partitions"][1]["parting"]) == ("promoted", 70)
    assert billing["partitions"][:2] == [
        {"topic": "a.orders", "partition": 0, "offset": 97, "earlier_offset": 90},
        {"topic": "a.orders", "partition": 1, "offset": 5, "earlier_offset": None},
    ]
    assert (billing["kind"], billing["at_ms"], billing["partition_count"]) == ("group", 1_700_000_001_000, 9)
    (flow,) = answer(Asked("b->a", migrations=True))["flows"]
    assert flow["migrations"] == {"known": False, "page": 1, "pages": 1, "total": 0, "items": []}


def test_groups_are_asked_for_by_themselves() -> None:
    (flow,) = answer(Asked("a->b", groups=True, matching="behind"))["flows"]
    (group,) = flow["groups"]["items"]
    assert (group["name"], group["read_again_records"], group["may_move"]) == ("behind", 40, False)
    (without,) = answer(Asked("b->a", groups=True))["flows"]
    assert (without["groups"]["known"], without["groups"]["total"]) == (False, None)


@pytest.mark.parametrize("asked", [Asked("x->y"), Asked("a->b", "nothing")])
def test_what_is_not_there_is_said(asked: Asked) -> None:
    with pytest.raises(LookupError, match=r"x->y|nothing"):
        answer(asked)


def test_an_answer_stays_small_however_large_the_mirror_is() -> None:
    looks = [source(*(look(f"{at:05}-" + "t" * 200, 0) for at in range(LARGE)))]
    assert len(json.dumps(answer(looks=looks))) < 3000
    assert len(json.dumps(answer(Asked("a->b"), looks))) < 150_000
