"""What the members of a group have handed out, judged partition by partition in Spark: for logs that one process would
not hold. The rule is ``groups.proof.judge``; Spark reads the logs and brings each partition's records together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kraft_runbook.errors import Refused
from kraft_runbook.groups.proof import Bounds, ConsumptionProof, HandedOut, PartitionProof, judge
from kraft_runbook.parity.spark.session import session

LINE = "topic STRING, partition INT, offset LONG, member STRING, at DOUBLE"
PROOF = pa.schema([("proof", pa.string())])


def prove_in_spark(
    logs: Sequence[Path], bounds: Bounds | None = None, *, spark: SparkSession | None = None
) -> ConsumptionProof:
    """The same as ``groups.proof.prove`` of the logs' lines. ``spark``: None for a local session of this call's own.
    Raises Refused where a log can't be read, or a line holds no record.
    """
    with session(spark) as ready:
        try:
            lines = ready.read.schema(LINE).option("mode", "FAILFAST").json([str(each.resolve()) for each in logs])
            rows = lines.groupBy("topic", "partition").applyInArrow(_judging(bounds), "proof STRING").collect()
        except (PySparkException, Py4JError) as error:
            raise Refused(
                f"the logs can't be read, or a line is no record that was handed out ({type(error).__name__})",
                way_out="run it without --spark: it names the file and the line",
            ) from None
    found = [PartitionProof.from_dict(json.loads(row.proof)) for row in rows]
    seen = {(each.topic, each.partition) for each in found}
    found += [judge(topic, number, (), bounds) for topic, number in (bounds or {}).keys() - seen]
    return ConsumptionProof.of(found, bounded=bounds is not None)


def _judging(bounds: Bounds | None) -> Callable[[pa.Table], pa.Table]:
    def judged(rows: pa.Table) -> pa.Table:
        records = [HandedOut(**each) for each in rows.to_pylist()]
        one = records[0]
        if any(None in (each.topic, each.partition, each.offset, each.member) for each in records):
            raise ValueError("a line names no topic, partition, offset or member")
        proof = judge(one.topic, one.partition, records, bounds)
        return pa.Table.from_pylist([{"proof": json.dumps(proof.to_dict())}], PROOF)

    return judged
