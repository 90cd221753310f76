import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from typing import Any, Final, NamedTuple

from sparkmirror.ui.streams import TOGETHER_MAX, Part, Streams, event


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await test()

    asyncio.run(bounded())


class Look(NamedTuple):
    name: str = "look"
    user: str = "user"


LOOK: Final = Look()


class Made:
    """Makes parts as a test says: each round waits until the test lets it."""

    def __init__(self) -> None:
        self.asked: list[Sequence[Look]] = []
        self._parts: asyncio.Queue[Part] = asyncio.Queue()

    async def make(self, wanted: Sequence[Look]) -> Sequence[Part]:
        part = await self._parts.get()
        self.asked.append(wanted)
        return [part] * len(wanted)

    def next(self, html: str, at: str = "now", trouble: str = "") -> None:
        self._parts.put_nowait(Part(html, at, trouble))


async def begun(streams: Streams[Look], look: Look = LOOK) -> AsyncGenerator[bytes, None]:
    events = streams.events(look)
    assert await anext(events) == b"retry: 1000\n\n"
    return events


def sent(html: str, at: str = "now") -> bytes:
    return event(html) + event(at, "alive")


def test_a_part_is_sent_when_it_changes_and_each_round_is_heard() -> None:
    async def test() -> None:
        made = Made()
        events = await begun(Streams(made.make, every_s=0))
        for html, at, heard in (
            ("<p>1", "t1", sent("<p>1", "t1")),
            ("<p>1", "t2", event("t2", "alive")),
            ("<p>2", "t3", sent("<p>2", "t3")),
        ):
            reading = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            made.next(html, at)
            assert await reading == heard
        await events.aclose()

    run(test)


def test_a_part_is_made_once_for_all_who_look_at_it_and_not_after_they_left() -> None:
    async def test() -> None:
        made = Made()
        streams = Streams(made.make, every_s=0)
        clients = [await begun(streams) for _ in range(50)]
        waiting = [asyncio.ensure_future(anext(client)) for client in clients]
        await asyncio.sleep(0)
        made.next("<p>1")
        assert set(await asyncio.gather(*waiting)) == {sent("<p>1")}
        assert (made.asked, streams.looked_at) == ([[LOOK]], 1)
        for client in clients:
            await client.aclose()
        assert streams.looked_at == 0

    run(test)


def test_who_is_slow_gets_the_newest_and_no_queue() -> None:
    async def test() -> None:
        made = Made()
        streams = Streams(made.make, every_s=0)
        slow, quick = await begun(streams), await begun(streams)
        for number in range(20):  # which `slow` does not read
            reading = asyncio.ensure_future(anext(quick))
            await asyncio.sleep(0)
            made.next(f"<p>{number}")
            assert await reading == sent(f"<p>{number}")
        assert await anext(slow) == sent("<p>19")
        reading = asyncio.ensure_future(anext(slow))
        await asyncio.sleep(0)
        made.next("<p>last")
        assert await reading == sent("<p>last")
        await slow.aclose()
        await quick.aclose()

    run(test)


def test_while_no_part_can_be_made_the_reason_is_sent() -> None:
    async def test() -> None:
        made = Made()
        events = await begun(Streams(made.make, every_s=0))
        told = []
        for html, trouble in (("<p>1", ""), ("", "no leader"), ("<p>1", "")):
            reading = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            made.next(html, trouble=trouble)
            told.append(await reading)
        assert told == [sent("<p>1"), event("no leader", "trouble"), event("now", "alive")]
        await events.aclose()

    run(test)


def test_what_one_user_looks_at_is_made_together_and_never_with_anothers() -> None:
    async def test() -> None:
        made = Made()
        streams = Streams(made.make, every_s=60)
        looks = [
            Look(f"look {number}", user) for number in range(TOGETHER_MAX + 1) for user in ("mia", "ops")
        ]
        clients = [await begun(streams, look) for look in looks]
        waiting = [asyncio.ensure_future(anext(client)) for client in clients]
        for _ in range(4):
            made.next("<p>")
        assert set(await asyncio.gather(*waiting)) == {sent("<p>")}
        assert [(len(each), {look.user for look in each}) for each in made.asked] == [
            (TOGETHER_MAX, {"mia"}),
            (1, {"mia"}),
            (TOGETHER_MAX, {"ops"}),
            (1, {"ops"}),
        ]
        for client in clients:
            await client.aclose()

    run(test)


def test_what_is_looked_at_between_two_rounds_is_made_at_once_and_alone() -> None:
    async def test() -> None:
        made = Made()
        streams = Streams(made.make, every_s=60)
        made.next("<p>1")
        first = await begun(streams, Look("first"))
        assert await anext(first) == sent("<p>1")
        made.next("<p>2")
        second = await begun(streams, Look("second"))
        assert await anext(second) == sent("<p>2")
        assert made.asked == [[Look("first")], [Look("second")]]
        await first.aclose()
        await second.aclose()

    run(test)


def test_an_event_ends_where_it_says_and_nowhere_in_its_data() -> None:
    assert (
        event("a\r\n\r\nevent: evil\rb\u2028c")
        == "data: a\ndata: \ndata: event: evil\ndata: b\u2028c\n\n".encode()
    )
    assert event("", "alive") == b"event: alive\ndata: \n\n"


def test_however_many_are_looked_at_one_go_is_made_at_a_time() -> None:
    async def test() -> None:
        making, most = 0, 0

        async def make(wanted: Sequence[Look]) -> Sequence[Part]:
            nonlocal making, most
            making += 1
            most = max(most, making)
            await asyncio.sleep(0)
            making -= 1
            return [Part("<p>")] * len(wanted)

        streams = Streams(make, every_s=0)
        clients = [await begun(streams, Look(f"look {number}")) for number in range(3 * TOGETHER_MAX)]
        assert {await anext(client) for client in clients} == {sent("<p>", "")}
        assert most == 1
        for client in clients:
            await client.aclose()

    run(test)
