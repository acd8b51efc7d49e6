"""What the copy holds of each znode: the same, nothing, or other bytes of the same shape.

No secret of the source comes into the copy, and what Kafka can't read there it can't read in the copy either: that is
what a rehearsal is for.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from kraft_runbook.cluster.class_keys import class_key
from kraft_runbook.cluster.java_values import NotJson, is_java_double, parse_json
from kraft_runbook.cluster.sensitive import is_sensitive
from kraft_runbook.metadata.canonical_rows import is_password_config
from kraft_runbook.metadata.znodes.topic_config_values import REMOTE_STORAGE, is_true
from kraft_runbook.metadata.znodes.znode_rows import SCRAM_MECHANISMS
from kraft_runbook.rehearsal import connection_limits
from kraft_runbook.rehearsal.known_configs import QUOTAS, is_known, of_any_listener
from kraft_runbook.rehearsal.random_values import Random, credential, encoded_password, no_number, scrambled
from kraft_runbook.rehearsal.throwaway import SEATS, TIERED


class Dropped(StrEnum):
    """Why a znode is not in the copy."""

    EPHEMERAL = "ephemeral"
    CONTROLLER = "/controller"
    MIGRATION = "/migration"
    CLAIM = "/kraft_runbook_claim"
    CONSUMERS = "/consumers"
    NOT_KAFKAS = "not Kafka's"
    """What else lies at the root of an ensemble that Kafka shares without a chroot, and ZooKeeper's own."""


class Replaced(StrEnum):
    """What of a znode's data is another in the copy."""

    CLUSTER_ID = "cluster id"
    SCRAM_CREDENTIAL = "SCRAM credential"
    ENCODED_PASSWORD = "encoded password"  # noqa: S105 - a kind, not a password
    SENSITIVE_CONFIG = "sensitive config"
    """A config that Kafka types PASSWORD, or does not know: it may hold anything."""
    DELEGATION_TOKEN = "delegation token"  # noqa: S105
    UNKNOWN_DATA = "data that Kafka does not read"


@dataclass(frozen=True, slots=True)
class Replacements:
    """What replaces the source's own. ``cluster_id``: of the copy; ``encoder_secret``: the throwaway's
    password.encoder.secret; ``source_encoder_secret``: the source's, or None where it is not at hand (then every
    well-formed password is taken for one that it opens). ``random`` gives so many random bytes.
    """

    cluster_id: str
    encoder_secret: str
    source_encoder_secret: str | None = None
    random: Random = secrets.token_bytes


@dataclass(frozen=True, slots=True)
class Held:
    """A znode's data in the copy, and what in it was replaced, an entry each. ``left_out``: the configs that the copy
    lacks, or has without their limit, each with the reason.
    """

    data: bytes
    replaced: tuple[Replaced, ...] = ()
    left_out: tuple[str, ...] = ()


# -- which znodes ------------------------------------------------------------------------------------------------------

LOOKED_INTO = frozenset({"cluster", "config", "delegation_token"})
"""The znodes at the root below which data is looked into (``held``). All else that Kafka writes holds no secret."""
_AS_IT_IS = frozenset(
    {
        "admin",
        "brokers",
        "controller_epoch",
        "feature",
        "isr_change_notification",
        "kafka-acl",
        "kafka-acl-changes",
        "kafka-acl-extended",
        "kafka-acl-extended-changes",
        "latest_producer_id_block",
        "log_dir_event_notification",
    }
)
_DROPPED = {each.value[1:]: each for each in Dropped if each.value.startswith("/")}


def why_dropped(path: str, *, ephemeral: bool) -> Dropped | None:
    """Why the znode at ``path`` (Kafka's path, without a chroot) and all below it is not in the copy; None: it is.
    ``ephemeral``: whether a session owns it; a container, or one with a time to live, is none.
    """
    top = path.split("/", 2)[1] if path not in ("", "/") else ""
    if top in _DROPPED:
        return _DROPPED[top]
    if ephemeral:
        return Dropped.EPHEMERAL
    return None if not top or top in LOOKED_INTO or top in _AS_IT_IS else Dropped.NOT_KAFKAS


# -- their data --------------------------------------------------------------------------------------------------------

