"""The class of a consumer group: every one, what decides it, and that it never says more than was read."""

from __future__ import annotations

import dataclasses

import pytest
from groups_seen_as import HOUR, NOW, OLD_ID, OTHER_ID, kafka, look, member, new, registered, zookeeper
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.cluster.consumer_groups import GroupClass
from kraft_runbook.cluster.unread import Unread, was_read
from kraft_runbook.groups.classify import RECENT_MS, classify, kafka_mode, needs_zookeeper
from kraft_runbook.groups.look import GroupLook, Kind, Mode, Owner
from kraft_runbook.groups.members import is_scala_id, registration, topics_meant

OLD, FOREIGN, MIGRATING = (member(kind, f"g_{kind}") for kind in (Kind.OLD, Kind.FOREIGN, Kind.MIGRATING))
EMBEDDED = new(MIGRATING.id)
KC = new("app")
FENCE = {("t", 0): Owner("fence", True)}
OWNED = {("t", 0): Owner(f"{OLD_ID}-0", False)}
T0 = ("t", 0)

CASES = {
    "old": (look(zookeeper(OLD)), GroupClass.ALL_OLD),
    "old, an empty group in Kafka": (look(zookeeper(OLD), kafka()), GroupClass.ALL_OLD),
    "old, mode kafka": (look(zookeeper(OLD, mode=Mode.KAFKA)), GroupClass.ALL_OLD),
    "old beside a fence": (look(zookeeper(OLD, owners=FENCE)), GroupClass.ALL_OLD),
    "old and migrating": (look(zookeeper(OLD, MIGRATING), kafka(EMBEDDED)), GroupClass.MIXED_OLD),
    "migrating": (look(zookeeper(MIGRATING), kafka(EMBEDDED)), GroupClass.ALL_MIGRATING),
    "migrating, mode kafka": (look(zookeeper(MIGRATING, mode=Mode.KAFKA), kafka(EMBEDDED)), GroupClass.ALL_MIGRATING),
    "migrating and new, mode kafka": (
        look(zookeeper(MIGRATING, mode=Mode.KAFKA), kafka(EMBEDDED, KC)),
        GroupClass.MIXED_NEW,
    ),
    "migrating and new, no mode": (look(zookeeper(MIGRATING), kafka(EMBEDDED, KC)), GroupClass.CONTRADICTORY),
    "migrating and new, of the name that a migrating member once had": (
        look(zookeeper(MIGRATING, embedded=("g_app-7-former",)), kafka(EMBEDDED, new("g_app-7"))),
        GroupClass.CONTRADICTORY,
    ),
    "old and new, of the name that a migrating member once had": (
        look(zookeeper(OLD, embedded=("g_app-7-former",)), kafka(new("g_app-7"))),
        GroupClass.CONTRADICTORY,
    ),
    "migrating and new, mode zookeeper": (
        look(zookeeper(MIGRATING, mode=Mode.ZOOKEEPER), kafka(EMBEDDED, KC)),
        GroupClass.CONTRADICTORY,
    ),
    "migrating and new, mode nonsense": (
        look(zookeeper(MIGRATING, mode=Mode.OTHER), kafka(EMBEDDED, KC)),
        GroupClass.CONTRADICTORY,
    ),
    "all three, mode kafka": (
        look(zookeeper(OLD, MIGRATING, mode=Mode.KAFKA), kafka(EMBEDDED, KC)),
        GroupClass.CONTRADICTORY,
    ),
    "old and new": (look(zookeeper(OLD), kafka(KC)), GroupClass.CONTRADICTORY),
    "foreign and new": (look(zookeeper(FOREIGN), kafka(KC)), GroupClass.CONTRADICTORY),
    "new": (look(zookeeper(), kafka(KC)), GroupClass.ALL_NEW),
    "new, offsets just left": (look(zookeeper(offsets={T0: 5}), kafka(KC)), GroupClass.ALL_NEW),
    "new behind a fence": (look(zookeeper(owners=FENCE), kafka(KC)), GroupClass.ALL_NEW),
    "foreign": (look(zookeeper(FOREIGN)), GroupClass.FOREIGN),
    "foreign and old": (look(zookeeper(FOREIGN, OLD)), GroupClass.FOREIGN),
    "fence": (look(zookeeper(owners=FENCE, offsets={T0: 5})), GroupClass.FENCED),
    "offsets of an hour": (look(zookeeper(offsets={T0: 5}, age=HOUR)), GroupClass.OFFSETS_ONLY),
    "offsets of more than an hour": (look(zookeeper(offsets={T0: 5}, age=HOUR + 1)), GroupClass.LEFT_BEHIND),
    "one of two offsets is young": (
        look(
            dataclasses.replace(
                zookeeper(),
                offsets=zookeeper(offsets={T0: 5}, age=2 * HOUR).offsets
                | zookeeper(offsets={("t", 1): 5}, age=1).offsets,
            )
        ),
        GroupClass.OFFSETS_ONLY,
    ),
    "nothing at all": (look(zookeeper()), GroupClass.LEFT_BEHIND),
    "nothing, and no clock": (look(zookeeper(), now=Unread("no clock")), GroupClass.LEFT_BEHIND),
    "new, of the consumer protocol": (
        look(zookeeper(), dataclasses.replace(kafka(KC, assignor="uniform"), group_type="consumer")),
        GroupClass.ALL_NEW,
    ),
    "old and new, of the consumer protocol": (
        look(zookeeper(OLD), dataclasses.replace(kafka(KC), group_type="consumer")),
        GroupClass.CONTRADICTORY,
    ),
    "Kafka says Dead": (look(zookeeper(OLD), kafka(state="Dead")), GroupClass.ALL_OLD),
}
UNCLEAR = {
    "znodes": (look(Unread("NoAuth")), "NoAuth"),
    "Kafka": (look(zookeeper(OLD), Unread("broker 2 did not answer")), "broker 2 did not answer"),
    "clock": (look(zookeeper(offsets={T0: 5}), now=Unread("no right to create")), "no right to create"),
    "rebalancing": (look(zookeeper(OLD), kafka(state="PreparingRebalance")), "PreparingRebalance"),
    "completing": (look(zookeeper(), kafka(KC, state="CompletingRebalance")), "CompletingRebalance"),
    "no state": (look(zookeeper(), dataclasses.replace(kafka(), state="")), "in no state"),
    "a registration": (look(zookeeper(dataclasses.replace(OLD, unreadable="garbage"))), "garbage"),
    "half registered": (look(zookeeper(OLD, also_migrating=("g_lost",))), "g_lost in migration/ids and not in ids"),
    "owner without id": (look(zookeeper(owners=OWNED)), "nobody is registered"),
    "another type": (look(zookeeper(), kafka(KC, kind="connect")), "of the type connect"),
    "a share group": (
        look(zookeeper(OLD), dataclasses.replace(kafka(), state="", group_type="share")),
        "is a share group, which consumers can't join: delete it there",
    ),
    "a new member rebalances in the consumer protocol": (
        look(zookeeper(), dataclasses.replace(kafka(KC, state="Reconciling"), group_type="consumer")),
        "Kafka's group is Reconciling",
    ),
    "offsets in Kafka": (
        look(zookeeper(OLD), kafka(offsets=Unread("not allowed"))),
        "its offsets in Kafka: not allowed",
    ),
    "cut off, with a consumer.id of its own": (
        look(zookeeper(MIGRATING, embedded=("g_app-7-uuid",)), kafka(EMBEDDED, new("g_app-7"))),
        "g_app-7 in Kafka's group, of a ZooKeeper consumer that is not in migration/ids: it may be cut off",
    ),
    "cut off": (look(zookeeper(), kafka(new(OLD_ID))), "cut off from ZooKeeper"),
}


