"""Two threads that get the first answer of a kind at the same moment can both read it, and every later one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from kafka.protocol.admin import DescribeQuorumResponse
from kafka.protocol.schemas import StructField

from kraft_runbook.io.kafka import compiling, connection

LATE = 0.5
"""Seconds that a thread waits for the other one, which may be kept out."""
ANSWER = bytes(DescribeQuorumResponse(version=2, error_code=0, error_message=None, topics=[], nodes=[]).encode())


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two threads compile: the first ends between the second one's change of the structure and its look at it."""
    structure = DescribeQuorumResponse._struct
    order, second_in, first_out = iter(("first", "second")), threading.Event(), threading.Event()
    fields = structure.untagged_fields

    def untagged_fields(version: int) -> object:
        who = next(order, "later")
        if who == "first":
            second_in.wait(LATE)
        elif who == "second":
            second_in.set()
            first_out.wait(LATE)
        return fields(version)

    monkeypatch.setattr(structure, "_compiled_encoders", {})
    monkeypatch.setattr(structure, "_data_class", structure.data_class)
    monkeypatch.setattr(structure, "untagged_fields", untagged_fields)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(DescribeQuorumResponse.decode, ANSWER, version=2)
        first.add_done_callback(lambda _: first_out.set())
        pool.submit(DescribeQuorumResponse.decode, ANSWER, version=2)
    yield


def test_who_asks_kafkas_nodes_compiles_one_at_a_time() -> None:
    assert connection.compile_one_at_a_time is compiling.compile_one_at_a_time
    assert StructField.compiled_decode_from is compiling._locked


def test_a_kind_of_answer_stays_readable(together: None) -> None:
    assert DescribeQuorumResponse.decode(ANSWER, version=2).error_code == 0
