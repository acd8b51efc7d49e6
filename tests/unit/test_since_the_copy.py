"""What changed at the source since it was copied."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_runbook.cluster.unread import Unread
from kraft_runbook.rehearsal.since import (
    Changes,
    Keeping,
    KeptPaths,
    LookedAt,
    PathKind,
    SourceLook,
    changes_since,
    kind_of,
)


def kept_paths(zxid: int, znodes: Iterable[LookedAt]) -> KeptPaths:
    keeping = Keeping(zxid)
    for each in znodes:
        keeping.see(*each)
    return keeping.kept


COPIED = (
    LookedAt("/brokers/topics/a", 10),
    LookedAt("/brokers/topics/b", 20),
    LookedAt("/config/topics/a", 30),
    LookedAt("/config/clients/c", 40),
    LookedAt("/config/users/u", 41),
    LookedAt("/config/users/u/clients/c", 42),
    LookedAt("/kafka-acl/Topic/a", 43),
)
KEPT = kept_paths(100, COPIED)


def later(*changed: LookedAt, without: tuple[str, ...] = ()) -> SourceLook:
    there = {each.path: each for each in (*COPIED, *changed) if each.path not in without}
    return SourceLook(200, tuple(there.values()))


def test_nothing_changed() -> None:
    found = changes_since(KEPT, later())
    assert isinstance(found, Changes)
    assert not found
    assert str(found) == "nothing"


def test_new_set_and_gone_znodes_are_counted_by_kind_and_told_in_a_sentence() -> None:
    found = changes_since(
        KEPT,
        later(
            *(LookedAt(f"/brokers/topics/new-{number}", 150) for number in range(3)),
            LookedAt("/config/clients/c", 160),
            LookedAt("/brokers/topics/b", 170),
            LookedAt("/brokers/topics/b/partitions/0/state", 180),
            without=("/config/topics/a", "/config/users/u/clients/c"),
        ),
    )
    assert isinstance(found, Changes)
    assert found
    assert str(found) == "3 topics new, 1 topic changed, 1 quota changed, 1 topic config gone, 1 quota gone"


def test_a_znode_that_was_deleted_and_made_again_has_changed() -> None:
    assert str(changes_since(KEPT, later(LookedAt("/config/users/u", 150)))) == "1 user changed"


def test_what_was_set_while_the_tree_was_read_is_measured_by_what_was_read() -> None:
    kept = kept_paths(100, (LookedAt("/brokers/topics/a", 105),))
    assert str(changes_since(kept, SourceLook(200, (LookedAt("/brokers/topics/a", 105),)))) == "nothing"
    assert str(changes_since(kept, SourceLook(200, (LookedAt("/brokers/topics/a", 106),)))) == "1 topic changed"


def test_what_may_not_be_read_is_neither_gone_nor_the_same() -> None:
    found = changes_since(KEPT, SourceLook(200, COPIED[1:], unread=("/brokers/topics/a", "/config/users/new")))
    assert isinstance(found, Changes)
    assert found
    assert str(found) == "2 could not be read"


def test_another_ensemble_is_unread_and_nothing_new() -> None:
    found = changes_since(KEPT, SourceLook(99, ()))
    assert isinstance(found, Unread)
    assert "another ensemble" in found.reason


paths = st.builds(
    lambda where, name: where + name,
    st.sampled_from(["/brokers/topics/", "/config/topics/", "/config/users/", "/kafka-acl/Topic/", "/admin/"]),
    st.text("abcdefé", min_size=1, max_size=3),
)
znodes = st.dictionaries(paths, st.integers(1, 200)).map(lambda each: tuple(LookedAt(*item) for item in each.items()))


@given(znodes, znodes)
def test_the_counts_are_those_of_comparing_the_two_lists(
    before: tuple[LookedAt, ...], after: tuple[LookedAt, ...]
) -> None:
    kept = KeptPaths.from_dict(json.loads(json.dumps(kept_paths(100, before).to_dict())))
    found = changes_since(kept, SourceLook(100, after))
    assert isinstance(found, Changes)
    old, new = ({each.path: each.mzxid for each in some if kind_of(each.path)} for some in (before, after))
    assert sum(found.new.values()) == len(new.keys() - old.keys())
    assert sum(found.gone.values()) == len(old.keys() - new.keys())
    assert sum(found.changed.values()) == sum(new[each] > max(100, old[each]) for each in new.keys() & old.keys())
    assert len(kept) == len(old)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/brokers/topics/t/partitions/0/state", None),
        ("/brokers/ids/1", None),
        ("/config/brokers/<default>", PathKind.BROKER_CONFIG),
        ("/config/ips/192.0.2.1", PathKind.QUOTA),
        ("/config/users/u/clients", None),
        ("/kafka-acl/Topic", None),
        ("/kafka-acl-extended/prefixed/Topic", None),
        ("/kafka-acl-extended/prefixed/Topic/t", PathKind.ACL),
        ("/delegation_token/tokens/t", PathKind.TOKEN),
        ("/", None),
    ],
)
def test_the_kinds(path: str, kind: PathKind | None) -> None:
    assert kind_of(path) is kind


def test_a_list_that_was_cut_off_is_an_error() -> None:
    cut = {"zxid": 1, "hashes": {"topic": "AAAA"}, "read_later": {}}
    with pytest.raises(ValueError, match="cut off"):
        KeptPaths.from_dict(cut)
