"""Finds Kafka's frames in a stream of bytes and forwards each as the proxy decides."""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Piece(NamedTuple):
    """Bytes that are forwarded together, and a callback for afterwards."""

    data: memoryview | bytes
    then: Callable[[], object] | None = None


@dataclass(slots=True)
class FrameAction:
    """The way in which one frame is forwarded."""

    stop_at: int | None = None
    """The number of bytes that are forwarded before `then` is called; the others are lost. None for all."""
    then: Callable[[], object] | None = None
    keeps_rest: bool = False
    """Whether the bytes after `then` are forwarded too."""
    rewrite: Callable[[bytes], bytes] | None = None
    """Replaces the whole frame."""


class Frames:
    """Finds the frames in one direction of a stream; calls `begun` for each once its head has arrived."""

    def __init__(self, head_bytes: int, begun: Callable[[bytes], FrameAction]) -> None:
        self._head_bytes = head_bytes
        self._begun = begun
        self._head = bytearray()
        self._kept = bytearray()
        self._frame_action = FrameAction()
        self._passed = self._left = 0

    def pieces(self, chunk: bytes) -> Iterator[Piece]:
        view = memoryview(chunk)
        while view:
            if self._left:
                part, view = view[: self._left], view[self._left :]
                yield from self._take(part)
                continue
            missing = self._head_bytes - len(self._head)
            self._head += view[:missing]
            view = view[missing:]
            if len(self._head) == self._head_bytes:
                head = bytes(self._head)
                self._head.clear()
                self._passed, self._left = 0, frame_bytes(head)
                self._frame_action = self._begun(head)
                yield from self._take(memoryview(head))

    def _take(self, part: memoryview) -> Iterator[Piece]:
        action, before = self._frame_action, self._passed
        self._passed += len(part)
        self._left -= len(part)
        if action.rewrite is not None:
            self._kept += part
            if not self._left:
                frame = bytes(self._kept)
                self._kept.clear()
                yield Piece(action.rewrite(frame))
        elif action.stop_at is None:
            yield Piece(part, None if self._left else action.then)
        elif self._passed < action.stop_at:
            yield Piece(part)
        else:
            kept = max(0, action.stop_at - before)
            then, action.then = action.then, None
            yield Piece(part[:kept], then)
            if action.keeps_rest:
                yield Piece(part[kept:])


def frame_bytes(head: bytes) -> int:
    """Return the frame's size including the four bytes of its length."""
    return int(struct.unpack_from(">i", head)[0]) + 4
