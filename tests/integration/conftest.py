"""Real clusters for the tests that need one."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import by_hand
import kept_states
import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from labs import Lab, describe_new_lab, secured_lab
from pyspark.sql import SparkSession
from stage import Stage, a_stage

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.local import supervision
from kraft_runbook.parity.spark.session import session
from lab import ROOT, lifecycle
from lab.layout import ZOOKEEPER, layout
from lab.secured.mutual import write_mutual_cluster_file

SECURED = ROOT / "lab" / "secured"
"""Where the secured lab is described."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything below this directory runs on a real cluster."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.integration)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """``KRB_RUNS``: how often each test is run, for ``benchmarks.group_bars``."""
    if runs := int(os.environ.get("KRB_RUNS", "0")):
        metafunc.fixturenames.append("run_number")
        metafunc.parametrize("run_number", range(runs))


@pytest.fixture(scope="module")
def own_lab() -> Iterator[Lab]:
    """A seeded lab in ZooKeeper mode for the tests of one file, to do with as they please. A file that needs another
    one overrides this.

    Not one for the session: what runs on idly takes a tenth of two cores from every test that follows.
    """
    with kept_states.lab_in(Phase.ZOOKEEPER) as lab:
        yield lab


@pytest.fixture(scope="module")
def stage(own_lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A real Airflow beside ``own_lab``."""
    with a_stage(own_lab, tmp_path_factory.mktemp("airflow")) as opened:
        yield opened


@pytest.fixture(scope="module")
def dual_write() -> Iterator[Lab]:
    """A seeded lab in dual write, every broker in migration mode (phase HYBRID), to do with as they please."""
    with kept_states.lab_in(Phase.HYBRID) as lab:
        yield lab


@pytest.fixture(scope="module")
def zookeeper_alone() -> Iterator[Lab]:
    """A seeded lab in ZooKeeper mode of which only ZooKeeper runs."""
    with kept_states.lab_in(Phase.ZOOKEEPER, only=[ZOOKEEPER]) as lab:
        yield lab


@pytest.fixture(scope="module")
def quiet_lab(own_lab: Lab, zookeeper: KazooClient) -> Lab:
    """A seeded lab whose brokers were killed at once, so that its tree is that of a healthy cluster: a copy reads
    ZooKeeper alone, and two cores have enough to do. The test's session has their znodes: no rehearsal passes with a
    broker that is not live.
    """
    here = layout(own_lab.spec)
    held = {path: zookeeper.get(path)[0] for path in (f"/brokers/ids/{b.id}" for b in own_lab.spec.brokers)}
    for broker in own_lab.spec.brokers:
        supervision.begin_stop(here, broker.service, signal="KILL")
    by_hand.wait_until(
        "the brokers have ended",
        lambda: not any(supervision.processes(here)[b.service].runs for b in own_lab.spec.brokers),
    )
    for path, data in held.items():
        with suppress(NoNodeError):  # the broker's session has expired
            zookeeper.delete(path)
        zookeeper.create(path, data, ephemeral=True)
    return own_lab


@pytest.fixture(scope="module")
def zookeeper(own_lab: Lab) -> Iterator[KazooClient]:
    """A client of the ZooKeeper of ``own_lab``."""
    client = KazooClient(hosts=own_lab.spec.zookeeper.connect)
    client.start()
    yield client
    client.stop()


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    with session(None) as ready:
        yield ready


@pytest.fixture
def make_lab() -> Iterator[Callable[[], Lab]]:
    """Describes labs that don't run yet; what the test brings up is ended and removed after it."""
    made: list[Lab] = []

    def make() -> Lab:
        made.append(describe_new_lab())
        return made[-1]

    yield make
    for lab in made:
        lifecycle.down(lab.spec, purge=True)


@pytest.fixture(scope="module")
def secured() -> Iterator[Lab]:
    """A seeded lab in ZooKeeper mode, as ``lab/secured/lab.yaml`` describes it."""
    with secured_lab(SECURED) as lab:
        yield lab


@pytest.fixture(scope="module")
def mutual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The same with mutual TLS alone."""
    with secured_lab(write_mutual_cluster_file(tmp_path_factory.mktemp("mutual")).parent) as lab:
        yield lab
