from urllib.parse import parse_qsl

from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.ui.page_looks import PAGES, PageLook, looks_of, looks_query

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
LOOKS = st.builds(PageLook, st.sampled_from(PAGES), TEXTS, TEXTS, TEXTS, st.integers(0, 999_999))


@given(st.lists(LOOKS, max_size=16))
def test_several_looks_travel_in_one_query(looks: list[PageLook]) -> None:
    sent = [("forward", "true"), *parse_qsl(looks_query(looks), keep_blank_values=True)]
    assert looks_of(sent) == looks


def test_what_is_no_look_asks_for_no_page() -> None:
    assert looks_of([("flow", "a->b"), ("page", "2")]) == [PageLook("", "a->b", number=2)]
    assert looks_of([("other", "a")]) == []
