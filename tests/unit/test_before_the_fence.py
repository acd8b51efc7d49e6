"""The last moment before the fence: the run makes sure that the cluster is still its own, after all that may outlast
its claim.
"""

from __future__ import annotations

from typing import Any

import pytest
from observations import SPEC

from kraft_runbook.cluster.observation import ControllerEpochs
from kraft_runbook.errors import Refused
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.migration.leaving import FencePlan
from kraft_runbook.procedures import leave_kraft as departure
from kraft_runbook.procedures.leave_kraft import leave_kraft


class Fenced(Exception):
    """The fence was raised."""


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was done, in order, up to the fence."""
    order: list[str] = []

    class Part:
        """Whatever is opened and called before the fence."""

        held_by_kraft, written_to = True, None

        def __init__(self, *_: object, **__: object) -> None: ...
        def __enter__(self) -> Any:
            return self

        def __exit__(self, *_: object) -> None: ...
        def __getattr__(self, name: str) -> Any:
            def note(*_: object) -> None:
                order.append(name)
                if name == "raise_it":
                    raise Fenced

            return note

    for name in ("ZookeeperReader", "FinalProof", "QuorumFence", "QuorumConnection"):
        monkeypatch.setattr(departure, name, Part)
    monkeypatch.setattr(departure, "read_controller_znodes", lambda _: Part())
    monkeypatch.setattr(departure, "require_deletable", lambda _: None)
    monkeypatch.setattr(departure, "raise_all", lambda *_, **__: order.append("raise_all") or ())
    monkeypatch.setattr(departure, "_see_settable", lambda *_, **__: None)
    monkeypatch.setattr(departure, "read_controller_epochs", lambda _: ControllerEpochs(4, 4, states=3))
    monkeypatch.setattr(departure, "_await_brokers", lambda *_: order.append("await_brokers"))
    return order


def leave(active: int | None, still_mine: Any) -> None:
    since = None if active is None else 5
    leave_kraft(
        SPEC,
        FencePlan(active, (102, 103)),
        proven_since=since,
        secrets=environment_secrets({}),
        tell=print,
        still_mine=still_mine,
    )


@pytest.mark.parametrize(
    ("active", "order"),
    [
        (101, ["raise_all", "high_watermark", "ready", "await_brokers", "renewed", "high_watermark", "raise_it"]),
        (None, ["ready", "renewed", "raise_it"]),
    ],
)
def test_the_claim_is_renewed_right_before_the_fence_is_raised(
    done: list[str], active: int | None, order: list[str]
) -> None:
    with pytest.raises(Fenced):
        leave(active, lambda: done.append("renewed"))
    assert done == order


@pytest.mark.parametrize("active", [101, None])
def test_where_another_run_holds_the_claim_by_then_nothing_is_stopped(done: list[str], active: int | None) -> None:
    def taken() -> None:
        raise Refused("cluster lab is being changed by run two", way_out="wait")

    with pytest.raises(Refused, match="run two"):
        leave(active, taken)
    assert "raise_it" not in done
