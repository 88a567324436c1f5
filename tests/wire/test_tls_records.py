"""Where TLS records end, told from the ciphertext alone."""

from __future__ import annotations

import ssl

from hypothesis import given
from hypothesis import strategies as st

from legato.wire.tls import Tls


def _record(size: int) -> bytes:
    return b"\x17\x03\x03" + size.to_bytes(2) + b"x" * size


@given(st.lists(st.integers(0, 400), min_size=1, max_size=5), st.data())
def test_a_cut_is_inside_a_record_unless_it_is_at_an_end(
    sizes: list[int], data: st.DataObject
) -> None:
    records = [_record(size) for size in sizes]
    whole = b"".join(records)
    ends = {sum(map(len, records[: n + 1])) for n in range(len(records))}
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole)), min_size=1)))
    tls = Tls(ssl.create_default_context(), "localhost")
    position = 0
    for cut in cuts:
        tls._take(whole[position:cut])
        assert tls.inside_record == (cut not in ends)
        position = cut
