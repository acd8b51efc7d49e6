"""What one would do without this project, each as well as a careful person writes it: the peers of the parity benchmarks.

Each takes the harness's plan and gives a ``Done``. They produce the facts of ``benchmarks.facts``, which are held against ours in the same run.
``datacompy`` and ``duckdb`` come from benchmarks/requirements.txt; nothing else here needs them.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import time
import zipfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from kafka.protocol.schemas import StructField
from kafka.record import MemoryRecords
from kazoo.client import KazooClient

from benchmarks.facts import CAMEL, SNAKE, Facts, LogScript, Summary, differences, summary_of_facts
from benchmarks.scale.cluster import Plan, load_spec
from benchmarks.scale.processes import JVM
from kraft_runbook.clients.metadata_log_reader import MetadataLogReader
from kraft_runbook.clients.metadata_quorum import describe_quorum
from kraft_runbook.clients.secrets import environment_secrets
from kraft_runbook.errors import StepFailed
from kraft_runbook.metadata.entities import kafka_uuid
from kraft_runbook.metadata.log_chunks import Chunk
from lab.installation import JARS, TEMPLATES, java

WINDOW = 1000
"""Reads that the asynchronous peer keeps in flight."""


@dataclass(frozen=True, slots=True)
class Done:
    """``seconds``: of the work itself, imports and connecting left out; ``note``: what must be said beside the figure. ``summary`` None: not whole (sampled)."""

    seconds: float
    summary: Summary | None
    note: str = ""


# -- ZooKeeper ------------------------------------------------------------------------------------------------------------


def kazoo_loop(plan: Plan, *, sample: int | None = None) -> Done:
    """kazoo's ``get`` in a loop: the topics' names, then znode by znode. What a first script does.

    ``sample``: only so many znodes, of topics spread over all, and the time extrapolated to the rest; said in the note. Only for sizes where the loop takes hours.
    """
    return _extrapolated(plan, *_kazoo(plan, _get_one_by_one, sample))


def kazoo_async(plan: Plan) -> Done:
    """kazoo's ``get_async`` with a window of 1000 requests in flight: what a good script does."""
    return _extrapolated(plan, *_kazoo(plan, _get_windowed, None))


Getter = Callable[[KazooClient, Iterator[str]], Iterator[tuple[str, bytes]]]


