"""A real cluster's tree copied into a snapshot file, and a real ZooKeeper started on it: equal but for what is
replaced, nothing of the source's secrets, and nothing written at the source.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import by_hand
import pytest
from kazoo.client import KazooClient
from kazoo.security import OPEN_ACL_UNSAFE, make_digest_acl
from labs import Lab

from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused
from kraft_runbook.io.zookeeper.multi_read import MultiRead
from kraft_runbook.io.zookeeper.raw_read import RawRead
from kraft_runbook.metadata.znodes.password_encoder import Undecodable, decode_password
from kraft_runbook.procedures.copy_tree import copy_tree, look_since
from kraft_runbook.rehearsal.copied_tree import CopiedTree
from kraft_runbook.rehearsal.replacing import Dropped, Replaced
from kraft_runbook.rehearsal.since import changes_since
from lab.installation import fetch_jars, java
from lab.layout import zookeeper_servers

CLUSTER_ID, ENCODER_SECRET = "YW5vdGhlci1jbHVzdGVyLWlk", "of the throwaway"
PASSWORD = "listener.name.sasl.scram-sha-256.sasl.jaas.config"
MALFORMED = 'salt=c2FsdA==,stored_key=Zmlyc3RTZWNyZXRLZXk=,server_key="lastSecretKey",iterations=many'
PLANTED = {
    "/config/users/malformed": {"version": 1, "config": {"SCRAM-SHA-256": MALFORMED, "producer_byte_rate": "abc"}},
    "/config/brokers/9": {"version": 1, "config": {"my.reporter.token": "hunter2reporter", "log.cleaner.threads": "1"}},
    "/consumers/g": None,
    "/kraft_runbook_claim": {"holder": "hunter2claim"},
    "/migration": {"version": 0},
    "/not-kafkas/x": {"password": "hunter2elsewhere"},
}


class Seen(NamedTuple):
    """A znode as a client sees it."""

    data: bytes | None
    version: int
    cversion: int
    aversion: int
    mzxid: int
    pzxid: int
    ctime: int
    mtime: int


def everything(client: KazooClient, path: str = "/") -> Iterator[tuple[str, Seen]]:
    data, stat = client.get(path)
    if path.startswith("/zookeeper"):
        return
    kept = (stat.version, stat.cversion, stat.aversion, stat.mzxid, stat.pzxid, stat.ctime, stat.mtime)
    if not stat.ephemeralOwner:
        yield path, Seen(data, *kept)
    for name in client.get_children(path):
        yield from everything(client, f"{path.rstrip('/')}/{name}")


@pytest.fixture(scope="module")
def own_lab(zookeeper_alone: Lab) -> Lab:
    return zookeeper_alone


@pytest.fixture(scope="module")
def source(own_lab: Lab, zookeeper: KazooClient) -> KazooClient:
    """The lab's ZooKeeper with what else a copy may meet."""
    for path, content in PLANTED.items():
        data = b"" if content is None else json.dumps(content).encode()
        zookeeper.ensure_path(path)
        zookeeper.set(path, data)
    for path in ("/controller", "/brokers/ids/7"):
        if not zookeeper.exists(path):
            zookeeper.create(path, b"{}", ephemeral=True)
    zookeeper.set("/config/topics", b"")  # a version of its own
    zookeeper.delete(zookeeper.create("/config/topics/gone", b""))  # and a child that was deleted
    return zookeeper


def copied_of(lab: Lab, into: Path, *, spec: ClusterSpec | None = None) -> CopiedTree:
    return copy_tree(spec or lab.spec, into, secrets=lab.secrets, cluster_id=CLUSTER_ID, encoder_secret=ENCODER_SECRET)