@pytest.mark.parametrize(("seen", "expected"), CASES.values(), ids=CASES)
def test_each_class(seen: GroupLook, expected: GroupClass) -> None:
    standing = classify(seen)
    assert standing.group_class is expected, standing.why
    assert standing.why


def test_every_class_has_a_case() -> None:
    assert {expected for _, expected in CASES.values()} | {GroupClass.UNKNOWN} == set(GroupClass)


@pytest.mark.parametrize(("seen", "why"), UNCLEAR.values(), ids=UNCLEAR)
def test_what_can_not_be_told_is_unknown_and_says_why(seen: GroupLook, why: str) -> None:
    standing = classify(seen)
    assert standing.group_class is GroupClass.UNKNOWN
    assert why in standing.why


def test_a_new_members_name_may_begin_as_the_group_does() -> None:
    """g_consumer_1 is a common client id, and no ZooKeeper consumer's."""
    assert classify(look(zookeeper(), kafka(new("g_consumer_1")))).group_class is GroupClass.ALL_NEW


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (look(zookeeper(OLD)), True),
        (look(zookeeper(also_migrating=("g_lost",))), True),
        (look(zookeeper(owners=OWNED)), True),
        (look(zookeeper(owners=FENCE)), False),
        (look(zookeeper(offsets={T0: 1})), False),
        (look(zookeeper(), Unread("broker 2 did not answer")), False),
        (look(zookeeper(OLD), kafka(state="PreparingRebalance")), True),
    ],
)
def test_who_needs_zookeeper_is_told_by_its_znodes_alone(seen: GroupLook, expected: bool) -> None:
    assert needs_zookeeper(seen) is expected
    assert not was_read(needs_zookeeper(look(Unread("NoAuth"))))