_LISTENERS = frozenset({"advertised.listeners", "listener.security.protocol.map", "listeners"})
CENTURY_MS = 100 * 365 * 24 * 3600 * 1000
LAST_MS = 2**63 - 1
"""Java's longest time."""
_NOT_JSON = b"{"
"""In the place of data that is no JSON."""
_TOKEN_FIELDS = frozenset(
    {
        "expiryTimestamp",
        "issueTimestamp",
        "maxTimestamp",
        "owner",
        "renewers",
        "tokenId",
        "tokenRequester",
        "version",
    }
)
"""``DelegationTokenManagerZk``: none of them is a secret (a token's HMAC is made of its id and the brokers' key)."""


def held(path: str, data: bytes, given: Replacements) -> Held:
    """What the copy holds in the place of this znode's data. Random values are new at each call."""
    parts = path.split("/")[1:]
    if not data or parts[0] not in LOOKED_INTO:
        return Held(data)
    match parts:
        case ["cluster", "id"]:
            return Held(_json({"version": "1", "id": given.cluster_id}), (Replaced.CLUSTER_ID,))
        case ["config", "topics", _] if _is_plain_topic_config(data):
            return Held(data)
        case ["config", "topics" | "brokers" as kind, _]:
            return _config(data, lambda name, value: _property(kind, name, value, given))
        case ["config", "ips", _]:
            return _config(data, lambda name, value: _of_address(name, value, given))
        case ["config", "users" | "clients", _]:
            return _config(data, lambda name, value: _quota(name, value, given, nested=False))
        case ["config", "users", _, "clients", _]:
            return _config(data, lambda name, value: _quota(name, value, given, nested=True))
        case ["config", "changes", _] | ["delegation_token", "token_changes", _]:
            return Held(data)  # a name alone
        case ["config", _, _]:
            return _config(data, lambda _, value: (scrambled(value, given.random), Replaced.SENSITIVE_CONFIG))
        case ["delegation_token", "tokens", _]:
            return _token(data, given)
        case _:
            return Held(b"", (Replaced.UNKNOWN_DATA,))


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """That the copy does not have a config, and why. ``instead``: the value that it has in its place."""

    why: str
    instead: str | None = None


_Change = tuple[str, Replaced | None] | _LeftOut


@lru_cache(maxsize=4096)  # most topics of a cluster have one of a few configs
def _is_plain_topic_config(data: bytes) -> bool:
    """Whether it holds nothing but what Kafka knows, as Kafka writes it."""

    def seen(name: str, value: str) -> _Change:
        plain = is_known("topics", name) and not is_password_config(name) and not is_sensitive(name)
        return value, None if plain and not _is_tiered(name, value) else Replaced.SENSITIVE_CONFIG

    return _config(data, seen) == Held(data)


def _property(kind: str, name: str, value: str, given: Replacements) -> _Change:
    """A config of a topic, a broker or all brokers."""
    if is_password_config(name):
        made = encoded_password(
            name, value, secret=given.encoder_secret, source_secret=given.source_encoder_secret, random=given.random
        )
        return made, Replaced.ENCODED_PASSWORD
    if is_sensitive(name) or not is_known(kind, name):
        return scrambled(value, given.random), Replaced.SENSITIVE_CONFIG
    if kind == "topics":
        return _LeftOut(TIERED) if _is_tiered(name, value) else (value, None)
    if connection_limits.is_limit(name):
        return _without_limit(name, value)
    why = _why_left_out(name) if value else None
    return (value, None) if why is None else _LeftOut(why)


def _is_tiered(name: str, value: str) -> bool:
    """Whether no broker starts with this config of a topic while tiered storage is off
    (``LogConfig.validateRemoteStorageOnlyIfSystemEnabled``). Without it the topic has Kafka's default, false.
    """
    return name == REMOTE_STORAGE and is_true(value)


def _why_left_out(name: str) -> str | None:
    """Why the copy has no such config of a broker or of all brokers; None: it has it. Seats and controllers load those
    of all brokers, and whoever has a broker's id loads that broker's.
    """
    if name in _LISTENERS:
        return "listeners are the throwaway's own: others would be called at real hosts"
    if class_key(name) is not None:
        return "classes that may send to other servers"
    if of_any_listener(name) in SEATS:
        return "seats have values of their own, since they hold no replica"
    return None


