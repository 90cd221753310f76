import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from sparkmirror.ui.streams import Make, Part, Streams, event


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(10):
            await test()

    asyncio.run(bounded())


class Made:
    """Makes parts as a test says: each round waits until the test lets it."""

    def __init__(self) -> None:
        self.count = 0
        self._parts: asyncio.Queue[Part] = asyncio.Queue()

    async def make(self) -> Part:
        part = await self._parts.get()
        self.count += 1
        return part

    def next(self, html: str, at: str = "now", trouble: str = "") -> None:
        self._parts.put_nowait(Part(html, at, trouble))


async def begun(streams: Streams, make: Make, key: str = "look") -> AsyncGenerator[bytes, None]:
    events = streams.events(key, make)
    assert await anext(events) == b"retry: 1000\n\n"
    return events


def test_a_part_is_sent_when_it_changes_and_each_round_is_heard() -> None:
    async def test() -> None:
        made, streams = Made(), Streams(every_s=0)
        events = await begun(streams, made.make)
        for html, at in (("<p>1", "t1"), ("<p>1", "t2"), ("<p>2", "t3")):
            reading = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            made.next(html, at)
            first = await reading
            if at != "t2":
                assert first == event(html)
                first = await anext(events)
            assert first == event(at, "alive")
        await events.aclose()

    run(test)


def test_a_part_is_made_once_for_all_who_look_at_it_and_not_after_they_left() -> None:
    async def test() -> None:
        made, streams = Made(), Streams(every_s=0)
        clients = [await begun(streams, made.make) for _ in range(50)]
        waiting = [asyncio.ensure_future(anext(client)) for client in clients]
        await asyncio.sleep(0)
        made.next("<p>1")
        assert set(await asyncio.gather(*waiting)) == {event("<p>1")}
        assert (made.count, streams.looked_at) == (1, 1)
        for client in clients:
            await client.aclose()
        assert streams.looked_at == 0

    run(test)


def test_who_is_slow_gets_the_newest_and_no_queue() -> None:
    async def test() -> None:
        made, streams = Made(), Streams(every_s=0)
        slow, quick = await begun(streams, made.make), await begun(streams, made.make)
        for number in range(20):  # which `slow` does not read
            reading = asyncio.ensure_future(anext(quick))
            await asyncio.sleep(0)
            made.next(f"<p>{number}")
            assert await reading == event(f"<p>{number}")
            assert await anext(quick) == event("now", "alive")
        reading = asyncio.ensure_future(anext(slow))
        await asyncio.sleep(0)
        made.next("<p>last")
        assert await reading == event("<p>last")
        await slow.aclose()
        await quick.aclose()

    run(test)


def test_while_no_part_can_be_made_the_reason_is_sent() -> None:
    async def test() -> None:
        made, streams = Made(), Streams(every_s=0)
        events = await begun(streams, made.make)
        told = []
        for html, trouble in (("<p>1", ""), ("", "no leader"), ("<p>1", "")):
            reading = asyncio.ensure_future(anext(events))
            await asyncio.sleep(0)
            made.next(html, trouble=trouble)
            told.append(await reading)
            if html and len(told) == 1:
                assert await anext(events) == event("now", "alive")
        assert told == [event("<p>1"), event("no leader", "trouble"), event("now", "alive")]
        await events.aclose()

    run(test)


def test_an_event_ends_where_it_says_and_nowhere_in_its_data() -> None:
    assert (
        event("a\r\n\r\nevent: evil\rb\u2028c")
        == "data: a\ndata: \ndata: event: evil\ndata: b\u2028c\n\n".encode()
    )
    assert event("", "alive") == b"event: alive\ndata: \n\n"


def test_however_many_are_looked_at_one_part_is_made_at_a_time() -> None:
    async def test() -> None:
        making, most, streams = 0, 0, Streams(every_s=0)

        async def make() -> Part:
            nonlocal making, most
            making += 1
            most = max(most, making)
            await asyncio.sleep(0)
            making -= 1
            return Part("<p>")

        clients = [await begun(streams, make, f"look {number}") for number in range(20)]
        assert [await anext(client) for client in clients] == [event("<p>")] * 20
        assert most == 1
        for client in clients:
            await client.aclose()

    run(test)