# -- members -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        (OLD_ID, registered(), Kind.OLD),
        ("g_given-by-consumer.id", registered(), Kind.OLD),
        (OLD_ID, registered(subscription={r"t\..*": 1}, pattern="white_list"), Kind.OLD),
        # kazoo-go
        ("host:6ba7b810-9dad-11d1-80b4-00c04fd430c8", registered(timestamp=1699999999), Kind.FOREIGN),
        ("g_6ba7b810-9dad-11d1-80b4-00c04fd430c8", registered(), Kind.FOREIGN),
        # kafka-node
        ("g_x", registered(subscription={"t": 1, "u": 1}, pattern="white_list"), Kind.FOREIGN),
        ("g_x", registered(timestamp=1699999999999), Kind.FOREIGN),
        ("g_x", registered(version=2), Kind.FOREIGN),
        ("host:pid:uuid", b"t", Kind.FOREIGN),  # pykafka
        ("anything", b"", Kind.FOREIGN),
        ("anything", b"[" * 100_000, Kind.FOREIGN),
        ("anything", b"\xff", Kind.FOREIGN),
    ],
)
def test_who_registered(name: str, data: bytes, kind: Kind) -> None:
    found = registration("g", name, data, frozenset())
    assert (found.kind, found.unreadable) == (kind, "")
    assert registration("g", name, data, frozenset({name})).kind is Kind.MIGRATING


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        registered(subscription=["t"]),
        registered(subscription={"t": "2"}),
        registered(subscription={"t\ud800": 2}),  # half a pair: no request can carry that name
        b"\xff",
    ],
)
def test_a_scala_id_whose_data_is_not_readable_is_unreadable(data: bytes) -> None:
    assert registration("g", OLD_ID, data, frozenset()).unreadable
    assert registration("g", "any", data, frozenset({"any"})).unreadable


def test_a_scala_id() -> None:
    assert is_scala_id("g", OLD_ID) and is_scala_id("a_b", "a_b_my-host-1699999999999-f")
    assert not is_scala_id("g", "h" + OLD_ID[1:]) and not is_scala_id("g", "g_consumer-1")


# -- whatever is read --------------------------------------------------------------------------------------------------

kinds = st.sampled_from([Kind.OLD, Kind.FOREIGN, Kind.MIGRATING])
members = st.lists(kinds, max_size=4).map(lambda some: [member(k, f"g_{k}_{n}") for n, k in enumerate(some)])
states = st.sampled_from(["Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance", "Assigning", ""])


@st.composite
def looks(draw: st.DrawFn) -> GroupLook:
    some = draw(members)
    embedded = [new(m.id) for m in some if m.kind is Kind.MIGRATING and draw(st.booleans())]
    others = [new(f"app-{n}") for n in range(draw(st.integers(0, 2)))]
    side = zookeeper(
        *some,
        mode=draw(st.sampled_from(Mode)),
        owners=draw(st.sampled_from([{}, FENCE, OWNED])),
        offsets=draw(st.sampled_from([{}, {T0: 5}, {T0: None}])),
        age=draw(st.integers(0, 3 * HOUR)),
        also_migrating=draw(st.sampled_from([(), (), ("g_lost",)])),
    )
    of_kafka = draw(
        st.one_of(st.none(), st.just(Unread("unread")), states.map(lambda s: kafka(*embedded, *others, state=s)))
    )
    return look(
        draw(st.sampled_from([side, side, side, Unread("NoAuth")])),
        of_kafka,
        now=draw(st.sampled_from([NOW, NOW, Unread("no clock")])),
    )


