"""What stands in for brokers follows the modes of a migration, and has no place in a real cluster."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from observations import SPEC, observation

from kraft_runbook.cluster.observation import BrokerMode, Unread
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.cluster.rehearsal_settings import Rehearses
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.cluster.spec_parts import ZooKeeper
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.kafka.heartbeats import Heartbeats
from kraft_runbook.io.kafka.stand_ins import StandIns, Told, stand_ins_of, told
from kraft_runbook.io.zookeeper.broker_znodes import BrokerZnodes, znode_of
from kraft_runbook.procedures.observe import undeclared

OWN = "dGhyb3dhd2F5LWNsdXN0ZQ"
LOOPBACK = {"cluster_id": OWN, "reach": {"kind": "local"}}


def throwaway(**changes: Any) -> ClusterSpec:
    """The test's cluster with loopback addresses alone, as a rehearsal's file has it."""
    given = SPEC.model_dump(mode="json", by_alias=True) | LOOPBACK
    given["service_manager"] = {"kind": "supervisor", "socket": "unix:///tmp/none.sock"}
    for number, broker in enumerate(given["brokers"], 1):
        broker["host"] = f"127.9.9.{number}"
    for number, controller in enumerate(given["controllers"], 1):
        controller["host"] = f"127.9.9.{100 + number}"
    given["zookeeper"]["servers"] = ["127.9.9.200:2181"]
    given["rehearsal"] = None
    given["rehearses"] = {
        "cluster_id": "c291cmNlLWNsdXN0ZXItaQ",
        "stand_ins": [{"id": 71, "host": "127.9.9.9", "port": 20001, "rack": "a"}],
    }
    return ClusterSpec.model_validate(given | changes)


def test_a_rehearsals_file_names_its_stand_ins() -> None:
    (broker,) = stand_ins_of(throwaway())
    assert (broker.id, broker.host, broker.listeners[0].port, broker.rack) == (71, "127.9.9.9", 20001, "a")
    assert throwaway().stand_in_ids == (71,)


def test_a_stand_in_in_kraft_mode_is_declared() -> None:
    """Else the way back, which leaves no broker behind in KRaft mode, would be closed to each rehearsal."""
    seen = observation(Phase.DUAL_WRITE)
    registered = seen.quorum.registrations
    quorum = replace(seen.quorum, registrations=registered | {71: next(iter(registered.values()))})
    read = (seen.zookeeper, quorum, Unread("not asked for"))
    assert undeclared(throwaway(), *read) == (frozenset(), frozenset())
    assert undeclared(SPEC, *read) == ({71}, frozenset()), "in a real cluster"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"cluster_id": "c291cmNlLWNsdXN0ZXItaQ"}, "is the id of the cluster that is rehearsed"),
        ({"cluster_id": None}, "needs one of its own"),
        ({"zookeeper": {"servers": ["10.0.0.1:2181"]}}, "10.0.0.1 is no loopback address"),
        ({"zookeeper": {"servers": ["zk.example:2181"]}}, "zk.example is no loopback address"),
        ({"reach": {"kind": "ssh"}}, "under its own supervisor"),
        ({"rehearses": {"cluster_id": "x", "stand_ins": [{"id": 71, "host": "10.1.1.1", "port": 1}]}}, "10.1.1.1"),
        ({"rehearsal": {}}, "a rehearsal is not rehearsed"),
    ],
)
def test_no_real_clusters_file_can_say_that_it_is_a_rehearsals(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        throwaway(**changes)


@pytest.mark.parametrize("where", ["host", "advertised_host"])
def test_nor_can_one_with_a_broker_elsewhere(where: str) -> None:
    brokers = throwaway().model_dump(mode="json", by_alias=True)["brokers"]
    if where == "host":
        brokers[0]["host"] = "192.168.1.1"
    else:
        brokers[0]["listeners"][0]["advertised_host"] = "192.168.1.1"
    with pytest.raises(ValueError, match=r"192\.168\.1\.1 is no loopback address"):
        throwaway(brokers=brokers)


def test_real_brokers_have_no_stand_ins() -> None:
    with pytest.raises(Refused, match="not a rehearsal's"):
        stand_ins_of(SPEC)
    assert SPEC.stand_in_ids == ()


def test_none_is_announced_in_a_real_ensemble() -> None:
    with pytest.raises(Refused, match="loopback addresses alone, not in zk1"):
        BrokerZnodes(ZooKeeper(servers=("zk1:2181",)), (), cluster_id=OWN, secrets=lambda ref: "")


@pytest.mark.parametrize(
    ("answer", "told"), [({"id": "c291cmNlLWNsdXN0ZXItaQ"}, "c291cmNlLWNsdXN0ZXItaQ"), ({}, "None"), (None, "None")]
)
def test_nothing_is_written_where_another_cluster_answers(answer: dict[str, str] | None, told: str) -> None:
    """A real ZooKeeper that took the throwaway's address: announcing is refused, and so is deleting."""
    did: list[str] = []
    id_znode = SimpleNamespace(data=json.dumps({"id": OWN}).encode())
    reader = SimpleNamespace(
        get=lambda path: id_znode if path == "/cluster/id" else None,
        children=lambda path: (),
        get_many=lambda paths: [SimpleNamespace(path=each) for each in paths],
    )
    writer = SimpleNamespace(
        create_ephemeral=lambda path, data: did.append(f"made {path}"),
        delete=lambda znode: did.append(f"deleted {znode.path}"),
    )
    spec = throwaway()
    znodes = BrokerZnodes(spec.ensemble, stand_ins_of(spec), cluster_id=OWN, secrets=lambda ref: "")
    vars(znodes).update(_reader=reader, _writer=writer)
    znodes.announce()
    znodes.withdraw()
    znodes.announce()
    assert did == ["made /brokers/ids/71", "deleted /brokers/ids/71", "made /brokers/ids/71"]
    reader.get = lambda path: None if answer is None else SimpleNamespace(data=json.dumps(answer).encode())
    for act in (znodes.keep, znodes.announce, znodes.withdraw):
        with pytest.raises(Refused, match=f"127.9.9.200:2181 answers with the cluster id {told}, not with"):
            act()
    assert len(did) == 3


