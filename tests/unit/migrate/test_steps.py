from sparkmirror.migrate.steps import Step, StepState, are_done, next_step, some_of

DONE = Step("check", StepState.DONE, "")
WAITING = Step("wait", StepState.WAITING, "")


def test_the_next_step_is_the_first_that_is_not_done() -> None:
    assert next_step([DONE, WAITING, DONE]) == WAITING
    assert next_step([DONE, DONE]) is None
    assert are_done([])
    assert not are_done([WAITING])


def test_long_lists_are_cut() -> None:
    assert some_of(["a", "b"]) == "a, b"
    assert some_of(range(7), shown=2) == "0, 1 and 5 more"
