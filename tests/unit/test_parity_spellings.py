"""Whatever names look like in ZooKeeper, under whatever spelling: a difference is never a match, and the
same is one.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote
from uuid import NAMESPACE_OID, UUID, uuid5

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from metadata_encoding import config, log, partition, record, topic
from whole_image import every_version

from kraft_runbook.errors import StepFailed
from kraft_runbook.io.zookeeper.read_rows import read_again, read_everything_else, read_topics, topic_names
from kraft_runbook.io.zookeeper.znode import Znode
from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Fingerprints, kafka_uuid
from kraft_runbook.metadata.image.log_replay import LogReplay
from kraft_runbook.metadata.log.log_chunks import Chunk
from kraft_runbook.metadata.log.record_schemas import RecordType
from kraft_runbook.metadata.metadata_version import required_level
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.parity.comparison import Difference, Verdict, compare, verdict_of
from kraft_runbook.parity.final_proof import FinalProof
from kraft_runbook.parity.second_look import keys_in_question, look_again

DECODING = Decoding(Fingerprints(b"salt"))


class Tree(dict[str, bytes]):
    """Stands for ZooKeeper: its znodes by path."""

    def get_many(self, paths: Sequence[str]) -> list[Znode | None]:
        return [Znode(path, self[path], 0, 0, 0, 0, 0) if path in self else None for path in paths]

    def children_many(self, paths: Sequence[str]) -> list[tuple[str, ...] | None]:
        return [self._children(path) for path in paths]

    def _children(self, path: str) -> tuple[str, ...] | None:
        below = {each.removeprefix(path + "/").split("/")[0] for each in self if each.startswith(path + "/")}
        return tuple(sorted(below)) if below or path in self else None


Fact = tuple[str, Any, str]
"""What one znode says: its kind, what it is about, and a value, a small number as text."""

ROOTS = {"user": "users", "client-id": "clients", "ip": "ips"}
TOKEN_TIMES = {"issueTimestamp": 1, "maxTimestamp": 3}


def znode_of(fact: Fact, names: Mapping[str, str]) -> tuple[str, bytes]:
    """The znode of a fact. ``names``: how each sanitized name is spelt."""
    kind, about, value = fact

    def spelt(name: str | None) -> str:
        return "<default>" if name is None else names[name]

    if kind == "quota":
        parts = sorted(about, key=lambda part: part[0], reverse=True)
        path = "/config/" + "/".join(f"{ROOTS[type_]}/{spelt(name)}" for type_, name in parts)
        return path, json.dumps({"version": 1, "config": {"producer_byte_rate": value}}).encode()
    if kind == "scram":
        keys = base64.b64encode(b"key").decode()
        text = f"salt={keys},stored_key={keys},server_key={keys},iterations={value}"
        return f"/config/users/{names[about]}", json.dumps({"config": {"SCRAM-SHA-256": text}}).encode()
    if kind == "acl":
        pattern, type_, name, principal = about
        root = "/kafka-acl" if pattern == 3 else "/kafka-acl-extended/prefixed"
        entry = {
            "principal": f"User:{principal}",
            "host": "*",
            "operation": "Read" if value == "1" else "Write",
            "permissionType": "Allow",
        }
        return f"{root}/{type_}/{name}", json.dumps({"version": 1, "acls": [entry]}).encode()
    if kind == "token":
        owner = names[about]
        token = {
            "version": 3,
            "owner": f"User%3A{owner}",
            "tokenRequester": f"User:{owner}",
            "renewers": [],
            "tokenId": about,
            "expiryTimestamp": int(value),
        }
        return f"/delegation_token/tokens/{names[about]}", json.dumps(token | TOKEN_TIMES).encode()
    if kind == "broker":
        return f"/config/brokers/{about or '<default>'}", json.dumps({"config": {"x": value}}).encode()
    assert kind == "topic"
    return f"/config/topics/{about}", json.dumps({"config": {"x": value}}).encode()


TOPIC_IDS = {name: UUID(int=at + 1) for at, name in enumerate(("a", "a.b", "A-b", "a_b"))}


def records_of(fact: Fact, *, gone: bool = False) -> list[bytes]:
    """What the log says of a fact; ``gone``: what takes it back."""
    kind, about, value = fact
    number = int(value)
    if kind == "quota":
        entity = [{"entity_type": type_, "entity_name": name} for type_, name in about]
        return [
            record(RecordType.CLIENT_QUOTA, entity=entity, key="producer_byte_rate", value=float(number), remove=gone)
        ]
    if kind == "scram":
        keys = {"salt": b"key", "stored_key": b"key", "server_key": b"key", "iterations": number}
        if gone:
            return [record(RecordType.REMOVE_USER_SCRAM_CREDENTIAL, name=about, mechanism=1)]
        return [record(RecordType.USER_SCRAM_CREDENTIAL, name=about, mechanism=1, **keys)]
    if kind == "acl":
        pattern, type_, name, principal = about
        acl_id = uuid5(NAMESPACE_OID, repr(fact))
        if gone:
            return [record(RecordType.REMOVE_ACCESS_CONTROL_ENTRY, id=acl_id)]
        types = {"Topic": 2, "Group": 3, "TransactionalId": 5}
        return [
            record(
                RecordType.ACCESS_CONTROL_ENTRY,
                id=acl_id,
                resource_type=types[type_],
                resource_name=name,
                pattern_type=pattern,
                principal=f"User:{principal}",
                host="*",
                operation=3 if value == "1" else 4,
                permission_type=3,
            )
        ]
    if kind == "token":
        if gone:
            return [record(RecordType.REMOVE_DELEGATION_TOKEN, token_id=about)]
        names = {"owner": f"User:{about}", "requester": f"User:{about}", "renewers": []}
        times = {"issue_timestamp": 1, "max_timestamp": 3, "expiration_timestamp": number}
        return [record(RecordType.DELEGATION_TOKEN, token_id=about, **names, **times)]
    return [config("x", None if gone else value, about, 4 if kind == "broker" else 2)]


# Characters that ZooKeeper takes in a path, those among them that matter to one encoding or another.
NAMES = st.text(st.sampled_from("aB0 +%*~-_.,=@:<>é漢/\\&?#"), min_size=1, max_size=5) | st.sampled_from(
    ["<default>", "a b", "a+b", "%20", "CN=x, O=y"]
)
IN_PATHS = NAMES.filter(lambda name: "/" not in name and name not in (".", ".."))


@st.composite
def spellings(draw: st.DrawFn, name: str) -> str:
    """Any of the ways to write a name so that Kafka reads it back."""
    found = ""
    for char in name:
        escaped = "".join(f"%{byte:02X}" if draw(st.booleans()) else f"%{byte:02x}" for byte in char.encode())
        plain = "+" if char == " " else char if char not in "%+/" else escaped
        found += draw(st.sampled_from([escaped, plain]))
    return quote(name, safe="") if found in ("<default>", ".", "..") else found


ENTITIES = st.one_of(
    st.tuples(st.tuples(st.sampled_from(["user", "client-id", "ip"]), st.none() | NAMES)),
    st.tuples(st.tuples(st.just("client-id"), st.none() | NAMES), st.tuples(st.just("user"), st.none() | NAMES)),
)
FACTS: st.SearchStrategy[Fact] = st.tuples(
    st.shared(st.none()).flatmap(
        lambda _: st.one_of(
            st.tuples(st.just("quota"), ENTITIES),
            st.tuples(st.just("scram"), NAMES),
            st.tuples(
                st.just("acl"),
                st.tuples(
                    st.sampled_from([3, 4]), st.sampled_from(["Topic", "Group", "TransactionalId"]), IN_PATHS, NAMES
                ),
            ),
            st.tuples(st.just("token"), NAMES),
            st.tuples(st.just("broker"), st.sampled_from(["", "1", "01", "2"])),
            st.tuples(st.just("topic"), st.sampled_from(sorted(TOPIC_IDS))),
        )
    ),
    st.sampled_from(["1", "2"]),
).map(lambda each: (*each[0], each[1]))


def key_of(fact: Fact) -> tuple[Any, ...]:
    """What of a fact is its key: an ACL has no value, all of it is the key."""
    return fact if fact[0] == "acl" else fact[:2]


def znode_key(fact: Fact) -> tuple[Any, ...]:
    """Facts of one znode."""
    kind, about, _ = fact
    if kind in ("quota", "scram"):
        return ("entity", (("user", about),) if kind == "scram" else about)
    return (kind, about[:3] if kind == "acl" else about)


def one_a_znode(facts: Sequence[Fact]) -> list[Fact]:
    return list({znode_key(each): each for each in facts}.values())


def names_in(fact: Fact) -> set[str]:
    kind, about, _ = fact
    if kind == "quota":
        return {name for _, name in about if name is not None}
    return {about} if kind in ("scram", "token") else set()


Spelt = tuple[Fact, Mapping[str, str]]
"""A fact and how its names are spelt."""


def draw_spelt(draw: st.DrawFn, fact: Fact) -> Spelt:
    return fact, {name: draw(spellings(name)) for name in names_in(fact)}


def replay_of(before: Sequence[bytes], after: Sequence[bytes] = ()) -> LogReplay:
    """The log; M lies behind ``before``."""
    version = record(RecordType.FEATURE_LEVEL, name="metadata.version", feature_level=required_level("3.9"))
    topics = [each for name, topic_id in TOPIC_IDS.items() for each in (topic(name, topic_id), partition(0, topic_id))]
    first = [version, *topics, *before]
    found = LogReplay(len(first) - 1, DECODING.fingerprints, "3.9")
    found.apply(Chunk(log(*first, *after), since=0, up_to=len(first) + len(after)))
    return found


def tree_of_topics() -> Tree:
    tree = Tree()
    for name, topic_id in TOPIC_IDS.items():
        tree[f"/brokers/topics/{name}"] = json.dumps(
            {"topic_id": kafka_uuid(topic_id), "partitions": {"0": [1, 2, 3]}}
        ).encode()
        state = {"leader": 1, "leader_epoch": 0, "controller_epoch": 1, "isr": [1, 2, 3]}
        tree[f"/brokers/topics/{name}/partitions/0/state"] = json.dumps(state).encode()
        tree[f"/brokers/topics/{name}/partitions/0"] = tree[f"/brokers/topics/{name}/partitions"] = b""
    return tree


def verdict(tree: Tree, later: Tree, replay: LogReplay) -> Verdict:
    """As the gate asks: everything once, then the suspects again, in ``later`` from then on."""
    rows = [
        *read_everything_else(tree, DECODING),
        *read_topics(tree, topic_names(tree), DECODING),
        canonical_rows.metadata_version("3.9", covered=True),
    ]
    found = compare(rows, every_version(replay))
    suspects: Sequence[Difference] = found.differences
    obstacles, undecoded = [], list(found.undecoded)
    for _ in range(3):
        again = read_again(later, suspects, DECODING)
        look = look_again(
            suspects, again, list(replay.versions_of(keys_in_question(suspects, again), replay.start)), replay.touched
        )
        obstacles += look.obstacles
        undecoded += look.undecoded
        suspects = look.suspects
    assert not undecoded
    return verdict_of(found.both, suspects, obstacles)


def tree_of(spelt: Sequence[Spelt]) -> Tree:
    return Tree({**tree_of_topics(), **dict(znode_of(*each) for each in spelt)})


@st.composite
def clusters(draw: st.DrawFn) -> list[Spelt]:
    """What both sides have, each znode's name spelt in some way."""
    return [draw_spelt(draw, each) for each in one_a_znode(draw(st.lists(FACTS, max_size=4)))]


