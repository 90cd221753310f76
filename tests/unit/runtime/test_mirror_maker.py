import pytest

from sparkmirror.runtime.mirror_maker import slots_share


@pytest.mark.parametrize(
    ("tasks_max", "all_tasks_max", "slots", "share"),
    [
        pytest.param(1, 1, 16, 16, id="one flow may take all"),
        pytest.param(3, 8, 16, 6, id="twice what it asks for where there is enough"),
        pytest.param(1, 8, 16, 2, id="and so may those beside it"),
        pytest.param(20, 21, 8, 7, id="where there is too little it is dealt by what they ask for"),
        pytest.param(1, 21, 8, 1, id="but none is left without"),
    ],
)
def test_a_connectors_share_of_slots(tasks_max: int, all_tasks_max: int, slots: int, share: int) -> None:
    assert slots_share(tasks_max, all_tasks_max, slots) == share
