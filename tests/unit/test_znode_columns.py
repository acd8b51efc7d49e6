"""Znodes to columns: for every topic that is not odd the columns say exactly what the generic rows say, whatever stands
in the znodes.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kraft_runbook.metadata import canonical_rows
from kraft_runbook.metadata.canonical_rows import Fingerprints, Row
from kraft_runbook.metadata.topic_columns import TopicColumns
from kraft_runbook.metadata.znodes.state_columns import States, states_of
from kraft_runbook.metadata.znodes.znode_columns import (
    Assignments,
    TopicZnodes,
    assignments_of,
    is_plain_name,
    together,
)
from kraft_runbook.metadata.znodes.znode_rows import Decoding, assigned_partitions, rows_of

DECODING = Decoding(Fingerprints(b"salt"))
TOPIC = (
    b'{"removing_replicas":{},"partitions":{"1":[2,1],"0":[1,2]},"topic_id":"AAAAAAAAAAAAAAAAAAAAAA",'
    b'"adding_replicas":{},"version":3}'
)
STATE = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":0,"isr":[1,2]}'
CONFIG = b'{"version":1,"config":{"retention.ms":"1"}}'
Tree = dict[str, bytes]


# -- the columns as rows, and the generic rows -------------------------------------------------------------------------


def rows_in(columns: TopicColumns) -> dict[str, list[Row]]:
    """What the columns say, topic by topic, as rows."""
    rows = {name: [canonical_rows.topic(name, each)] for name, each in zip(columns.names, columns.ids, strict=True)}
    of = columns.partitions

    def values(lists: Any, at: int) -> list[int]:
        return [int(each) for each in lists.values[lists.offsets[at] : lists.offsets[at + 1]]]

    for at in range(len(of)):
        name, partition = columns.names[of.topic[at]], int(of.partition[at])
        rows[name].append(
            canonical_rows.assignment(
                name, partition, values(of.replicas, at), values(of.adding, at), values(of.removing, at)
            )
        )
        rows[name].append(
            canonical_rows.partition_state(
                name, partition, int(of.leader[at]), int(of.leader_epoch[at]), values(of.isr, at), int(of.recovery[at])
            )
        )
    for topic, key, value in zip(columns.configs.topic, columns.configs.name, columns.configs.value, strict=True):
        rows[columns.names[topic]].append(canonical_rows.topic_config(columns.names[topic], key, value))
    return {name: sorted(each, key=repr) for name, each in rows.items()}


def generic_rows(tree: Tree, name: str) -> list[Row]:
    """What ``read_topics`` gives of a topic in this tree."""
    above = f"/brokers/topics/{name}"
    listed = {
        path.removeprefix(f"{above}/partitions/").partition("/")[0]
        for path in tree
        if path.startswith(f"{above}/partitions/")
    }
    wanted = listed | set(map(str, assigned_partitions(tree.get(above, b""))))
    paths = [above, *(f"{above}/partitions/{partition}/state" for partition in wanted), f"/config/topics/{name}"]
    return sorted((row for path in paths if path in tree for row in rows_of(path, tree[path], DECODING)), key=repr)


def columns_of(tree: Tree, names: Sequence[str], block: int = 3) -> TopicColumns:
    """As ``read_topic_columns`` does it, from a tree in memory."""

    children: dict[str, set[str]] = {}
    for path in tree:
        above, found, below = path.partition("/partitions")
        if found:
            children.setdefault(above, set()).update(below.split("/")[1:2])

    def znodes(name: str) -> TopicZnodes:
        above = f"/brokers/topics/{name}"
        return TopicZnodes(
            name,
            tree.get(above),
            tree.get(f"/config/topics/{name}"),
            len(children[above]) if above in children else None,
        )

    assignments = [
        assignments_of([znodes(name) for name in names[at : at + block]]) for at in range(0, len(names), block)
    ]
    states = [
        tree.get(f"/brokers/topics/{name}/partitions/{partition}/state")
        for each in assignments
        for name, count in zip(each.names, each.counts, strict=True)
        for partition in range(count)
    ]
    return together(assignments, [states_of(states[at : at + block]) for at in range(0, len(states), block)])


def tree_of(
    name: str, topic: bytes = TOPIC, state: bytes = STATE, config: bytes | None = CONFIG, partitions: int = 2
) -> Tree:
    above = f"/brokers/topics/{name}"
    tree = {above: topic, **{f"{above}/partitions/{partition}/state": state for partition in range(partitions)}}
    return tree if config is None else tree | {f"/config/topics/{name}": config}


def agrees(tree: Tree, names: Sequence[str]) -> set[str]:
    """Asserts that the columns say what the generic rows say; the names of the topics that are not odd."""
    columns = columns_of(tree, names)
    shown = rows_in(columns)
    assert list(columns.names) == [name for name in names if name in shown]
    for name, rows in shown.items():
        assert rows == generic_rows(tree, name)
    return set(shown)


# -- what Kafka writes -------------------------------------------------------------------------------------------------


def znode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


ids = st.integers(0, 2**31 - 1) | st.integers(0, 4)
replicas = st.lists(ids, min_size=1, max_size=4, unique=True)


@st.composite
def topics(draw: st.DrawFn) -> Tree:
    """A topic as Kafka writes it, its name left open."""
    count = draw(st.sampled_from([1, 2, 3, 11]))
    numbers = [str(number) for number in range(count)]
    changes = st.dictionaries(st.sampled_from(numbers), replicas, max_size=2)
    partitions = {number: draw(replicas) for number in draw(st.permutations(numbers))}
    topic_id = urlsafe_b64encode(draw(st.binary(min_size=16, max_size=16))).decode().rstrip("=")
    topic = {
        "removing_replicas": draw(changes),
        "partitions": partitions,
        "topic_id": topic_id,
        "adding_replicas": draw(changes),
        "version": 3,
    }
    tree = {"/brokers/topics/%": znode(topic), "/brokers/topics/%/partitions": b""}
    for number in numbers:
        state = {
            "controller_epoch": 1,
            "leader": draw(ids | st.just(-1)),
            "version": 1,
            "leader_epoch": draw(ids),
            "isr": draw(replicas | st.just([])),
        }
        tree[f"/brokers/topics/%/partitions/{number}/state"] = znode(
            state | draw(st.sampled_from([{}, {"leader_recovery_state": 1}]))
        )
    config = draw(
        st.none()
        | st.dictionaries(
            st.text(st.characters(codec="utf-8"), max_size=5).filter(lambda name: not canonical_rows.is_hidden(name)),
            st.text(st.characters(codec="utf-8"), max_size=5),
            max_size=3,
        )
    )
    return tree if config is None else tree | {"/config/topics/%": znode({"version": 1, "config": config})}


def named(tree: Tree, name: str) -> Tree:
    return {path.replace("%", name): data for path, data in tree.items()}


@given(st.lists(topics(), max_size=5))
@settings(max_examples=100, deadline=None)
def test_nothing_that_kafka_writes_is_odd(some: list[Tree]) -> None:
    names = [f"t{number}" for number in range(len(some))]
    tree: Tree = {}
    for name, each in zip(names, some, strict=True):
        tree |= named(each, name)
    assert agrees(tree, names) == set(names)


def test_states_in_any_order_of_their_fields_are_sure() -> None:
    states = states_of(
        [
            b'{"controller_epoch":70,"leader":-1,"version":1,"leader_epoch":123456789,"isr":[2]}',
            b'{"isr":[10,200,3000],"leader_recovery_state":1,"leader_epoch":4,"controller_epoch":1,"leader":200}',
            b'{"isr":[],"leader":5,"leader_epoch":6,"controller_epoch":1}',
            STATE,
        ]
    )
    assert states.sure.all()
    assert (states.leader.tolist(), states.leader_epoch.tolist(), states.recovery.tolist()) == (
        [-1, 200, 5, 1],
        [123456789, 4, 6, 0],
        [0, 1, 0, 0],
    )
    assert (states.isr.offsets.tolist(), states.isr.values.tolist()) == ([0, 1, 4, 4, 6], [2, 10, 200, 3000, 1, 2])


def test_a_topic_without_fields_that_kafka_does_not_need_is_not_odd() -> None:
    id_first = b'{"version":3,"topic_id":"AAAAAAAAAAAAAAAAAAAAAA","partitions":{"0":[10,200],"1":[7]}}'
    assert agrees(tree_of("a") | tree_of("b", id_first), ["a", "b"]) == {"a", "b"}


def test_a_field_that_kafka_does_not_write_leaves_the_topic_to_the_generic_code() -> None:
    assert agrees(tree_of("a") | tree_of("b", state=STATE.replace(b'"version":1', b'"x":1')), ["a", "b"]) == {"a"}


def test_brokers_that_are_added_and_removed_stand_with_their_partition() -> None:
    moving = TOPIC.replace(b'"removing_replicas":{}', b'"removing_replicas":{"1":[2]}').replace(
        b'"adding_replicas":{}', b'"adding_replicas":{"0":[3,4]}'
    )
    of = columns_of(tree_of("a") | tree_of("b", moving), ["a", "b"]).partitions
    assert (of.adding.offsets.tolist(), of.adding.values.tolist()) == ([0, 0, 0, 2, 2], [3, 4])
    assert (of.removing.offsets.tolist(), of.removing.values.tolist()) == ([0, 0, 0, 0, 1], [2])


def test_partitions_come_in_their_order_and_replicas_in_theirs() -> None:
    columns = columns_of(tree_of("a"), ["a"])
    assert columns.partitions.partition.tolist() == [0, 1]
    assert columns.partitions.replicas.values.tolist() == [1, 2, 2, 1]


@pytest.mark.parametrize(
    ("written", "otherwise"),
    [
        (b'"controller_epoch":1,', b""),
        (b'"controller_epoch":1,', b'"controller_epoch":"1",'),
        (b'"isr":', b'"leader_recovery_state":2,"isr":'),
    ],
)
def test_a_state_that_kafka_does_not_read_is_not_sure(written: bytes, otherwise: bytes) -> None:
    assert written in STATE
    for texts in ([STATE, STATE.replace(written, otherwise)], [STATE, STATE.replace(written, otherwise), b"x"]):
        assert states_of(texts).sure.tolist()[:2] == [True, False]


# -- what Kafka does not write -----------------------------------------------------------------------------------------

FRAGMENTS = [
    b"null",
    b"true",
    b"1.0",
    b"1e0",
    b'"1"',
    b"NaN",
    b"Inf",
    b"Infinity",
    b"-Infinity",
    b"nan",
    b"-0",
    b"01",
    b"+1",
    b"2147483648",
    b"-2147483649",
    b"9" * 30,
    b"1e999",
    b"[]",
    b"{}",
    b"[null]",
    b"[1,1]",
    b"[1.0]",
    b'["1"]',
    b"[true]",
    b"[[1]]",
    b"[2147483648]",
    b'"\\ud800"',
    b'"\\u0041"',
    b'"\xff"',
    b'"\xed\xa0\x80"',
    b'"\t"',
    b'"\x7f"',
    b'"\0"',
    b"\xef\xbb\xbf",
    b"\n",
    b"\r",
    b"\t",
    b"\x0b",
    b"\0",
    b" ",
    b"}",
    b"{",
    b"[",
    b"]",
    b",",
    b":",
    b'"',
    b"}{",
    b"}\n{",
    b"0",
    b"-",
    b"/**/",
    b"//",
    b'"isr":[9],',
    b'"leader":7,',
    b'"leader\\u005fepoch":7,',
    b'"leader_recovery_state":null,',
    b'"leader_recovery_state":true,',
    b'"leader_recovery_state":7,',
    b'"x":{"leader":9},',
    b'"x":[[[]]],',
    b'"x":"{",',
    b'"x":Inf,',
    b'"x":NaN,',
    b'"x":"\xff",',
    b'"partitions":{},',
    b'"partitions":{"0":[1]},',
    b'"0":[1],',
    b'"topic_id":null,',
    b'"topic_id":"short",',
    b'"adding_replicas":null,',
    b'"adding_replicas":{"0":[3]},',
    b'"adding_replicas":{"0":null},',
    b'"adding_replicas":{"7":null},',
    b'"removing_replicas":[1],',
    b'"config":{},',
    b'"config":null,',
    b'"config":{"x":1},',
    b'"config":{"\\ud800":"x"},',
    STATE,
    TOPIC,
    CONFIG,
]


SIZES = st.integers(0, max(map(len, (TOPIC, STATE, CONFIG))) - 1)
CUTS = st.lists(
    st.tuples(
        st.booleans(),
        SIZES,
        st.integers(0, 1),
        st.sampled_from([0, 0, 1, 2]) | SIZES,
        st.sampled_from([*FRAGMENTS, b""]),
    ),
    max_size=3,
)


@st.composite
def mutated(draw: st.DrawFn, base: bytes) -> bytes:
    """A znode's data with up to three pieces put in, cut out or replaced."""
    for at_an_end, at, beside, length, fragment in draw(CUTS):
        # At the bytes where a value, a member or a text begins or ends, more often than elsewhere.
        places = [at for at, byte in enumerate(base) if byte in b'{}[]":,'] + [len(base)]
        start = (places[at % len(places)] if at_an_end else at % (len(base) + 1)) + beside
        base = base[:start] + fragment + base[start + length :]
    return base