@contextmanager
def started_on(lab: Lab, data: Path) -> Iterator[KazooClient]:
    """A client of a ZooKeeper that was started on this data directory. It writes snapshots of its own there."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    config = data.parent / "zookeeper.properties"
    config.write_text(
        f"dataDir={data}\nclientPort={port}\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\ntickTime=2000\n"
    )
    command = [str(java()), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", f"{fetch_jars(lab.spec.kafka.version)}/*"]
    with (data.parent / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "org.apache.zookeeper.server.quorum.QuorumPeerMain", str(config)], stdout=log, stderr=log
        )
    client = KazooClient(hosts=f"127.0.0.1:{port}")
    try:
        client.start(60)
        yield client
    finally:
        client.stop()
        process.kill()
        process.wait()


@pytest.fixture(scope="module")
def copy(own_lab: Lab, source: KazooClient, tmp_path_factory: pytest.TempPathFactory) -> CopiedTree:
    return copied_of(own_lab, tmp_path_factory.mktemp("copy") / "data")


@pytest.fixture(scope="module")
def read_back(own_lab: Lab, copy: CopiedTree, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Seen], Path]:
    """What a ZooKeeper shows that was started on the copy, and its data directory."""
    data = tmp_path_factory.mktemp("read-back") / "data"
    shutil.copytree(copy.snapshot.parent.parent, data)
    with started_on(own_lab, data) as client:
        assert client.get("/zookeeper/quota")[0] == b""
        client.create("/admin/x", b"")  # it serves writes, too
        client.delete("/admin/x")
        found = dict(everything(client))
    return {path: seen for path, seen in found.items() if path != "/admin"}, data


def secrets_of(znodes: Mapping[str, Seen]) -> set[str]:
    """Every string of these znodes that nobody else may know."""
    found = {"Zmlyc3RTZWNyZXRLZXk", "lastSecretKey", "hunter2reporter", "hunter2claim", "hunter2elsewhere"}
    for path, seen in znodes.items():
        if not path.startswith("/config/") or not seen.data:
            continue
        for name, value in json.loads(seen.data).get("config", {}).items():
            if name.startswith("SCRAM-") and "/malformed" not in path:
                found |= {part.partition("=")[2].rstrip("=") for part in value.split(",") if "iterations" not in part}
            if name == PASSWORD:
                fields = dict(part.split(":", 1) for part in value.split(","))
                found |= {fields[each].rstrip("=") for each in ("salt", "encryptedPassword", "initializationVector")}
    return found


def test_nothing_is_written_at_the_source_but_the_session(own_lab: Lab, source: KazooClient, tmp_path: Path) -> None:
    before = dict(everything(source))
    source.sync("/")
    began = source.last_zxid
    copied = copied_of(own_lab, tmp_path / "data")
    source.sync("/")
    assert source.last_zxid - began == 2, "a session's begin and its end"
    assert dict(everything(source)) == before
    assert copied.newest_zxid <= began


def test_a_zookeeper_started_on_the_copy_holds_the_same_but_for_what_is_replaced(
    source: KazooClient, copy: CopiedTree, read_back: tuple[dict[str, Seen], Path]
) -> None:
    there, here = dict(everything(source)), read_back[0]
    assert copy.znodes == len(here) + 1
    del there["/admin"]
    gone = {
        path for path in there if path.startswith(("/consumers", "/kraft_runbook_claim", "/migration", "/not-kafkas"))
    }
    assert set(here) == set(there) - gone
    assert "/consumers/g" in gone
    replaced = {path for path in here if here[path].data != there[path].data}
    assert "/config/users/malformed" in replaced
    lacks = {path for path in here if b"log.cleaner.threads" in (there[path].data or b"")}
    assert "/config/brokers/<default>" in lacks and not [
        path for path in lacks if b"threads" in (here[path].data or b"")
    ]
    limits = (b"max.connections", b"connection_creation_rate")
    limited = {path for path in here if any(each in (there[path].data or b"") for each in limits)}
    assert {"/config/brokers/<default>", "/config/ips/<default>", "/config/ips/192.0.2.7"} <= limited
    assert not [path for path in limited if b'"2147483647"' not in (here[path].data or b"")]
    tokens = {path for path in here if path.startswith("/delegation_token/tokens/")}  # they expire later
    assert replaced == {"/cluster/id", *lacks, *limited, *tokens, *(path for path in here if is_secret(there[path]))}
    for path, seen in here.items():
        was = there[path]
        assert seen._replace(data=None, cversion=0) == was._replace(data=None, cversion=0), path
        # As if what is dropped had been deleted: one change more for each.
        assert seen.cversion == was.cversion + {"/": 5, "/brokers/ids": 1}.get(path, 0), path
    assert json.loads(here["/cluster/id"].data or b"") == {"version": "1", "id": CLUSTER_ID}
    assert max(each.version for path, each in here.items() if path.endswith("/state")) > 0, "versions to be kept at all"


def is_secret(seen: Seen) -> bool:
    return any(each in (seen.data or b"") for each in (b"SCRAM-", b"encryptedPassword", b"my.reporter.token"))


def test_a_credential_keeps_its_shape_and_a_password_is_opened_by_the_throwaway_s_secret_alone(
    own_lab: Lab, source: KazooClient, read_back: tuple[dict[str, Seen], Path]
) -> None:
    there, here = dict(everything(source)), read_back[0]
    old, new = (json.loads(each["/config/users/alice"].data or b"")["config"] for each in (there, here))
    assert set(old) == set(new)
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        parts = [[(len(part), part.partition("=")[0]) for part in each[mechanism].split(",")] for each in (old, new)]
        assert parts[0] == parts[1]
        assert old[mechanism] != new[mechanism]
        assert old[mechanism].split(",")[-1] == new[mechanism].split(",")[-1], "the iterations"
    malformed = json.loads(here["/config/users/malformed"].data or b"")["config"]
    assert malformed["producer_byte_rate"] == "abc"
    assert malformed["SCRAM-SHA-256"].endswith(",iterations=" + malformed["SCRAM-SHA-256"].rpartition("=")[2])
    assert not malformed["SCRAM-SHA-256"].rpartition("=")[2].isdigit()
    (path,) = (path for path in here if PASSWORD.encode() in (here[path].data or b""))
    password = json.loads(here[path].data or b"")["config"][PASSWORD]
    assert decode_password(password, ENCODER_SECRET).startswith("org.apache.kafka.common.security.plain")
    with pytest.raises(Undecodable):
        decode_password(password, own_lab.secrets(own_lab.spec.secrets["password.encoder.secret"]))


def test_no_secret_of_the_source_is_in_the_file(own_lab: Lab, source: KazooClient, copy: CopiedTree) -> None:
    secrets = {each.encode() for each in secrets_of(dict(everything(source)))}
    assert len(secrets) > 15
    (server,) = zookeeper_servers(own_lab.spec)
    held = b"".join(each.read_bytes() for each in server.data.rglob("*") if each.is_file())
    assert all(secret in held for secret in secrets), "the source's own files hold them all"
    assert not {secret for secret in secrets if secret in copy.snapshot.read_bytes()}
    assert copy.snapshot.stat().st_mode & 0o777 == 0o600
    assert copy.snapshot.parent.stat().st_mode & 0o777 == 0o700


def test_what_was_dropped_replaced_and_seen_is_told(own_lab: Lab, source: KazooClient, copy: CopiedTree) -> None:
    assert copy.dropped == {
        Dropped.EPHEMERAL: 1,
        Dropped.CONTROLLER: 1,
        Dropped.MIGRATION: 1,
        Dropped.CLAIM: 1,
        Dropped.CONSUMERS: 1,
        Dropped.NOT_KAFKAS: 2,  # /zookeeper is the other
    }
    assert copy.replaced[Replaced.CLUSTER_ID] == copy.replaced[Replaced.ENCODED_PASSWORD] == 1
    assert copy.replaced[Replaced.SCRAM_CREDENTIAL] == 6, "five of the lab, and the malformed one"
    assert copy.replaced[Replaced.SENSITIVE_CONFIG] == 1
    assert {each.partition(":")[0] for each in copy.left_out_told} == {
        "/config/brokers/<default>, log.cleaner.threads",
        "/config/brokers/…, log.cleaner.threads",
        "/config/brokers/<default>, max.connections.per.ip",
        "/config/brokers/…, max.connections",
        "/config/ips/<default>, connection_creation_rate",
        "/config/ips/…, connection_creation_rate",
    }
    assert copy.configured_brokers >= {9}
    assert copy.live_brokers == {7}
    assert copy.assigned_brokers == set(own_lab.spec.broker_ids)
    assert copy.source_cluster_id == json.loads(source.get("/cluster/id")[0])["id"] != copy.cluster_id == CLUSTER_ID
    assert copy.topics > 0 < copy.partitions
    assert copy.why_not_whole == ()


def test_what_may_not_be_read_is_named_and_the_rest_is_copied(
    own_lab: Lab, source: KazooClient, copy: CopiedTree, tmp_path: Path
) -> None:
    topic = source.get_children("/brokers/topics")[0]
    hidden = ["/config/users/alice", f"/brokers/topics/{topic}/partitions/0/state", "/kafka-acl/Topic"]
    lost = {path for path, _ in everything(source) if any(f"{path}/".startswith(f"{each}/") for each in hidden)}
    mine = make_digest_acl("someone", "else", all=True)
    for path in hidden:
        source.set_acls(path, [mine])
    try:
        copied = copied_of(own_lab, tmp_path / "data")
    finally:
        source.add_auth("digest", "someone:else")
        for path in hidden:
            source.set_acls(path, OPEN_ACL_UNSAFE)
    assert set(copied.unread.samples) == set(hidden)
    assert copied.znodes == copy.znodes - len(lost)
    assert "may not read" in copied.why_not_whole[0]
    assert hidden[0] in copied.why_not_whole[0]


def test_without_the_encoder_s_secret_a_copy_is_made_and_is_not_whole(
    own_lab: Lab, source: KazooClient, tmp_path: Path
) -> None:
    copied = copied_of(own_lab, tmp_path / "data", spec=own_lab.spec.model_copy(update={"secrets": {}}))
    assert copied.unjudged_passwords == copied.replaced[Replaced.ENCODED_PASSWORD] == 1
    (why,) = copied.why_not_whole
    assert "password.encoder.secret is not at hand" in why


def test_what_changed_since_the_copy_is_counted(own_lab: Lab, source: KazooClient, tmp_path: Path) -> None:
    copied = copied_of(own_lab, tmp_path / "data")
    look = look_since(own_lab.spec, secrets=own_lab.secrets)
    assert len(look.znodes) == len(copied.kept)
    assert str(changes_since(copied.kept, look)) == "nothing"
    topic = b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAA","partitions":{}}'
    try:
        for name in ("new-1", "new-2", "new-3"):
            source.create(f"/brokers/topics/{name}", topic)
        source.set("/config/users/malformed", source.get("/config/users/malformed")[0])
        source.delete("/config/brokers/9")
        said = str(changes_since(copied.kept, look_since(own_lab.spec, secrets=own_lab.secrets)))
        assert said == "3 topics new, 1 user changed, 1 broker config gone"
    finally:
        for name in ("new-1", "new-2", "new-3"):
            source.delete(f"/brokers/topics/{name}")
        source.create("/config/brokers/9", json.dumps(PLANTED["/config/brokers/9"]).encode())


def test_an_old_server_and_a_rate_give_the_same_copy(
    own_lab: Lab, source: KazooClient, copy: CopiedTree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rate = copy.znodes
    slow = own_lab.spec.ensemble.model_copy(update={"read_rate": rate})
    paced = copied_of(own_lab, tmp_path / "paced", spec=own_lab.spec.model_copy(update={"zookeeper": slow}))
    assert paced.seconds > 0.8 * paced.znodes / rate
    for request in (MultiRead, RawRead):
        monkeypatch.setattr(request, "type", 99)  # no server knows this one
    alone = copied_of(own_lab, tmp_path / "one-by-one")
    for each in (paced, alone):
        told = (each.znodes, each.size, each.dropped, each.replaced)
        assert told == (copy.znodes, copy.size, copy.dropped, copy.replaced)


def test_below_a_chroot_nothing_else_is_copied(own_lab: Lab, source: KazooClient, tmp_path: Path) -> None:
    znodes = {
        "/a/kafka/cluster/id": b'{"version":"1","id":"c"}',
        "/a/kafka/brokers/topics/t": b'{"version":3,"partitions":{"0":[1]}}',
        "/a/kafka/brokers/topics/t/partitions/0/state": b"{}",
        "/a/other": b"hunter2other",
    }
    for path, data in znodes.items():
        source.create(path, data, makepath=True)
    chroot = own_lab.spec.ensemble.model_copy(update={"chroot": "/a/kafka"})
    try:
        copied = copied_of(own_lab, tmp_path / "data", spec=own_lab.spec.model_copy(update={"zookeeper": chroot}))
        with started_on(own_lab, tmp_path / "data") as client:
            here = dict(everything(client))
    finally:
        source.delete("/a", recursive=True)
    above = ("/", "/cluster", "/brokers", "/brokers/topics")
    topic = "/brokers/topics/t"
    below = (topic, f"{topic}/partitions", f"{topic}/partitions/0", f"{topic}/partitions/0/state")
    assert set(here) == {*above, *below, "/cluster/id"}
    assert here[topic].data == znodes["/a/kafka/brokers/topics/t"]
    assert (copied.source_cluster_id, copied.znodes, copied.topics) == ("c", 9, 1)


def churned(client: KazooClient) -> list[str]:
    return [each for each in client.get_children("/brokers/topics") if each.startswith("churn-")]


@pytest.mark.long
def test_topics_that_are_made_and_deleted_meanwhile_are_in_it_whole_or_not_at_all(
    own_lab: Lab, source: KazooClient, tmp_path: Path
) -> None:
    """As Kafka's controller writes them: the assignment first, then the partitions with their states."""
    ended = threading.Event()

    def churn() -> None:
        client = KazooClient(hosts=own_lab.spec.ensemble.connect)
        client.start()
        number = 0
        while not ended.is_set():
            made, old, number = f"/brokers/topics/churn-{number}", f"/brokers/topics/churn-{number - 100}", number + 1
            client.create(made, b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAA","partitions":{"0":[1],"1":[1]}}')
            for partition in (0, 1):
                time.sleep(0.01)
                client.create(f"{made}/partitions/{partition}/state", b"{}", makepath=True)
            if number > 100:
                client.delete(f"{old}/partitions", recursive=True)
                time.sleep(0.01)
                client.delete(old)
        for left in range(max(0, number - 100), number):
            client.delete(f"/brokers/topics/churn-{left}", recursive=True)
        client.stop()

    writer = threading.Thread(target=churn)
    writer.start()
    try:
        by_hand.wait_until("topics come", lambda: len(churned(source)) > 30)
        for number in range(3):
            data = tmp_path / str(number) / "data"
            copied_of(own_lab, data)
            with started_on(own_lab, data) as client:
                topics = churned(client)
                assert len(topics) > 10
                for name in topics:
                    for partition in json.loads(client.get(f"/brokers/topics/{name}")[0])["partitions"]:
                        assert client.exists(f"/brokers/topics/{name}/partitions/{partition}/state"), name
    finally:
        ended.set()
        writer.join()


def test_its_own_id_and_a_directory_where_a_zookeeper_ran_are_refused(
    own_lab: Lab, copy: CopiedTree, read_back: tuple[dict[str, Seen], Path], tmp_path: Path
) -> None:
    with pytest.raises(Refused, match="is the id of the cluster that is copied"):
        copy_tree(
            own_lab.spec, tmp_path / "data", secrets=own_lab.secrets, cluster_id=copy.source_cluster_id,
            encoder_secret=ENCODER_SECRET,
        )  # fmt: skip
    assert not list((tmp_path / "data" / "version-2").iterdir())
    with pytest.raises(Refused, match="a ZooKeeper has run on"):
        copied_of(own_lab, read_back[1])