@given(clusters())
@settings(max_examples=60, deadline=None)
def test_the_same_is_a_match_however_its_names_are_spelt(cluster: list[Spelt]) -> None:
    tree = tree_of(cluster)
    assert verdict(tree, tree, replay_of([each for fact, _ in cluster for each in records_of(fact)])) is Verdict.MATCH


@given(clusters(), st.data())
@settings(max_examples=120, deadline=None)
def test_a_difference_is_never_a_match_however_names_are_spelt(cluster: list[Spelt], data: st.DataObject) -> None:
    facts, tree = [fact for fact, _ in cluster], tree_of(cluster)
    replay = replay_of([each for fact in facts for each in records_of(fact)])
    planted = Tree(tree)
    how = data.draw(st.sampled_from(["more", "less", "another value", "twice", "garbled"]))
    if how == "more":
        fact = data.draw(FACTS.filter(lambda fact: key_of(fact) not in {key_of(each) for each in facts}))
        path, content = znode_of(*draw_spelt(data.draw, fact))
        if path in planted:
            return
        planted[path] = content
    elif facts:
        fact, names = data.draw(st.sampled_from(cluster))
        mine, content = znode_of(fact, names)
        kind, about, value = fact
        if how == "less":
            del planted[mine]
        elif how == "another value":
            planted[mine] = znode_of((kind, about, "2" if value == "1" else "1"), names)[1]
        elif how == "garbled":
            planted[mine] = b"{ not json"
        else:
            path, content = znode_of(*draw_spelt(data.draw, fact))
            if path in planted:
                return
            planted[path] = content
    else:
        return
    assert verdict(planted, planted, replay) is Verdict.MISMATCH
    # Put right between the looks, by nobody that the log knows of: not proven, where it was by taking something away.
    after = verdict(planted, tree, replay)
    assert (after is Verdict.MATCH) == (how in ("less", "another value", "garbled")) or (kind_of(fact), how) == (
        "acl",
        "another value",
    )