@given(
    st.lists(
        st.tuples(
            mutated(TOPIC),
            mutated(STATE),
            mutated(STATE),
            mutated(CONFIG),
            st.sampled_from(["", "none", "stray", "topic", "config", "0"]),
        ),
        max_size=4,
    )
)
@settings(max_examples=250, deadline=None)
def test_whatever_stands_in_the_znodes_columns_never_differ_from_the_rows(
    some: list[tuple[bytes, bytes, bytes, bytes, str]],
) -> None:
    tree: Tree = {}
    names = []
    for number, (topic, state, other, config, change) in enumerate(some):
        name = f"t{number}"
        names.append(name)
        tree |= tree_of(name, topic, state, config) | {f"/brokers/topics/{name}/partitions/1/state": other}
        if change == "stray":
            tree[f"/brokers/topics/{name}/partitions/2/state"] = STATE
        gone = {
            "topic": f"/brokers/topics/{name}",
            "config": f"/config/topics/{name}",
            "0": f"/brokers/topics/{name}/partitions/0/state",
        }
        if change == "none":
            tree = {path: data for path, data in tree.items() if not path.startswith(f"/brokers/topics/{name}")}
        tree.pop(gone.get(change, ""), None)
    agrees(tree, names)


@given(st.lists(mutated(STATE), min_size=1, max_size=6))
@example([STATE + STATE, b" "])
@settings(max_examples=250, deadline=None)
def test_what_is_sure_of_a_state_is_what_json_says_of_it(texts: list[bytes]) -> None:
    states = states_of(texts)
    for at, text in enumerate(texts):
        if not states.sure[at]:
            continue
        isr = [int(each) for each in states.isr.values[states.isr.offsets[at] : states.isr.offsets[at + 1]]]
        row = canonical_rows.partition_state(
            "t", 0, int(states.leader[at]), int(states.leader_epoch[at]), isr, int(states.recovery[at])
        )
        assert [row] == rows_of("/brokers/topics/t/partitions/0/state", text, DECODING)