def _kazoo(plan: Plan, get: Getter, sample: int | None) -> tuple[Facts, float, int, int]:
    """The facts, the seconds, how many znodes were read, and how many the whole tree has."""
    client = KazooClient(hosts=load_spec(plan).zookeeper.connect, timeout=30)
    client.start(30)
    try:
        began = time.perf_counter()
        names = sorted(client.get_children("/brokers/topics"))
        listed = time.perf_counter() - began
        a_topic = plan.shape.a_topic + 2
        chosen = names if sample is None else names[:: max(1, len(names) * a_topic // sample)]
        facts, read = Facts(), 0
        topics = {path.rpartition("/")[2]: json.loads(data) for path, data in get(client, (f"/brokers/topics/{name}" for name in chosen))}
        read += len(topics)
        facts.ids = {name: topic["topic_id"] for name, topic in topics.items()}
        states = (f"/brokers/topics/{name}/partitions/{number}/state" for name, topic in topics.items() for number in topic["partitions"])
        for path, data in get(client, states):
            _, _, _, name, _, number, _ = path.split("/")
            facts.partition(name, int(number), _partition(topics[name], number, json.loads(data)))
            read += 1
        for path, data in get(client, (f"/config/topics/{name}" for name in chosen)):
            facts.configs[path.rpartition("/")[2]] = json.loads(data)["config"]
            read += 1
        took = time.perf_counter() - began
    finally:
        client.stop()
        client.close()
    whole = round(read * len(names) / len(chosen))
    return facts, listed + (took - listed) * whole / read, read, whole


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


# -- the metadata log -----------------------------------------------------------------------------------------------------

_DUMPED = re.compile(rb"payload: (\{.*\})$")


def dump_log(plan: Plan) -> Done:
    """``kafka-dump-log.sh --cluster-metadata-decoder`` over the controller's own files, its output parsed as it comes.

    It must run on the controller's host, and shows what is not committed too.
    """
    facts, seconds, lines = read_dump(plan)
    return Done(seconds, summary_of_facts(facts, plan.shape.topics), f"{lines} lines of output")


def read_dump(plan: Plan) -> tuple[Facts, float, int]:
    """The facts, the seconds (the tool's start included: it is part of every use), and the lines that it printed."""
    began, lines = time.perf_counter(), 0
    script = LogScript(CAMEL)
    options = ["-Xmx1g", f"-Dlog4j.configuration=file:{TEMPLATES / 'tools-log4j.properties'}", "-cp", f"{JARS}/*"]
    files = ",".join(map(str, metadata_files(plan)))
    command = [str(java()), *JVM, *options, "kafka.tools.DumpLogSegments", "--cluster-metadata-decoder", "--files", files]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as tool:
        assert tool.stdout is not None
        for line in tool.stdout:
            lines += 1
            if match := _DUMPED.search(line):
                record = json.loads(match[1])
                script.take(record["type"], record["data"])
    if tool.returncode:
        raise StepFailed(f"kafka-dump-log failed with exit code {tool.returncode}", way_out="run it by hand over the controller's files")
    return script.facts, time.perf_counter() - began, lines


def metadata_files(plan: Plan) -> Sequence[Path]:
    """The files that together hold the state: all segments when the first begins at 0, else the newest checkpoint and the segments from there."""
    leader = describe_quorum(load_spec(plan), secrets=environment_secrets({})).leader_id
    directory = Path(load_spec(plan).controller(leader).log_dir) / "__cluster_metadata-0"
    segments = sorted(directory.glob("*.log"))
    if int(segments[0].stem) == 0:
        return segments
    raise StepFailed(
        f"the first segment in {directory} is {segments[0].name}: kafka-dump-log would need a checkpoint and a cut tail",
        way_out="make the cluster anew, and measure before segments are deleted",
    )


def generic_decoder(plan: Plan) -> Done:
    """kafka-python's own decoders, ``MemoryRecords`` and ``StructField``, over the bytes that our reader fetches, with the schemas of Kafka's jar."""
    spec, secrets = load_spec(plan), environment_secrets({})
    decoders = generic_decoders()
    began = time.perf_counter()
    script = LogScript(SNAKE)
    quorum = describe_quorum(spec, secrets=secrets)
    with MetadataLogReader(spec, quorum.leader_id, quorum.leader_epoch, secrets=secrets, timeout=60) as reader:
        for chunk in reader.chunks(end=quorum.high_watermark - 1):
            for kind, data in generic_records(chunk, decoders):
                script.take(kind, data)
    took = time.perf_counter() - began
    return Done(took, summary_of_facts(script.facts, plan.shape.topics), f"{script.records} records")


Decoders = dict[int, tuple[str, StructField]]


def generic_decoders() -> Decoders:
    """By api key: the record's name as kafka-dump-log prints it, and its decoder."""
    found: Decoders = {}
    with zipfile.ZipFile(next(JARS.glob("kafka-metadata-*.jar"))) as jar:
        for name in jar.namelist():
            if name.startswith("common/metadata/") and name.endswith("Record.json"):
                schema = json.loads(re.sub(r"(?m)^\s*//.*\n?", "", jar.read(name).decode()))
                for each in schema["fields"]:
                    if "tag" in each:
                        each["tag"] = int(each["tag"])  # RegisterBrokerRecord writes it as text, which kafka-python can't take
                if schema["fields"]:  # nor records without fields: NoOp and EndTransaction
                    found[schema["apiKey"]] = (re.sub(r"(?<!^)(?=[A-Z])", "_", schema["name"]).upper(), StructField(schema))
    return found | {24: ("END_TRANSACTION_RECORD", None)}


def generic_records(chunk: Chunk, decoders: Decoders) -> Iterator[tuple[str, dict[str, Any]]]:
    """The records of one chunk."""
    batches = MemoryRecords(chunk.data)
    while (batch := batches.next_batch()) is not None:
        if batch.is_control_batch:
            continue
        for record in batch:
            if chunk.snapshot is None and not chunk.since <= record.offset <= chunk.up_to:
                continue
            value = io.BytesIO(record.value)
            _, api_key, version = _uvarint(value), _uvarint(value), _uvarint(value)
            if api_key not in decoders:
                continue
            kind, decoder = decoders[api_key]
            data = {} if decoder is None else decoder.decode(value, version=version, compact=True, tagged=True)
            if isinstance(data.get("topic_id"), UUID):
                data["topic_id"] = kafka_uuid(data["topic_id"])
            yield kind, data


def _uvarint(value: io.BytesIO) -> int:
    found = shift = 0
    while True:
        byte = value.read(1)[0]
        found |= (byte & 0x7F) << shift
        if byte < 0x80:
            return found
        shift += 7


# -- comparing, and everything together -------------------------------------------------------------------------------------


def dict_diff_gate(plan: Plan, *, sample: int | None = None) -> Done:
    """The whole gate by script: kazoo's loop, kafka-dump-log, and a diff of two dicts. Only its loop may be extrapolated (``sample``)."""
    tree, loop, read, whole = _kazoo(plan, _get_one_by_one, sample)
    log, dump, _ = read_dump(plan)
    began = time.perf_counter()
    if read < whole:
        found = differences(log, log)
        note = f"its loop of {loop:.0f} s is extrapolated from {read} of {whole} znodes; the diff is of the log with itself"
    else:
        found = differences(tree, log)
        note = f"{found} differences; loop {loop:.1f} s, dump {dump:.1f} s"
    diff = time.perf_counter() - began
    return Done(loop + dump + diff, summary_of_facts(log, plan.shape.topics), f"{note}; diff {diff:.2f} s")