def kind_of(fact: Fact) -> str:
    return fact[0]


@given(clusters(), st.lists(FACTS, min_size=1, max_size=3), st.data())
@settings(max_examples=60, deadline=None)
def test_under_the_fence_what_was_touched_is_compared_however_names_are_spelt(
    cluster: list[Spelt], some: list[Fact], data: st.DataObject
) -> None:
    facts, tree = [fact for fact, _ in cluster], tree_of(cluster)
    known = {znode_key(each) for each in facts}
    made = [each for each in one_a_znode(some) if znode_key(each) not in known]
    before = [each for fact in facts for each in records_of(fact)]
    gone = data.draw(st.booleans())
    after = [each for fact in made for each in (*records_of(fact), *(records_of(fact, gone=True) if gone else ()))]
    proof = FinalProof.__new__(FinalProof)  # without a connection: this is about the comparison
    proof._decoding, proof._replay = DECODING, replay_of(before, after)
    written = [znode_of(*draw_spelt(data.draw, fact)) for fact in made]
    touched = len({key_of(fact) for fact in made})

    equal = proof.compare(Tree(tree if gone else {**tree, **dict(written)}))
    equal.require_equal()
    assert equal.keys == touched
    if made:
        wrong = Tree({**tree, **dict(written)} if gone else tree)
        with pytest.raises(StepFailed, match="ZooKeeper and the metadata log differ in"):
            proof.compare(wrong).require_equal()
        path, _ = written[0]
        garbled = Tree({**tree, **({} if gone else dict(written)), path: b"{ not json"})
        with pytest.raises(StepFailed, match="not JSON"):
            proof.compare(garbled).require_equal()


def test_what_could_not_be_read_and_then_says_what_kraft_does_not_have_is_found() -> None:
    tree = tree_of_topics()
    quota = json.dumps({"version": 1, "config": {"producer_byte_rate": "1"}}).encode()
    garbled, readable = (Tree({**tree, "/config/clients/a+b": data}) for data in (b"{ not json", quota))
    assert verdict(garbled, readable, replay_of([])) is Verdict.MISMATCH
    assert verdict(garbled, tree, replay_of([])) is Verdict.INCONCLUSIVE


def test_what_was_planted_under_another_spelling_of_a_name_that_kraft_does_not_have_is_found() -> None:
    tree = tree_of_topics()
    quota = json.dumps({"version": 1, "config": {"producer_byte_rate": "1"}}).encode()
    planted = Tree({**tree, "/config/users/CN%3Dx%2C+O%3Dy": quota, "/config/clients/a+b": quota})
    assert verdict(planted, planted, replay_of([])) is Verdict.MISMATCH
    assert verdict(planted, tree, replay_of([])) is Verdict.INCONCLUSIVE
    assert verdict(tree, tree, replay_of([])) is Verdict.MATCH
