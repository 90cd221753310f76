from sparkmirror.domain.condition_timer import ConditionTimer


def test_a_condition_is_measured_from_the_first_call_in_which_it_holds() -> None:
    held = ConditionTimer()
    assert [held.for_s(at) for at in (10.0, 11.5, 14.0)] == [0.0, 1.5, 4.0]
    assert held.for_s(15.0, holds=False) == 0.0
    assert [held.for_s(at) for at in (20.0, 23.0)] == [0.0, 3.0]
    held.end()
    assert held.for_s(30.0) == 0.0
