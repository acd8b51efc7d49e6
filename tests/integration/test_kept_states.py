"""A lab that begins with a copy is a whole cluster of its own place; what can't be restored says why; and the cluster
of a killed maker is ended.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import by_hand
import kept_states
import pytest
from kazoo.client import KazooClient
from labs import Lab, describe_new_lab

from kraft_runbook.cluster.observation import was_read
from kraft_runbook.cluster.phases import Phase, detect_phase
from kraft_runbook.errors import StepFailed
from kraft_runbook.io.kafka.metadata_quorum import read_cluster_records
from kraft_runbook.io.local import supervision
from kraft_runbook.procedures.observe import observe
from lab import ROOT, lifecycle
from lab.layout import ZOOKEEPER, layout, starts

pytestmark = pytest.mark.long
MakeLab = Callable[[], Lab]
NAMES_A_PLACE = re.compile(rb"127\.\d+\.\d+\.\d+|/krb-")
LOG_OF_THE_PAST = re.compile(
    r"zookeeper/data/version-2/log\.\w+|(broker|controller)-\d+/data/__cluster_metadata-0/0{20}\.log|broker-\d+/data/__consumer_offsets-\d+/0{20}\.log"
)
"""ZooKeeper's sessions that have ended, KRaft's registrations, and consumers that have left their groups."""


@pytest.fixture(scope="module", params=list(kept_states.MODES))
def phase(request: pytest.FixtureRequest) -> Phase:
    return Phase(request.param)


@pytest.fixture(scope="module")
def put_there(phase: Phase) -> Iterator[Lab]:
    """A copy in its new place, of which nothing runs yet."""
    lab = describe_new_lab()
    try:
        kept_states.put(phase, lab.spec)
        yield lab
    finally:
        lifecycle.down(lab.spec, purge=True)


@pytest.fixture(scope="module")
def own_lab(put_there: Lab, phase: Phase) -> Lab:
    kept_states.start(phase, put_there)
    return put_there


@pytest.mark.parametrize("phase", [Phase.HYBRID], indirect=True)
def test_until_a_broker_registers_in_its_new_place_it_is_fenced(put_there: Lab) -> None:
    """The controllers know its old address from the log, and would speak to whoever is there: to a fenced broker they
    do not.
    """
    spec, secrets = put_there.spec, put_there.secrets
    kept_states.start(Phase.HYBRID, put_there, only=[ZOOKEEPER, *(c.service for c in spec.controllers)])
    by_hand.wait_until(
        "a quorum", lambda: read_cluster_records(spec, secrets=secrets).migration_state_record is not None
    )
    found = read_cluster_records(spec, secrets=secrets).registrations
    assert {i: each.fenced for i, each in found.items()} == dict.fromkeys(spec.broker_ids, True)
    assert not any(f"{put_there.network}." in endpoint for each in found.values() for endpoint in each.endpoints)


def test_it_stands_in_its_phase_whole_and_every_process_was_started_once(own_lab: Lab, phase: Phase) -> None:
    seen = observe(own_lab.spec, secrets=own_lab.secrets)
    assert detect_phase(seen).phase is phase
    assert was_read(seen.topics)
    assert (seen.topics.under_replicated_count, seen.topics.offline_count) == (0, 0)
    of_brokers, of_controllers = kept_states.MODES[phase]
    assert {each.mode for each in seen.brokers.values()} == {of_brokers}
    assert {each.mode for each in seen.controllers.values() if each.running} == (
        {of_controllers} if of_controllers else set()
    )
    running = {name for name, process in supervision.processes(layout(own_lab.spec)).items() if process.runs}
    assert {name for name, count in starts(own_lab.spec).items() if count} == running
    assert set(starts(own_lab.spec).values()) <= {0, 1}


def test_nobody_is_sent_to_the_place_where_it_was_made(own_lab: Lab, phase: Phase) -> None:
    kept = kept_states.HOME / kept_states.key() / f"{phase}-0"
    named = {
        str(path.relative_to(kept))
        for path in kept.rglob("*")
        if path.is_file() and NAMES_A_PLACE.search(path.read_bytes())
    }
    assert {name for name in named if not LOG_OF_THE_PAST.fullmatch(name)} == set()
    if phase is not Phase.ZOOKEEPER:
        found = read_cluster_records(own_lab.spec, secrets=own_lab.secrets).registrations
        assert all(f"{own_lab.network}." in endpoint for each in found.values() for endpoint in each.endpoints), found
    if phase is not Phase.FINALIZED:
        client = KazooClient(own_lab.spec.zookeeper.connect)
        client.start()
        try:
            elsewhere = {
                address for data in everything(client, "/") for address in re.findall(rb"127\.\d+\.\d+\.", data)
            } - {f"{own_lab.network}.".encode()}
        finally:
            client.stop()
            client.close()
        assert elsewhere == set()


def everything(client: KazooClient, path: str) -> Iterator[bytes]:
    """The data of every znode."""
    yield client.get(path)[0] or b""
    for child in client.get_children(path):
        yield from everything(client, f"{path.rstrip('/')}/{child}")


def test_what_cannot_be_restored_is_an_error_with_the_log_s_words_and_is_not_made_anew(
    make_lab: MakeLab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = make_lab()
    kept_states.put(Phase.ZOOKEEPER, lab.spec)
    made: list[Phase] = []
    monkeypatch.setattr(kept_states, "_make", lambda phase, *_: made.append(phase))
    (Path(lab.spec.broker(3).log_dirs[0]) / "meta.properties").write_text(
        "version=0\nbroker.id=3\ncluster.id=another-cluster-0000000\n"
    )
    with pytest.raises(StepFailed) as failed:
        kept_states.start(Phase.ZOOKEEPER, lab)
    told = "\n".join([str(failed.value), *failed.value.__notes__])
    assert "broker-3 ended by itself" in told
    assert "broker-3.log ends:" in told
    assert "another-cluster-0000000" in told
    assert not any(process.runs for process in supervision.processes(layout(lab.spec)).values())
    assert made == []


MAKER = """
import signal, sys, time
from pathlib import Path
import kept_states
from labs import describe_new_lab
from kraft_runbook.cluster.phases import Phase
from lab import lifecycle