def test_znodes_that_a_lost_session_took_along_are_made_anew_and_counted() -> None:
    """ZooKeeper's controller elected other leaders meanwhile: what is compared then says nothing of the metadata."""
    there: set[str] = set()
    reader = SimpleNamespace(
        get=lambda path: SimpleNamespace(data=json.dumps({"id": OWN}).encode()), children=lambda path: tuple(there)
    )
    writer = SimpleNamespace(create_ephemeral=lambda path, data: there.add(path.rpartition("/")[2]))
    spec = throwaway()
    znodes = BrokerZnodes(spec.ensemble, stand_ins_of(spec), cluster_id=OWN, secrets=lambda ref: "")
    vars(znodes).update(_reader=reader, _writer=writer)
    assert znodes.keep() == 0, "none is announced"
    znodes.announce()
    assert znodes.keep() == 0 and there == {"71"}
    there.clear()
    assert znodes.keep() == 1 and there == {"71"}


def test_how_many_were_made_anew_is_told_through_every_later_mode(tmp_path: Path) -> None:
    said: list[Told] = []

    class Losing(Znodes):
        def keep(self) -> int:
            return 0 if any(each.anew for each in said) else 2

    looks = iter(range(3000))

    def wanted() -> BrokerMode:
        if (said and said[-1].mode == "hybrid") or next(looks, None) is None:
            cast.stop.set()
        return BrokerMode.HYBRID if any(each.anew for each in said) else BrokerMode.ZOOKEEPER

    cast = StandIns(
        throwaway(),
        stand_ins_of(throwaway()),
        "id",
        said.append,
        register=lambda *_, **__: 1,
        beat=lambda *_, **__: True,
        announces=lambda *_, **__: Losing([]),  # type: ignore[arg-type, return-value]
        look_every=0.001,
        znodes_every=0.001,
    )
    cast.follow(wanted)
    said[-1].save(tmp_path / "told")
    assert (told(tmp_path / "told").mode, told(tmp_path / "told").anew) == ("hybrid", 2)


def test_a_znode_says_what_the_registration_says() -> None:
    (broker,) = Rehearses.model_validate(
        {"cluster_id": "x", "stand_ins": [{"id": 7, "host": "127.0.0.9", "port": 9, "rack": "r"}]}
    ).stand_in_brokers("PLAINTEXT")
    found = znode_of(broker, now=1.5)
    assert (found["version"], found["endpoints"], found["rack"]) == (5, ["PLAINTEXT://127.0.0.9:9"], "r")
    assert found["timestamp"] == "1500"


class Znodes:
    """Records what is asked of it."""

    def __init__(self, did: list[str]) -> None:
        self.did = did

    def __enter__(self) -> Znodes:
        return self

    def __exit__(self, *_: object) -> None:
        self.did.append("session ended")

    def announce(self) -> None:
        self.did.append("announced")

    def withdraw(self) -> None:
        self.did.append("withdrawn")

    def keep(self) -> int:
        return 0


