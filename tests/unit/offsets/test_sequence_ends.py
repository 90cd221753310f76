"""Ends of sequences: what follows the n-th record, whatever gaps, jumps and leader epochs are between."""

import json
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparkmirror.batches.record_batch import SEQUENCE_MODULUS
from sparkmirror.offsets.sequence_ends import (
    EncodedEnds,
    NoSuchEndError,
    SequenceEnd,
    columns_of,
    decode_ends,
    encode_ends,
    end_behind,
    join_ends,
)

ENDS = st.lists(st.tuples(*[st.integers(-1, 2**60)] * 3).map(SequenceEnd._make))


def test_sequences_that_start_again_at_0_are_found() -> None:
    ends = (SequenceEnd(SEQUENCE_MODULUS - 2, 70, 1), SequenceEnd(SEQUENCE_MODULUS + 1, 80, 1))
    assert end_behind(ends, SEQUENCE_MODULUS - 1).offset == 71
    assert end_behind(ends, 0).offset == 72
    assert end_behind(ends, 3).offset == 82


def test_an_end_before_all_that_are_known_is_an_error() -> None:
    with pytest.raises(NoSuchEndError):
        end_behind((SequenceEnd(10, 70),), 9)


@given(ENDS)
def test_ends_are_decoded_as_they_were(ends: list[SequenceEnd]) -> None:
    assert decode_ends(json.loads(encode_ends(ends))) == tuple(ends)


@given(ENDS, st.randoms(use_true_random=False))
def test_ends_that_are_encoded_in_pieces_are_the_same(ends: list[SequenceEnd], rng: random.Random) -> None:
    cuts = [0, *sorted(rng.sample(range(1, len(ends)), rng.randrange(len(ends)))), len(ends)] if ends else []
    ways = (EncodedEnds.of_few, lambda piece: EncodedEnds.of(columns_of(piece)))
    pieces = [rng.choice(ways)(ends[begin:end]) for begin, end in pairwise(cuts)]
    assert join_ends(pieces) == encode_ends(ends)
