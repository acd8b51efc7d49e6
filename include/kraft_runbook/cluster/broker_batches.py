"""Which brokers a roll restarts together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from pydantic import Field

from kraft_runbook.cluster.naming import nodes
from kraft_runbook.cluster.spec_nodes import Broker
from kraft_runbook.cluster.spec_types import Model


class Roll(Model):
    """Up to ``at_once`` brokers of one rack are restarted together, rack after rack."""

    by: Literal["rack"]
    at_once: int = Field(ge=2)


def batches(brokers: Sequence[Broker], first: int | None, roll: Roll | None) -> tuple[tuple[Broker, ...], ...]:
    """The brokers in the order in which a roll restarts them; those of one batch together. ``first``: the canary, which
    goes alone and before all. The others follow as in the file; with ``roll`` rack by rack, in the order of the racks'
    first brokers. Where brokers go together, one goes alone before them in any case: what breaks every broker then
    breaks one.
    """
    if first is None and roll is not None and brokers:
        first = brokers[0].id
    alone = [(each,) for each in brokers if each.id == first]
    others = [each for each in brokers if each.id != first]
    if roll is None:
        return (*alone, *((each,) for each in others))
    racks: dict[str | None, list[Broker]] = {}
    for each in others:
        racks.setdefault(each.rack, []).append(each)
    size = roll.at_once
    return (*alone, *(tuple(of[at : at + size]) for of in racks.values() for at in range(0, len(of), size)))


def why_not_together(brokers: Sequence[Broker], roll: Roll | None, demoting: Sequence[str]) -> Iterator[str]:
    """What of a cluster file does not go with its ``roll``. ``demoting``: the keys of it that demote brokers. Each
    problem starts with the key it is about.
    """
    if roll is None:
        return
    bare = [each.id for each in brokers if each.rack is None]
    if bare:
        yield (
            f"roll.by: {nodes('broker', bare, 'has')} no 'rack'; give each broker its rack, as broker.rack in"
            " its file, or leave 'roll' out"
        )
    elif len({each.rack for each in brokers}) == 1:
        yield "roll.by: all brokers are in one rack, so nothing would stay up beside it; leave 'roll' out"
    for key in demoting:
        yield (
            f"{key}.demote: leaders would go to brokers that are restarted together with theirs; leave 'demote' or"
            " 'roll' out"
        )
