"""What one would do without this project, each as well as a careful person writes it: the peers of the parity
benchmarks.

Each takes the harness's plan and gives a ``Done``. They produce the facts of ``benchmarks.facts``, which are held
against ours in the same run. ``datacompy`` and ``duckdb`` come from benchmarks/requirements.txt; nothing else here
needs them.
"""

from __future__ import annotations

import io
import json
import re
import subprocess
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from kafka.protocol.schemas import StructField
from kafka.record import MemoryRecords

from benchmarks.facts import CAMEL, SNAKE, Done, Facts, LogScript, differences, summary_of_facts
from benchmarks.kazoo_peers import loop_facts, loop_facts_in_two
from benchmarks.scale.cluster import Plan, load_spec
from benchmarks.scale.processes import JVM
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.kafka.metadata_log_reader import MetadataLogReader
from kraft_runbook.io.kafka.metadata_quorum import describe_quorum
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.metadata.canonical_rows import kafka_uuid
from kraft_runbook.metadata.log.log_chunks import Chunk
from lab.installation import JARS, TEMPLATES, java

# -- the metadata log --------------------------------------------------------------------------------------------------

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
    command = [
        str(java()),
        *JVM,
        *options,
        "kafka.tools.DumpLogSegments",
        "--cluster-metadata-decoder",
        "--files",
        files,
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as tool:
        assert tool.stdout is not None
        for line in tool.stdout:
            lines += 1
            if match := _DUMPED.search(line):
                record = json.loads(match[1])
                script.take(record["type"], record["data"])
    if tool.returncode:
        raise StepFailed(
            f"kafka-dump-log failed with exit code {tool.returncode}",
            way_out="run it by hand over the controller's files",
        )
    return script.facts, time.perf_counter() - began, lines


def metadata_files(plan: Plan) -> Sequence[Path]:
    """The files that together hold the state: all segments when the first begins at 0, else the newest checkpoint and
    the segments from there.
    """
    leader = describe_quorum(load_spec(plan), secrets=environment_secrets({})).leader_id
    directory = Path(load_spec(plan).controller(leader).log_dir) / "__cluster_metadata-0"
    segments = sorted(directory.glob("*.log"))
    if int(segments[0].stem) == 0:
        return segments
    raise StepFailed(
        f"the first segment in {directory} is {segments[0].name}: kafka-dump-log would need a checkpoint and a cut"
        " tail",
        way_out="make the cluster anew, and measure before segments are deleted",
    )


def generic_decoder(plan: Plan) -> Done:
    """kafka-python's own decoders, ``MemoryRecords`` and ``StructField``, over the bytes that our reader fetches, with
    the schemas of Kafka's jar.
    """
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
                        each["tag"] = int(
                            each["tag"]
                        )  # RegisterBrokerRecord writes it as text, which kafka-python can't take
                if schema["fields"]:  # nor records without fields: NoOp and EndTransaction
                    found[schema["apiKey"]] = (
                        re.sub(r"(?<!^)(?=[A-Z])", "_", schema["name"]).upper(),
                        StructField(schema),
                    )
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


# -- comparing, and everything together --------------------------------------------------------------------------------


def dict_diff_gate(plan: Plan, *, sample: int | None = None) -> Done:
    """The whole gate by script: kazoo's loop, kafka-dump-log, and a diff of two dicts. Only its loop may be
    extrapolated (``sample``).
    """
    return _dict_diff_gate(plan, *loop_facts(plan, sample))


def dict_diff_gate_in_two(plan: Plan, *, sample: int | None = None) -> Done:
    """The same, its loop in two processes, which send their dicts to the one that compares."""
    return _dict_diff_gate(plan, *loop_facts_in_two(plan, sample))


def _dict_diff_gate(plan: Plan, tree: Facts, loop: float, read: int, whole: int) -> Done:
    log, dump, _ = read_dump(plan)
    began = time.perf_counter()
    if read < whole:
        found = differences(log, log)
        note = (
            f"its loop of {loop:.0f} s is extrapolated from {read} of {whole} znodes; the diff is of the log with"
            " itself"
        )
    else:
        found = differences(tree, log)
        note = f"{found} differences; loop {loop:.1f} s, dump {dump:.1f} s"
    diff = time.perf_counter() - began
    return Done(loop + dump + diff, summary_of_facts(log, plan.shape.topics), f"{note}; diff {diff:.2f} s")