@given(looks())
def test_nothing_unread_or_in_motion_has_a_class(seen: GroupLook) -> None:
    found = classify(seen).group_class
    settled = seen.kafka is None or (was_read(seen.kafka) and seen.kafka.state in ("Stable", "Empty", "Dead"))
    if not was_read(seen.zookeeper) or not settled:
        assert found is GroupClass.UNKNOWN


@given(looks())
def test_new_members_beside_such_as_follow_zookeeper_are_always_a_contradiction(seen: GroupLook) -> None:
    standing = classify(seen)
    if standing.group_class is GroupClass.UNKNOWN or not was_read(seen.zookeeper):
        return
    if standing.new and seen.zookeeper.members:
        expected = GroupClass.MIXED_NEW if kafka_mode(seen.zookeeper) else GroupClass.CONTRADICTORY
        assert standing.group_class is expected


@given(looks())
def test_a_class_that_says_nobody_is_there_has_nobody_registered(seen: GroupLook) -> None:
    nobody = {GroupClass.LEFT_BEHIND, GroupClass.OFFSETS_ONLY, GroupClass.FENCED, GroupClass.ALL_NEW}
    found = classify(seen).group_class
    if found in nobody:
        assert needs_zookeeper(seen) is False
    elif found is not GroupClass.UNKNOWN:
        assert needs_zookeeper(seen) is True


@given(st.integers(0, 3 * RECENT_MS))
def test_the_hour_is_by_zookeepers_clock(age: int) -> None:
    found = classify(look(zookeeper(offsets={T0: 1}, age=age))).group_class
    assert found is (GroupClass.OFFSETS_ONLY if age <= RECENT_MS else GroupClass.LEFT_BEHIND)


def test_other_ids_do_not_matter_to_embedded_members() -> None:
    """Two migrating members, each with its embedded consumer in Kafka's group: none of them is new."""
    both = [member(Kind.MIGRATING, OLD_ID), member(Kind.MIGRATING, OTHER_ID)]
    standing = classify(look(zookeeper(*both, mode=Mode.KAFKA), kafka(new(OLD_ID), new(OTHER_ID))))
    assert (standing.group_class, standing.new) == (GroupClass.ALL_MIGRATING, ())


EVERY = frozenset({"t", "t.a", "txa", "u", "__consumer_offsets"})


@pytest.mark.parametrize(
    ("pattern", "text", "topics"),
    [
        ("static", "t.a", {"t.a"}),
        ("static", "made.later", {"made.later"}),
        ("white_list", "t[.].*", {"t.a"}),
        ("white_list", "t\\..*", {"t.a"}),
        ("white_list", "t\\\\..*", {"t.a"}),
        ("white_list", ' "t, u" ', {"t", "u"}),
        ("white_list", ".*", {"t", "t.a", "txa", "u"}),
        ("black_list", "t.*", {"u"}),
        ("white_list", "[\\w-.]+", {"t", "t.a", "txa", "u"}),
        ("white_list", "[\\p{Alpha}-.]+", {"t", "t.a", "txa", "u"}),
        ("white_list", "\\p{Alnum}", {"t", "u"}),
        ("white_list", "\\Qt.a\\E|\\Qu", {"t.a", "u"}),
        ("white_list", "t\\z", {"t"}),
        ("white_list", "\\[x[a]|u|[]t]", {"t", "u"}),
        ("white_list", "[\\[t]", {"t"}),
    ],
)
def test_which_topics_a_subscription_means(pattern: str, text: str, topics: set[str]) -> None:
    assert topics_meant(pattern, text, EVERY) == topics


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("white_list", "\\p{L}+"),
        ("white_list", "x(?i)y"),
        ("black_list", "("),
        ("white_list", "[a-z&&[^t]]"),
        ("go", "t"),
    ],
)
def test_an_expression_that_is_not_read_as_java_reads_it_means_no_topics(pattern: str, text: str) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        topics_meant(pattern, text, EVERY)