@pytest.mark.parametrize("fragment", FRAGMENTS)
@pytest.mark.parametrize("base", [TOPIC, STATE, CONFIG])
def test_a_piece_put_anywhere_makes_no_difference_that_the_rows_do_not_show(base: bytes, fragment: bytes) -> None:
    which = {TOPIC: "topic", STATE: "state", CONFIG: "config"}[base]
    trees = {}
    for start in range(len(base) + 1):
        for cut in (0, 1):
            name = f"t{len(trees)}"
            trees[name] = tree_of(name, **{which: base[:start] + fragment + base[start + cut :]})
    shown = rows_in(columns_of({path: data for tree in trees.values() for path, data in tree.items()}, list(trees)))
    for name, rows in shown.items():
        assert rows == generic_rows(trees[name], name)


@pytest.mark.parametrize(
    ("which", "old", "new"),
    [
        ("state", b'"leader":1', b'"leader":null'),
        ("state", b'"leader":1', b'"leader":1.0'),
        ("state", b'"leader":1', b'"leader":"1"'),
        ("state", b'"leader":1', b'"leader":true'),
        ("state", b'"leader":1', b'"leader":2147483648'),
        ("state", b'"leader":1,', b""),
        ("state", b'"version":1', b'"version":Inf'),
        ("state", b'"version":1', b'"version":"\xff"'),
        ("state", b'"version":1', b'"leader_recovery_state":null'),
        ("state", b"[1,2]", b"[1,1]"),
        ("state", b"[1,2]", b"[1,null]"),
        ("state", b"[1,2]", b'"12"'),
        ("state", b"]}", b"]}x"),
        ("state", STATE, b""),
        ("state", STATE, b"null"),
        ("state", STATE, b"null" + STATE),
        ("state", STATE, STATE + STATE),
        ("topic", b'"0":', b'"00":'),
        ("topic", b'"0":', b'"2":'),
        ("topic", b'"0":[1,2]', b'"0":[]'),
        ("topic", b'"0":[1,2]', b'"0":"12"'),
        ("topic", b'"0":[1,2]', b'"0":[1,true]'),
        ("topic", b'"0":[1,2]', b'"0":[2147483648]'),
        ("topic", b'"AAAAAAAAAAAAAAAAAAAAAA"', b"null"),
        ("topic", b'"AAAAAAAAAAAAAAAAAAAAAA"', b'"AAAAAAAAAAAAAAAAAAAAAB"'),
        ("topic", b'"adding_replicas":{}', b'"adding_replicas":{"0":[3,3]}'),
        ("topic", b'"adding_replicas":{}', b'"adding_replicas":[1]'),
        ("topic", TOPIC, b"not json"),
        ("config", b'"1"', b"1"),
        ("config", b'"1"', b'"\\ud800"'),
        ("config", CONFIG, b"not json"),
        ("config", b"retention.ms", b"listener.name.x.sasl.jaas.config"),
        ("config", b"retention.ms", b"reporter.api.key"),
    ],
)
def test_an_unusual_znode_makes_its_topic_odd_and_no_other(which: str, old: bytes, new: bytes) -> None:
    base = {"topic": TOPIC, "state": STATE, "config": CONFIG}[which]
    assert old in base
    tree = tree_of("a") | tree_of("b", **{which: base.replace(old, new)}) | tree_of("c")
    assert agrees(tree, ["a", "b", "c"]) == {"a", "c"}