def follow(modes: list[BrokerMode]) -> tuple[list[str], list[Told], list[Any]]:
    """What stand-ins do that go through these modes, what they tell, and with which incarnation ids they register."""
    did: list[str] = []
    said: list[Told] = []
    incarnations: list[Any] = []

    def register(_: Any, broker: Any, *, incarnation: Any, migrating: bool, **__: Any) -> int:
        did.append(f"registered {broker.id} {'migrating' if migrating else 'in KRaft'}")
        incarnations.append(incarnation)
        return len(incarnations)

    def wanted() -> BrokerMode:
        if said and said[-1].mode == modes[0].value:
            if len(modes) == 1:
                cast.stop.set()
            else:
                modes.pop(0)
        return modes[0]

    cast = StandIns(
        throwaway(),
        stand_ins_of(throwaway()),
        "id",
        said.append,
        register=register,
        beat=lambda *_, **__: True,
        announces=lambda *_, **__: Znodes(did),  # type: ignore[arg-type, return-value]
        look_every=0.001,
    )
    cast.follow(wanted)
    return did, said, incarnations


def test_they_follow_every_mode_and_back() -> None:
    """In KRaft mode the registration comes before the znode goes; back, the znode before the registration."""
    z, h, k = BrokerMode.ZOOKEEPER, BrokerMode.HYBRID, BrokerMode.KRAFT
    did, said, incarnations = follow([z, h, k, h, z])
    assert did == [
        "announced",
        *("announced", "registered 71 migrating"),
        *("registered 71 in KRaft", "withdrawn"),
        *("announced", "registered 71 migrating"),
        "announced",
        "session ended",
    ]
    assert len(set(incarnations)) == 1, "another one would be fenced, and every partition would change"
    assert [each.mode for each in said if each.unfenced_at is None] == [
        "zookeeper",
        "hybrid",
        "kraft",
        "hybrid",
        "zookeeper",
    ]
    assert all(each.registered_at is None for each in said if each.mode == "zookeeper")


def test_what_they_tell_is_read_back(tmp_path: Path) -> None:
    now = Told(1.0, 2.0, {7: 12}, mode="hybrid")
    assert told(tmp_path / "told.json") == Told()
    now.save(tmp_path / "told.json")
    assert told(tmp_path / "told.json") == now


def test_a_refused_registration_is_told() -> None:
    def refused(*_: Any, **__: Any) -> int:
        raise Refused("no", way_out="none")

    cast = StandIns(
        throwaway(),
        stand_ins_of(throwaway()),
        "id",
        lambda now: None,
        register=refused,
        announces=lambda *_, **__: Znodes([]),  # type: ignore[arg-type, return-value]
    )
    with pytest.raises(Refused, match="no"):
        cast.follow(lambda: BrokerMode.HYBRID)
    assert not [each for each in threading.enumerate() if each.name == "heartbeats"]


def until(holds: Callable[[], bool]) -> None:
    ends = time.monotonic() + 10
    while not holds() and time.monotonic() < ends:
        time.sleep(0.002)
    assert holds()


def test_whoever_has_a_broker_epoch_beats_and_is_unfenced_once_the_quorum_says_so() -> None:
    beat: list[tuple[int, int]] = []

    def answers(_: Any, broker: int, epoch: int, **__: Any) -> bool:
        beat.append((broker, epoch))
        return broker != 8

    with Heartbeats(throwaway(), (7, 8, 9), beat=answers, every=0.0, look_every=0.001) as beats:
        beats.epochs = {7: 40, 8: 41}
        until(lambda: {each for each, _ in beat} == {7, 8})
        assert beats.unfenced == {7}
        beats.epochs = {9: 42}
        until(lambda: beats.unfenced == {7, 9})
    assert not beats.failures and set(beat) == {(7, 40), (8, 41), (9, 42)}


def test_heartbeats_that_nobody_takes_for_too_long_end_and_say_why() -> None:
    def refused(*_: Any, **__: Any) -> bool:
        raise StepFailed("no controller took it", way_out="none")

    with Heartbeats(throwaway(), (7,), beat=refused, every=0.0, look_every=0.001, patience=0.01) as beats:
        beats.epochs = {7: 40}
        until(lambda: bool(beats.failures))
    assert "no controller took it" in str(beats.failures[0])