def _without_limit(name: str, value: str) -> _Change:
    """The config stays, with a value that limits nothing: Kafka's copy has as many as the source's."""
    instead = connection_limits.unlimited(name, value)
    if instead is None:
        return value, None
    return _LeftOut(f"{connection_limits.WHY}; {instead} is in its place", instead)


def _of_address(name: str, value: str, given: Replacements) -> _Change:
    """A quota of an address, or of all addresses."""
    if name == connection_limits.RATE_OF_AN_IP:
        return _without_limit(name, value)
    return _quota(name, value, given, nested=False)


def _quota(name: str, value: str, given: Replacements, *, nested: bool) -> _Change:
    """A quota or a credential. ``nested``: of a user's client, where Kafka takes all for quotas."""
    if name in SCRAM_MECHANISMS and not nested:
        return credential(value, given.random), Replaced.SCRAM_CREDENTIAL
    if name in QUOTAS or is_java_double(value):
        return value, None
    return no_number(value), Replaced.SENSITIVE_CONFIG


def _config(data: bytes, change: Callable[[str, str], _Change]) -> Held:
    """A config znode (``ConfigEntityZNode``) with its texts changed. What Kafka does not read of it is left out."""
    try:
        parsed = parse_json(data)
    except NotJson:
        return Held(_NOT_JSON, (Replaced.UNKNOWN_DATA,))
    if not isinstance(parsed, dict):
        return _emptied(data, parsed)
    config = parsed.get("config")
    replaced: list[Replaced] = []
    left_out: list[str] = []
    made: dict[str, object] = {}
    for name, value in config.items() if isinstance(config, dict) else ():
        if not isinstance(value, str):
            made[name] = _bare(value)
            continue
        changed = change(name, value)
        if isinstance(changed, _LeftOut):
            left_out.append(f"{name}: {changed.why}")
            if changed.instead is not None:
                made[name] = changed.instead
            continue
        made[name], kind = changed
        if kind:
            replaced.append(kind)
    kept = {"version": _bare(parsed.get("version")), "config": made if isinstance(config, dict) else _bare(config)}
    return Held(_json({name: kept[name] for name in parsed if name in kept}), tuple(replaced), tuple(left_out))


def _token(data: bytes, given: Replacements) -> Held:
    """A delegation token without what Kafka does not read of it, and that does not expire in the rehearsal: the tree
    that it is compared with would have it no more.
    """
    try:
        parsed = parse_json(data)
    except NotJson:
        return Held(_NOT_JSON, (Replaced.UNKNOWN_DATA,))
    if not isinstance(parsed, dict):
        return _emptied(data, parsed)
    made = {name: _later(name, _shallow(name, value)) for name, value in parsed.items() if name in _TOKEN_FIELDS}
    unknown = {name: scrambled(value, given.random) for name, value in parsed.items() if _is_unknown(name, value)}
    return Held(_json({**made, **unknown}), (Replaced.DELEGATION_TOKEN,) * len(unknown))


def _later(name: str, value: object) -> object:
    """A time at which Kafka deletes a token (``DelegationTokenManagerZk.expireTokens``), moved far away."""
    if name not in ("expiryTimestamp", "maxTimestamp") or not isinstance(value, int) or isinstance(value, bool):
        return value
    return value + CENTURY_MS if value < LAST_MS - CENTURY_MS else value


def _is_unknown(name: str, value: object) -> bool:
    return name not in _TOKEN_FIELDS and isinstance(value, str)


def _shallow(name: str, value: object) -> object:
    """A field of a token, with nothing inside that Kafka does not read."""
    if isinstance(value, list) and name == "renewers":
        return [each if isinstance(each, str) else _bare(each) for each in value]
    return value if isinstance(value, str) else _bare(value)


def _emptied(data: bytes, parsed: object) -> Held:
    """JSON that is no object, without what it holds."""
    if parsed is None:
        return Held(b"null" if data.strip() else data)
    return Held(_json(_bare(parsed)), (Replaced.UNKNOWN_DATA,) if isinstance(parsed, str | list) else ())


def _bare(value: object) -> object:
    """A JSON value that Kafka refuses where it stands: of the same type, and without what it holds."""
    if isinstance(value, str | list | dict):
        return type(value)()
    return 0.5 if isinstance(value, float) and not math.isfinite(value) else value


def _json(value: Mapping[str, Any] | object) -> bytes:
    """As Kafka writes it."""
    try:
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return json.dumps(value, separators=(",", ":")).encode()
