"""Servers that answer a controller's calls as a broker would, and do nothing: without an answer the controllers log
each failed request in full.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable

from kraft_runbook.cluster.spec_nodes import Broker

LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA = 4, 5, 6
_LIMIT = 4 * 1024 * 1024


def done(api_key: int, correlation_id: int) -> bytes:
    """The answer "no error" to one of the three calls, in the flexible versions that 3.9 sends (LeaderAndIsr v7,
    StopReplica v4, UpdateMetadata v8).
    """
    body = struct.pack("!iBh", correlation_id, 0, 0) + (b"" if api_key == UPDATE_METADATA else b"\x01") + b"\x00"
    return struct.pack("!i", len(body)) + body


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer one connection's requests; an unknown one ends it. Bodies are read and dropped."""
    try:
        while True:
            length, api_key, _, correlation_id = struct.unpack("!ihhi", await reader.readexactly(12))
            left = length - 8
            while left:
                left -= len(await reader.readexactly(min(left, 1024 * 1024)))
            if api_key not in (LEADER_AND_ISR, STOP_REPLICA, UPDATE_METADATA):
                print(f"a request with api key {api_key}, which a stand-in has no answer to", flush=True)
                return
            writer.write(done(api_key, correlation_id))
            await writer.drain()
    except (asyncio.IncompleteReadError, ConnectionError):
        return
    finally:
        writer.close()


async def listen(brokers: Iterable[Broker]) -> list[asyncio.Server]:
    """A server at each broker's first listener. Raises OSError where one is taken."""
    return [
        await asyncio.start_server(serve, broker.host, broker.listeners[0].port, limit=_LIMIT) for broker in brokers
    ]
