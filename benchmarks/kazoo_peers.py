"""The tree read with kazoo as a script reads it, one znode a request, in one process and in two: peers of the parity
benchmarks.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

from kazoo.client import KazooClient

from benchmarks.facts import Done, Facts, Summary, joined, summary_of_facts
from benchmarks.scale.cluster import Plan, load_spec

WINDOW = 1000
"""Reads that the asynchronous peer keeps in flight."""


def loop(plan: Plan, *, sample: int | None = None) -> Done:
    """kazoo's ``get`` in a loop: the topics' names, then znode by znode. What a first script does.

    ``sample``: only so many znodes, of topics spread over all, and the time extrapolated to the rest; said in the note.
    Only for sizes where the loop takes hours.
    """
    return _extrapolated(plan, *_kazoo(plan, _get_one_by_one, sample))


def windowed(plan: Plan) -> Done:
    """kazoo's ``get_async`` with a window of 1000 requests in flight: what a good script does."""
    return _extrapolated(plan, *_kazoo(plan, _get_windowed, None))


def loop_in_two(plan: Plan, *, sample: int | None = None) -> Done:
    """The loop in two processes, each with a client of its own and every second topic."""
    return _in_two(plan, _get_one_by_one, sample)


def windowed_in_two(plan: Plan) -> Done:
    """``get_async`` in two processes, each with its own window."""
    return _in_two(plan, _get_windowed, None)


Getter = Callable[[KazooClient, Iterator[str]], Iterator[tuple[str, bytes]]]


def _kazoo(plan: Plan, get: Getter, sample: int | None) -> tuple[Facts, float, int, int]:
    """The facts, the seconds, how many znodes were read, and how many the whole tree has."""
    with _connected(plan) as client:
        began = time.perf_counter()
        names = _topics(client)
        listed = time.perf_counter() - began
        chosen = _chosen(plan, names, sample)
        facts, read = _read(client, get, chosen)
        took = time.perf_counter() - began
    whole = round(read * len(names) / len(chosen))
    return facts, listed + (took - listed) * whole / read, read, whole


def loop_facts(plan: Plan, sample: int | None) -> tuple[Facts, float, int, int]:
    """What the loop gives a script that goes on with it: the facts, the seconds, how many znodes were read, and how
    many the whole tree has.
    """
    return _kazoo(plan, _get_one_by_one, sample)


def loop_facts_in_two(plan: Plan, sample: int | None) -> tuple[Facts, float, int, int]:
    """The same by two processes, which send their dicts to this one."""
    halves, listed, took, whole = _halves(plan, _get_one_by_one, sample, with_facts=True)
    read = sum(half.read for half in halves)
    facts = Facts()
    for half in halves:
        assert half.facts is not None
        facts.ids |= half.facts.ids
        facts.partitions |= half.facts.partitions
        facts.configs |= half.facts.configs
    return facts, listed + (took - listed) * whole / read, read, whole


def _in_two(plan: Plan, get: Getter, sample: int | None) -> Done:
    halves, listed, took, whole = _halves(plan, get, sample)
    read = sum(half.read for half in halves)
    seconds = listed + (took - listed) * whole / read
    if read < whole:
        return Done(seconds, None, f"extrapolated from {read} of {whole} znodes")
    return Done(seconds, joined(half.summary for half in halves), f"{read} znodes")


def _halves(
    plan: Plan, get: Getter, sample: int | None, *, with_facts: bool = False
) -> tuple[list[Half], float, float, int]:
    """Two processes read, which are connected when the clock starts; it stops when the later one has its dicts
    (``with_facts``: when both are here).

    Gives what each has, the seconds until the names were listed and until all was read, and how many znodes the whole
    tree has.
    """
    with ProcessPoolExecutor(2, get_context("spawn")) as pool, _connected(plan) as client:
        list(pool.map(_connect_here, [plan, plan]))
        began = time.perf_counter()
        names = _topics(client)
        listed = time.perf_counter() - began
        chosen = _chosen(plan, names, sample)
        halves = list(pool.map(_read_half, [(plan, get, chosen[half::2], with_facts) for half in (0, 1)]))
        ended = time.perf_counter() if with_facts else max(half.ended for half in halves)
    return halves, listed, ended - began, round(sum(half.read for half in halves) * len(names) / len(chosen))


