"""Kafka's default partitioner for keyed records: murmur2, made positive, modulo the partitions.

Connect's offsets topic is written with it, so that a key's newest record is where Java would put it.
"""

from typing import Final

_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_UINT32: Final = 0xFFFFFFFF


def murmur2(data: bytes) -> int:
    """The hash of `org.apache.kafka.common.utils.Utils.murmur2`, a signed 32-bit number."""
    h = _SEED ^ len(data)
    whole = len(data) & ~3
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * _M & _UINT32
        k = (k ^ k >> 24) * _M & _UINT32
        h = h * _M & _UINT32 ^ k
    if len(data) > whole:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _M & _UINT32
    h = (h ^ h >> 13) * _M & _UINT32
    h ^= h >> 15
    return h - (1 << 32) if h >> 31 else h


def partition_for_key(key: bytes, partitions: int) -> int:
    """The partition that Kafka's producers choose for a record with this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions
