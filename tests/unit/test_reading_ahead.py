"""How much a reader asks of a ZooKeeper server at once: a few requests ahead, each no larger than a reply should be.
The server is a fake that counts what it has not answered yet.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

from kraft_runbook.io.zookeeper.reader import IN_FLIGHT, TARGET_REPLY_BYTES, ZookeeperReader

ZNODE_BYTES = 2000
"""What one znode's reply weighs."""


class Server:
    """``open``: requests without an answer; ``most``: the most there were; ``replies``: their bytes."""

    def __init__(self) -> None:
        self.open = self.most = 0
        self.replies: list[int] = []
        self.handler = SimpleNamespace(async_result=lambda: SimpleNamespace(get=None))

    def _call(self, request: Any, answer: Any) -> None:
        self.open += 1
        self.most = max(self.most, self.open)

        def get(*, timeout: float) -> list[int]:
            self.open -= 1
            request._request.reply_bytes = ZNODE_BYTES * len(request.items)
            self.replies.append(request.reply_bytes)
            return list(request.items)

        answer.get = get


def read(server: Server, count: int, *, rate: float | None = None, sleep: Any = time.sleep) -> list[int]:
    reader: Any = ZookeeperReader.__new__(ZookeeperReader)  # without a session: this is about its requests
    reader._session = SimpleNamespace(client=server, timeout=1.0)
    reader._rate, reader._next_request, reader._sleep = rate, 0.0, sleep

    def make(start: int, size: int) -> tuple[int, Any]:
        end = min(count, start + size)
        return end, SimpleNamespace(items=range(start, end), reply_bytes=0, request_bytes=0)

    found = reader._batches(count, make, str, most=100_000)
    return [each for _, _, results in found for each in results]


def test_a_few_requests_are_ahead_and_never_more() -> None:
    server = Server()
    assert read(server, 20_000) == list(range(20_000))
    assert server.most == IN_FLIGHT == 3 and server.open == 0


def test_a_reply_grows_to_half_a_megabyte_and_no_further() -> None:
    server = Server()
    read(server, 20_000)
    assert TARGET_REPLY_BYTES // 2 < max(server.replies) <= TARGET_REPLY_BYTES


def test_with_a_rate_a_request_is_a_tenth_of_a_second_long() -> None:
    slept: list[float] = []
    server = Server()
    read(server, 2_000, rate=1_000, sleep=slept.append)
    assert max(server.replies) == 100 * ZNODE_BYTES
    assert len(slept) >= 15, "each waits for its turn"
