"""A rehearsal of the lab's own cluster on real servers: seats, controllers, ZooKeeper. Its brokers are stood in for."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import by_hand
import pytest
from kazoo.client import KazooClient
from labs import Lab
from pyspark.sql import SparkSession

from benchmarks.scale.poison import POISONS, TOKENS
from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.evidence.kinds import Canary
from kraft_runbook.io.local.remains import remains
from kraft_runbook.parity.spark.full_comparison import run_parity
from kraft_runbook.procedures.print_tree import print_tree
from kraft_runbook.procedures.throwaway_place import own_directory, remove
from kraft_runbook.rehearsal.verdict import SHORT, WHOLE
from kraft_runbook.steps.rehearse import Ask, rehearse
from lab.installation import CLASS_ARCHIVE
from lab.layout import environment
from lab.trial import free_network


@pytest.fixture
def source(quiet_lab: Lab) -> Iterator[ClusterSpec]:
    """Its cluster file, with a place for rehearsals of its own."""
    place = Path(tempfile.mkdtemp(prefix="krb-r"))
    settings = Rehearsal(directory=str(place), network=free_network())
    yield quiet_lab.spec.model_copy(update={"rehearsal": settings})
    remove(own_directory(settings, quiet_lab.spec.name))
    shutil.rmtree(place)


def place_of(source: ClusterSpec) -> Path:
    assert source.rehearsal is not None
    return own_directory(source.rehearsal, source.name)


def rehearsed(source: ClusterSpec, lab: Lab, spark: SparkSession, *, whole: bool, keep: bool = False) -> Canary:
    told = rehearse(
        source,
        secrets=lab.secrets,
        tell=lambda line: print(time.strftime("%H:%M:%S"), line),
        ask=Ask(whole=whole, keep=keep, class_archive=CLASS_ARCHIVE, compare=partial(run_parity, spark=spark)),
    )
    print(json.dumps(told.body(), indent=1, default=str))
    if not keep:
        assert not remains(place_of(source)) and not place_of(source).exists(), "nothing is left"
    return told


def secrets_of(lab: Lab, zookeeper: KazooClient) -> set[bytes]:
    """The lab's secrets, and every salt, key and encoded password in its tree."""
    held = {value.encode() for name, value in environment(lab.spec).items() if "SECRET" in name}
    for path in ("/config/users", "/config/brokers"):
        for name in zookeeper.get_children(path):
            config = json.loads(zookeeper.get(f"{path}/{name}")[0])["config"]
            for key, value in config.items():
                if key.startswith("SCRAM"):
                    held |= set(re.findall(rb"(?:salt|stored_key|server_key)=([^,]+)", value.encode()))
                elif "encodedPassword" in value or "password" in key:
                    held.add(value.encode())
    return held


def test_forward_and_back_with_the_labs_own_metadata(
    source: ClusterSpec, quiet_lab: Lab, zookeeper: KazooClient, spark: SparkSession
) -> None:
    before = print_tree(source, secrets=quiet_lab.secrets)
    told = rehearsed(source, quiet_lab, spark, whole=False, keep=True)
    assert (told.verdict, told.reasons) == ("PASSED", ())
    assert told.rungs == tuple(each.value for each in SHORT)
    assert print_tree(source, secrets=quiet_lab.secrets) == before, "nothing was written at the source"
    assert told.measured["partitions"] > 40 and told.measured["copy"] > 0 and told.measured["window"] > 0
    secrets = secrets_of(quiet_lab, zookeeper)
    files = [path for path in place_of(source).rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(secrets) > 10 and len(files) > 50
    assert [(str(path), each) for path in files for each in secrets if each in path.read_bytes()] == []
    remove(place_of(source))
    assert not remains(place_of(source)) and not place_of(source).exists()


@pytest.mark.long
def test_the_whole_ladder(source: ClusterSpec, quiet_lab: Lab, spark: SparkSession) -> None:
    told = rehearsed(source, quiet_lab, spark, whole=True)
    assert (told.verdict, told.reasons) == ("PASSED", ())
    assert told.rungs == tuple(each.value for each in WHOLE)


@pytest.mark.long
def test_a_poisoned_znode_is_named(
    source: ClusterSpec, quiet_lab: Lab, zookeeper: KazooClient, spark: SparkSession
) -> None:
    held = bytes(zookeeper.get(by_hand.UNREADABLE)[0])
    zookeeper.set(by_hand.UNREADABLE, b"{ no JSON")
    try:
        told = rehearsed(source, quiet_lab, spark, whole=False)
    finally:
        zookeeper.set(by_hand.UNREADABLE, held)
    assert told.verdict == "FAILED"
    kafka_says = [each for each in told.reasons if "Kafka's own copy" in each]
    assert kafka_says and by_hand.UNREADABLE in kafka_says[0], told.reasons
    assert not any("which znode ends" in each for each in told.reasons), "Kafka named it"


@pytest.mark.long
def test_a_quota_with_which_no_broker_starts_is_named(
    source: ClusterSpec, quiet_lab: Lab, zookeeper: KazooClient, spark: SparkSession
) -> None:
    """A seat may be the controller, with its port open, before it reads the quota and ends."""
    poison = POISONS["quota"]
    (planted,) = poison.nodes
    zookeeper.create(planted.path, planted.data)
    try:
        told = rehearsed(source, quiet_lab, spark, whole=False)
    finally:
        zookeeper.delete(planted.path)
    assert told.verdict == "FAILED" and poison.is_named_by(told.reasons), told.reasons


@pytest.mark.long
def test_a_poisoned_znode_that_kafka_does_not_name_is_found_by_halving(
    source: ClusterSpec, quiet_lab: Lab, zookeeper: KazooClient, spark: SparkSession
) -> None:
    """Of a token's version Kafka says "requirement failed". Tokens are read in the copy alone."""
    planted = {each.path: each.data for each in POISONS["token"].nodes if each.path.startswith(f"{TOKENS}/")}
    for path, token in planted.items():
        zookeeper.create(path, token, makepath=True)
    try:
        told = rehearsed(source, quiet_lab, spark, whole=False)
    finally:
        for path in planted:
            zookeeper.delete(path)
    assert told.verdict == "FAILED"
    (kafka_says,) = [each for each in told.reasons if "Kafka's own copy" in each]
    assert "poison" not in kafka_says, "Kafka names no znode"
    (halved,) = [each for each in told.reasons if "which znode ends" in each]
    assert f"ends of {TOKENS}/poison alone" in halved and "without it the copy is done" in halved, halved
    busy = told.measured["load"] > 2 * told.measured["cores"]
    assert told.measured["seconds"] < 180 or busy, told.measured
