import io

from rich.console import Console

from sparkmirror.cli.terminal import StatusLines, aligned


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_begins_with_the_time_since_the_start() -> None:
    out, clock = io.StringIO(), Clock()
    status = StatusLines(Console(file=out, width=20), clock)
    clock.now += 12.34

    status.print("Starting [two] clusters …")

    assert out.getvalue() == " 12.3 s  Starting [two] clusters …\n"


def test_without_a_terminal_updates_take_a_line_every_few_seconds() -> None:
    out, clock = io.StringIO(), Clock()
    with StatusLines(Console(file=out, width=20), clock).updates() as update:
        for second in range(20):
            clock.now = 100.0 + second
            update(f"jar {second}")

    assert out.getvalue().splitlines() == ["  5.0 s  jar 5", " 10.0 s  jar 10", " 15.0 s  jar 15"]


def test_a_terminal_shows_updates_on_one_line() -> None:
    out = io.StringIO()
    with StatusLines(Console(file=out, width=40, force_terminal=True)).updates() as update:
        update("jar [1] of 45")

    assert "jar [1] of 45" in out.getvalue()


def test_columns_are_as_wide_as_their_longest_cell() -> None:
    rows = [("NAME", "LAG"), ("orders", "7"), ("", "1,000")]
    assert aligned(rows) == ["NAME    LAG", "orders  7", "        1,000"]
    assert aligned(rows, right={1}) == ["NAME      LAG", "orders      7", "        1,000"]
