import io

from rich.console import Console

from sparkmirror.cli.narrator import Narrator


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_begins_with_the_time_since_the_start() -> None:
    out, clock = io.StringIO(), Clock()
    narrator = Narrator(Console(file=out, width=20), clock)
    clock.now += 12.34

    narrator.say("Starting [two] clusters …")

    assert out.getvalue() == " 12.3 s  Starting [two] clusters …\n"


def test_without_a_terminal_news_take_a_line_every_few_seconds() -> None:
    out, clock = io.StringIO(), Clock()
    with Narrator(Console(file=out, width=20), clock).waiting() as news:
        for second in range(20):
            clock.now = 100.0 + second
            news(f"jar {second}")

    assert out.getvalue().splitlines() == ["  5.0 s  jar 5", " 10.0 s  jar 10", " 15.0 s  jar 15"]


def test_a_terminal_shows_the_news_in_passing() -> None:
    out = io.StringIO()
    with Narrator(Console(file=out, width=40, force_terminal=True)).waiting() as news:
        news("jar [1] of 45")

    assert "jar [1] of 45" in out.getvalue()