def half_way(lab, topics):
    if sys.argv[2] == "fail":
        sys.exit(3)
    lifecycle.up(lab.spec, only=["zookeeper"])
    print(lab.directory, flush=True)
    while True:  # a signal that comes right before signal.pause() would leave it waiting for another one
        time.sleep(0.1)

signal.signal(signal.SIGTERM, signal.default_int_handler)
kept_states.HOME = Path(sys.argv[1])
kept_states._FROM[Phase.ZOOKEEPER] = half_way
kept_states.put(Phase.ZOOKEEPER, describe_new_lab().spec)
"""


def maker(temporary: str, how: str) -> subprocess.Popen[str]:
    """Makes a cluster, and stops half way: with ZooKeeper running, or ``fail`` before that."""
    environment = {
        **os.environ,
        "TMPDIR": temporary,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), *sys.path])),
    }
    return subprocess.Popen(
        [sys.executable, "-c", MAKER, f"{temporary}/kept", how], env=environment, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_maker_ends_its_cluster_and_a_killed_one_leaves_that_to_the_next(ending: signal.Signals) -> None:
    with tempfile.TemporaryDirectory(prefix="krb-") as temporary:
        first = maker(temporary, "pause")
        assert first.stdout is not None
        directory = Path(next(line for line in first.stdout if line.startswith("/")).strip())
        zookeeper = int((directory / "starts.log").read_text().split()[2])
        first.send_signal(ending)
        assert first.wait(60) != 0
        if ending is signal.SIGKILL:
            assert Path(f"/proc/{zookeeper}").exists()
            assert maker(temporary, "fail").wait(60) == 3
        assert not Path(f"/proc/{zookeeper}").exists()
        assert not directory.exists()
