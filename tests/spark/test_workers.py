"""What workers are sent, and what they do when they can't read: the driver hears the error as it was, with
its way out.
"""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.errors import SecretMissing, Unreachable
from kraft_runbook.metadata.canonical_rows import Kind, Row
from kraft_runbook.parity.spark.arrow_rows import BATCH, FAILED, ROW_SCHEMA, row_batches_of_a_worker
from kraft_runbook.parity.spark.parallel_read import read_tree
from kraft_runbook.parity.spark.payload import Sealed
from kraft_runbook.parity.spark.worker import Work


def spec() -> ClusterSpec:
    node = {"host": "127.0.0.1", "service": "s", "config_file": "/c"}
    return ClusterSpec.model_validate(
        {
            "name": "none",
            "kafka": {"version": "3.9.2", "home": "/k"},
            "zookeeper": {"servers": ["127.0.0.1:1"]},
            "brokers": [
                node | {"id": 1, "listeners": [{"name": "PLAINTEXT", "port": 2}], "log_dirs": ["/d"], "metrics_port": 3}
            ],
            "controllers": [node | {"id": 101, "port": 4, "log_dir": "/d", "metrics_port": 5}],
            "reach": {"kind": "local"},
            "service_manager": {"kind": "systemd"},
            "secrets_file": "/s",
            "secrets": {"password.encoder.secret": {"env": "ENCODER"}},
        }
    )


def no_secret(ref: SecretRef) -> str:
    raise SecretMissing(f"{ref} is not set", way_out="export it")


def test_rows_come_in_batches_and_a_failure_comes_last() -> None:
    def rows() -> Iterator[Row]:
        for n in range(BATCH + 5):
            yield Row(Kind.TOPIC, f"[{n}]", "{}")
        raise Unreachable("ZooKeeper went away", way_out="bring it back")

    first, second = row_batches_of_a_worker(rows())
    assert (first.num_rows, second.num_rows) == (BATCH, 6)
    last = second.to_pylist()[-1]
    assert (last["kind"], json.loads(last["value"])) == (
        FAILED,
        {"problem": "ZooKeeper went away", "way_out": "bring it back"},
    )


@pytest.mark.parametrize("letter", ["x", "ü", "日"])
def test_rows_come_as_they_are_and_pandas_is_not_needed(letter: str) -> None:
    rows = [Row(Kind.TOPIC, f'["{letter}{n}"]', letter * n, f"/{letter}" * (n % 3)) for n in range(20)]
    (batch,) = row_batches_of_a_worker(rows)
    batch.validate(full=True)
    assert batch.to_pylist() == [
        {"kind": "topic", "key": row.key, "value": row.value, "path": row.path} for row in rows
    ]
    script = (
        "import sys; from kraft_runbook.parity.spark.arrow_rows import *; from kraft_runbook.metadata.canonical_rows"
        " import *;list(row_batches_of_a_worker([acl('a', 'b', 'c', 'd', 'e', 'f', 'g')])); sys.exit('pandas' in"
        " sys.modules)"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_worker_is_sent_the_cluster_and_its_secrets_and_shows_none() -> None:
    work = Work(Sealed.of(spec(), secrets=lambda ref: f"value of {ref}", salt=b"salt"), [("a",)])
    back = pickle.loads(pickle.dumps(work))
    assert back == work
    assert back.sealed.decoding.encoder_secret == "value of environment variable ENCODER"
    assert "value of" not in repr(work)


def test_no_secret_is_in_what_spark_shows_or_logs_of_the_job(spark: SparkSession) -> None:
    work = Work(Sealed.of(spec(), secrets=lambda ref: f"value of {ref}", salt=b"salt"), [])
    frame = spark.range(1).mapInArrow(work.read, ROW_SCHEMA)
    shown = frame._jdf.queryExecution().toString()
    assert "MapInArrow" in shown
    assert "value of" not in shown


def test_an_encoder_secret_that_does_not_resolve_is_told_and_stops_nothing() -> None:
    sealed = Sealed.of(spec(), secrets=no_secret, salt=b"salt")
    assert sealed.decoding.encoder_secret is None
    assert "environment variable ENCODER is not set" in sealed.decoding.why_no_encoder_secret


def test_a_connection_secret_that_does_not_resolve_is_an_error() -> None:
    secured = ZooKeeper.model_validate(
        {
            "servers": ["127.0.0.1:1"],
            "security": {
                "protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "DIGEST-MD5",
                "username": "u",
                "password": {"env": "ZK_PASSWORD"},
            },
        }
    )
    with pytest.raises(SecretMissing, match="ZK_PASSWORD"):
        Sealed.of(spec().model_copy(update={"zookeeper": secured}), secrets=no_secret, salt=b"salt")


def test_a_worker_that_finds_no_server_tells_the_driver(spark: SparkSession) -> None:
    work = Work(Sealed.of(spec(), secrets=no_secret, salt=b"salt"), [("a",)])
    (row,) = spark.range(0, 1, 1, 1).mapInArrow(work.read, ROW_SCHEMA).collect()
    assert row["kind"] == FAILED
    assert "ZooKeeper at 127.0.0.1:1 could not be read" in json.loads(row["value"])["problem"]


def test_a_driver_that_finds_no_server_says_so(spark: SparkSession) -> None:
    with pytest.raises(Unreachable, match="could not be read"):
        read_tree(spark, Sealed.of(spec(), secrets=no_secret, salt=b"salt"))
