"""gRPC is not measured: how it is recognised, and the sentence that says what to use instead."""

from __future__ import annotations

NAMES = frozenset({"grpc", "grpcs", "kserve-grpc", "triton-grpc", "kserve_grpc"})
INSTEAD = (
    "use the server's HTTP port instead, as Triton's and KServe's 8000 with --api triton,"
    " or one that speaks the OpenAI API"
)
REFUSAL = f"legato measures streams over HTTP/1.1, not gRPC: {INSTEAD}"

# What a client that speaks HTTP/2 opens with: the preface and an empty SETTINGS frame.
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
FRAME_HEAD_BYTES = 9


def is_settings_frame(data: bytes) -> bool:
    """Does this begin with the frame by which every HTTP/2 server begins?"""
    return (
        len(data) >= FRAME_HEAD_BYTES
        and int.from_bytes(data[:3], "big") % 6 == 0
        and data[3:FRAME_HEAD_BYTES] == bytes([4, 0, 0, 0, 0, 0])
    )
