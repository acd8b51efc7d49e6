"""A znode that ends Kafka's copy, for a tree of the harness: of one Kafka names nothing, and the other it names."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from benchmarks.scale.tree import Node

TOKENS = "/delegation_token/tokens"
TOKEN = {
    "version": 3,
    "owner": "User%3Aa",
    "tokenRequester": "User%3Aa",
    "renewers": [],
    "issueTimestamp": 1,
    "maxTimestamp": 2,
    "expiryTimestamp": 2,
    "tokenId": "t",
}
GOOD_TOKENS = 9
"""Beside the poisoned one."""


@dataclass(frozen=True, slots=True)
class Poison:
    """``znode``: the one that ends the copy; ``nodes``: it, and what lies above and beside it. ``named``: whether Kafka
    names it, so that no suspects are halved. ``at_start``: no broker starts with it, and a check of the tree names it.
    """

    znode: str
    nodes: tuple[Node, ...]
    named: bool
    at_start: bool = False

    def is_named_by(self, reasons: Iterable[str]) -> bool:
        """Whether a verdict's reasons say that this znode, and no other, ended the copy: in Kafka's own words, or as
        what halving found.
        """
        if self.at_start:
            said = any("ended at its start" in each for each in reasons)
            return said and any("KRB-PRE-061" in each and self.znode in each for each in reasons)
        halved = [each for each in reasons if "which znode ends" in each]
        if self.named:
            return not halved and any("Kafka's own copy" in each and self.znode in each for each in reasons)
        return any(f"ends of {self.znode} alone" in each and "without it the copy is done" in each for each in halved)


def _token(name: str, **other: object) -> Node:
    return Node(f"{TOKENS}/{name}", json.dumps(TOKEN | other).encode())


_ABOVE = (Node("/delegation_token"), Node(TOKENS))
_GOOD = tuple(_token(f"planted-{number}") for number in range(GOOD_TOKENS))
_QUOTA = "/config/users/poison"
_PRODUCER_IDS = "/latest_producer_id_block"
POISONS: Mapping[str, Poison] = {
    "token": Poison(f"{TOKENS}/poison", (*_ABOVE, *_GOOD, _token("poison", version=9)), named=False),
    "producer-ids": Poison(_PRODUCER_IDS, (Node(_PRODUCER_IDS, b"{ no JSON"),), named=True),
    "quota": Poison(
        _QUOTA,
        (Node(_QUOTA, json.dumps({"version": 1, "config": {"producer_byte_rate": "abc"}}).encode()),),
        named=False,
        at_start=True,
    ),
}
"""Of a quota that is no number no broker starts. Of a token's version Kafka says "requirement failed"; of a znode that
is no JSON, its path.
"""