def test_a_missing_or_a_stray_znode_makes_its_topic_odd_and_no_other() -> None:
    tree = (
        tree_of("a") | tree_of("stray", partitions=3) | tree_of("stateless", partitions=1) | tree_of("c", config=None)
    )
    tree["/brokers/topics/stateless/partitions/1/other"] = b""
    assert agrees(tree, ["a", "gone", "stray", "stateless", "c"]) == {"a", "c"}


def test_duplicate_keys_are_what_json_makes_of_them() -> None:
    tree = tree_of("a", state=STATE.replace(b'"version":1', b'"leader":7'), config=b'{"config":{"x":"1","x":"2"}}')
    assert agrees(tree, ["a"]) == {"a"}


def test_names_that_kafka_would_not_take_are_not_asked_for() -> None:
    assert [
        is_plain_name(name) for name in ("a", "a.b_c-D9", "", ".", "..", "a/b", "é", "a\n", "x" * 249, "x" * 250)
    ] == [
        True,
        True,
        False,
        False,
        False,
        False,
        False,
        False,
        True,
        False,
    ]


def test_nothing_has_no_columns() -> None:
    columns = together([], [])
    assert (len(columns), len(columns.partitions), len(columns.configs.topic)) == (0, 0, 0)
    assert isinstance(assignments_of([]), Assignments)
    assert isinstance(states_of([]), States)