@dataclass(frozen=True, slots=True)
class Half:
    """What one of two processes read. ``ended``: by the clock that all processes of a machine share. ``facts``: where
    they are asked for.
    """

    summary: Summary
    read: int
    ended: float
    facts: Facts | None


_HERE: list[KazooClient] = []
"""The client of this process, where it is one of two."""


def _connect_here(plan: Plan) -> None:
    if not _HERE:
        _HERE.append(_started(plan))
    time.sleep(0.5)  # so that the pool gives the other call to the other process


def _read_half(asked: tuple[Plan, Getter, Sequence[str], bool]) -> Half:
    plan, get, names, with_facts = asked
    facts, read = _read(_HERE[0], get, names)
    ended = time.perf_counter()
    return Half(summary_of_facts(facts, plan.shape.topics), read, ended, facts if with_facts else None)


def _started(plan: Plan) -> KazooClient:
    client = KazooClient(hosts=load_spec(plan).zookeeper.connect, timeout=30)
    client.start(30)
    return client


@contextmanager
def _connected(plan: Plan) -> Iterator[KazooClient]:
    client = _started(plan)
    try:
        yield client
    finally:
        client.stop()
        client.close()


def _topics(client: KazooClient) -> list[str]:
    return sorted(client.get_children("/brokers/topics"))


def _chosen(plan: Plan, names: list[str], sample: int | None) -> list[str]:
    return names if sample is None else names[:: max(1, len(names) * (plan.shape.a_topic + 2) // sample)]


def _read(client: KazooClient, get: Getter, chosen: Sequence[str]) -> tuple[Facts, int]:
    """The facts of these topics, and how many znodes they took."""
    facts, read = Facts(), 0
    topics = {
        path.rpartition("/")[2]: json.loads(data)
        for path, data in get(client, (f"/brokers/topics/{name}" for name in chosen))
    }
    read += len(topics)
    facts.ids = {name: topic["topic_id"] for name, topic in topics.items()}
    states = (
        f"/brokers/topics/{name}/partitions/{number}/state"
        for name, topic in topics.items()
        for number in topic["partitions"]
    )
    for path, data in get(client, states):
        _, _, _, name, _, number, _ = path.split("/")
        facts.partition(name, int(number), _partition(topics[name], number, json.loads(data)))
        read += 1
    for path, data in get(client, (f"/config/topics/{name}" for name in chosen)):
        facts.configs[path.rpartition("/")[2]] = json.loads(data)["config"]
        read += 1
    return facts, read


def _extrapolated(plan: Plan, facts: Facts, seconds: float, read: int, whole: int) -> Done:
    if read < whole:
        return Done(seconds, None, f"extrapolated from {read} of {whole} znodes")
    return Done(seconds, summary_of_facts(facts, plan.shape.topics), f"{read} znodes")


def _partition(topic: Any, number: str, state: Any) -> tuple[Any, ...]:
    return (
        tuple(topic["partitions"][number]),
        tuple(sorted(topic["adding_replicas"].get(number, ()))),
        tuple(sorted(topic["removing_replicas"].get(number, ()))),
        state["leader"],
        state["leader_epoch"],
        tuple(sorted(state["isr"])),
        state.get("leader_recovery_state", 0),
    )


def _get_one_by_one(client: KazooClient, paths: Iterator[str]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        yield path, client.get(path)[0]


def _get_windowed(client: KazooClient, paths: Iterator[str]) -> Iterator[tuple[str, bytes]]:
    flying: deque[tuple[str, Any]] = deque()
    for path in paths:
        if len(flying) >= WINDOW:
            first, answer = flying.popleft()
            yield first, answer.get()[0]
        flying.append((path, client.get_async(path)))
    while flying:
        first, answer = flying.popleft()
        yield first, answer.get()[0]
