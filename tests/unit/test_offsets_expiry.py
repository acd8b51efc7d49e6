"""How long a group's offsets wait for its new members, as the brokers say."""

from __future__ import annotations

from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.errors import Refused, Unreachable
from kraft_runbook.groups.expiry import Retention, Written, require_still_kept, require_time_to_start
from kraft_runbook.io.kafka.dynamic_configs import Found
from kraft_runbook.procedures.offsets_retention import read_offsets_retention

WEEK = 7 * 24 * 60


def retention_of(*minutes: str | None) -> Retention:
    """The brokers 1, 2, 3; None: it does not answer."""

    def read(spec: Any, entities: Any, keys: Any, **_: Any) -> Any:
        (entity,) = entities
        said = minutes[int(entity.name) - 1]
        if said is None:
            raise Unreachable(f"broker {entity.name} did not answer", way_out="start it")
        return {entity: Found({}, {keys[0]: said} if said else {})}

    return read_offsets_retention(SPEC, secrets=lambda _: "", read=read)


def test_the_least_of_all_brokers_counts_and_those_that_are_down_are_named() -> None:
    found = retention_of("10080", None, "1440")
    assert found == Retention(1440, ("broker 2 did not answer",))
    told = "Kafka keeps the offsets of a group that never had members there for 24 h (not read: broker 2"
    assert found.told().startswith(told)


@pytest.mark.parametrize("said", [(None, None, None), ("", "", "x")])
def test_unread_is_no_retention(said: Any) -> None:
    with pytest.raises(Unreachable, match=r"no broker says offsets\.retention\.minutes: broker 1"):
        retention_of(*said)


def test_a_quarter_of_the_retention_must_be_left_at_the_start() -> None:
    now = Written(1000.0, kept=False)
    assert require_still_kept("g", Retention(WEEK), now, 1000.0) == WEEK * 60 * 3 / 4
    assert require_still_kept("g", Retention(120), now, 1600.0) == 4800.0
    with pytest.raises(Refused, match="committed 90 min ago; its members must start within 90 min, since Kafka may"):
        require_still_kept("g", Retention(120), now, 6400.0)
    for retention in (Retention(WEEK), None):
        with pytest.raises(Refused, match="when the offsets of group g were committed is not known"):
            require_still_kept("g", retention, None, 0.0)


def test_offsets_with_a_time_of_their_own_are_never_too_old_for_a_start() -> None:
    for retention in (Retention(120), None):
        assert require_still_kept("g", retention, Written(1000.0, kept=True), 1e9) == float("inf")


def test_a_retention_that_leaves_nobody_time_is_refused() -> None:
    require_time_to_start(Retention(40))
    with pytest.raises(Refused, match=r"offsets\.retention\.minutes is 39") as refused:
        require_time_to_start(Retention(39))
    assert "set it to 40 or more" in refused.value.way_out
