"""The settings of a member: names and meanings of ``ZookeeperConsumerConnector`` 1.1.1 and of KIP-125."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from kraft_runbook_consumer.assignors import RANGE, ROUND_ROBIN
from kraft_runbook_consumer.errors import SettingError
from kraft_runbook_consumer.security import OF_ZOOKEEPER, zookeeper_options

MIGRATION = "coordination.migration."
ENABLED, POLL_INTERVAL, BOOTSTRAP = (
    f"{MIGRATION}enabled",
    f"{MIGRATION}poll.interval.ms",
    f"{MIGRATION}bootstrap.servers",
)
OURS = frozenset({"group.id", "client.id", "enable.auto.commit", "group.protocol", "group.instance.id"})
"""Settings of the embedded consumer that follow from the others."""
SESSION = f"{MIGRATION}session.timeout.ms"
WITHOUT_EFFECT = frozenset(
    {
        *("socket.timeout.ms", "socket.receive.buffer.bytes", "num.consumer.fetchers", "queued.max.message.chunks"),
        *("refresh.leader.backoff.ms", "zookeeper.sync.time.ms", "offsets.channel.backoff.ms", "consumer.timeout.ms"),
        *("offsets.channel.socket.timeout.ms", "offsets.commit.max.retries", "rebalance.backoff.ms", "client.id"),
        *("rebalance.max.retries", "zookeeper.clientCnxnSocket"),
    }
)
"""Settings of 1.1.1 that have no counterpart here. They are taken, so that a file serves both."""
FETCH = MappingProxyType(
    {
        "fetch.message.max.bytes": "max.partition.fetch.bytes",
        "fetch.min.bytes": "fetch.min.bytes",
        "fetch.wait.max.ms": "fetch.wait.max.ms",
    }
)
"""Settings of 1.1.1 for fetching, by their name in librdkafka."""
RESETS = MappingProxyType({"smallest": "earliest", "earliest": "earliest", "largest": "latest", "latest": "latest"})
SECURITY = ("security.", "sasl.", "ssl.", "enable.ssl.", "https.ca.")
"""How the settings of librdkafka begin that any of its clients needs to be let in."""

_NUMBERS = MappingProxyType(
    {
        "zookeeper.session.timeout.ms": 6000,
        "zookeeper.connection.timeout.ms": 6000,
        "auto.commit.interval.ms": 60_000,
        POLL_INTERVAL: 100,
        "release.timeout.ms": 30_000,
    }
)
_FLAGS = MappingProxyType({"auto.commit.enable": True, "exclude.internal.topics": True, ENABLED: False})
_TEXTS = frozenset(
    {
        *("group.id", "zookeeper.connect", "consumer.id", "auto.offset.reset", "partition.assignment.strategy"),
        *("offsets.storage", "dual.commit.enabled"),
    }
)


@dataclass(frozen=True)
class Settings:
    """Checked settings; times in seconds.

    ``consumer_id``: None for one that is made of host, time and chance, as 1.1.1 makes it. ``reset``: earliest or
    latest, where there is no offset. ``bootstrap``: None where brokers are found in ZooKeeper. ``embedded``: the
    settings of the embedded consumer that were given. ``fetch``: of the consumers that fetch. ``zookeeper_options``:
    TLS and login, as kazoo takes them. ``release_seconds``: how long a record in the application's hands keeps its
    partition from being released.
    """

    group: str
    zookeeper: str
    consumer_id: str | None
    migrates: bool
    bootstrap: str | None
    strategy: str
    reset: str
    auto_commit: bool
    commit_seconds: float
    poll_seconds: float
    session_seconds: float
    connection_seconds: float
    release_seconds: float
    exclude_internal: bool
    embedded: Mapping[str, str] = field(default_factory=dict, repr=False)
    fetch: Mapping[str, str] = field(default_factory=dict, repr=False)
    zookeeper_options: Mapping[str, object] = field(default_factory=dict, repr=False)


def read_settings(given: Mapping[str, object]) -> Settings:
    """Raises SettingError, which names the key and the way out; never a value of a key that may be a secret."""
    texts = {key: _text(value) for key, value in given.items()}
    for key in texts:
        _require_known(key)
    for needed in ("group.id", "zookeeper.connect"):
        if not texts.get(needed):
            raise SettingError(f"{needed} is missing", way_out=f"give {needed}, as the other members of the group do")
    for name in ("group.id", "consumer.id"):
        if "/" in texts.get(name, ""):
            raise SettingError(f"{name} holds a /, which ZooKeeper takes for a path", way_out="leave out the /")
    flags = {key: _flag(key, texts.get(key), default) for key, default in _FLAGS.items()}
    migrates = flags[ENABLED]
    embedded = {
        key.removeprefix(MIGRATION): value
        for key, value in texts.items()
        if key.startswith(MIGRATION) and key not in (ENABLED, POLL_INTERVAL)
    }
    if migrates and not embedded.get("bootstrap.servers"):
        raise SettingError(
            f"{BOOTSTRAP} is missing, and {ENABLED}=true needs it", way_out="give the brokers, host:port,…"
        )
    if migrates:
        _milliseconds(SESSION, texts.get(SESSION), 45_000)
    _require_storage(texts, migrates=migrates)
    numbers = {key: _milliseconds(key, texts.get(key), default) / 1000 for key, default in _NUMBERS.items()}
    strategy = _one_of(texts, "partition.assignment.strategy", {RANGE: RANGE, ROUND_ROBIN: ROUND_ROBIN}, RANGE)
    return Settings(
        group=texts["group.id"],
        zookeeper=texts["zookeeper.connect"],
        consumer_id=texts.get("consumer.id") or None,
        migrates=migrates,
        bootstrap=embedded.get("bootstrap.servers") or None,
        strategy=strategy,
        reset=_one_of(texts, "auto.offset.reset", RESETS, "largest"),
        auto_commit=flags["auto.commit.enable"],
        commit_seconds=numbers["auto.commit.interval.ms"],
        poll_seconds=max(0.005, numbers[POLL_INTERVAL]),
        session_seconds=numbers["zookeeper.session.timeout.ms"],
        connection_seconds=numbers["zookeeper.connection.timeout.ms"],
        release_seconds=numbers["release.timeout.ms"],
        exclude_internal=flags["exclude.internal.topics"],
        embedded=embedded,
        fetch={FETCH[key]: texts[key] for key in FETCH if key in texts}
        | {key: value for key, value in embedded.items() if key.startswith(SECURITY)},
        zookeeper_options=zookeeper_options(texts),
    )


def embedded_config(settings: Settings, member: str) -> dict[str, object]:
    """What the embedded consumer is made with. Its client id is the member's id, by which others find it (KIP-125)."""
    return {
        "session.timeout.ms": 45_000,
        "heartbeat.interval.ms": 3_000,
        "partition.assignment.strategy": "cooperative-sticky",
        "topic.metadata.refresh.interval.ms": 10_000,
        **settings.embedded,
        "group.id": settings.group,
        "client.id": member,
        "enable.auto.commit": False,
        "group.protocol": "classic",
    }


def fetch_config(settings: Settings, bootstrap: str, member: str) -> dict[str, object]:
    """What a consumer that fetches is made with. It joins no group. It reads what is not committed, as 1.1.1 does."""
    return {
        "isolation.level": "read_uncommitted",
        **settings.fetch,
        "bootstrap.servers": bootstrap,
        "group.id": settings.group,
        "client.id": f"{member}-fetch",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": settings.reset,
    }


def _require_known(key: str) -> None:
    if key.startswith(MIGRATION):
        inner = key.removeprefix(MIGRATION)
        if inner in OURS:
            raise SettingError(f"{key} can't be set: it follows from the other settings", way_out=f"leave out {key}")
        return  # the embedded consumer judges the others when it is made
    known = {*_NUMBERS, *_FLAGS, *_TEXTS, *OF_ZOOKEEPER, *WITHOUT_EFFECT, *FETCH}
    if key not in known:
        near = difflib.get_close_matches(key, known, 1) or ["the settings in docs/migrating-consumer.md"]
        raise SettingError(f"{key} is no setting of this consumer", way_out=f"did you mean {near[0]}?")


def _require_storage(texts: Mapping[str, str], *, migrates: bool) -> None:
    """KIP-125's table: a migrating member commits to both sides, another one to ZooKeeper alone."""
    expected = (
        {"offsets.storage": "kafka", "dual.commit.enabled": "true"}
        if migrates
        else {
            "offsets.storage": "zookeeper",
            "dual.commit.enabled": "false",
        }
    )
    for key, value in expected.items():
        if texts.get(key, value).lower() != value:
            raise SettingError(
                f"{key}={texts[key]} does not go with {ENABLED}={str(migrates).lower()}",
                way_out=f"set {key}={value}, or leave it out (KIP-125: first every member commits to ZooKeeper alone)",
            )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _flag(key: str, text: str | None, default: bool) -> bool:
    if text is None:
        return default
    if text.lower() not in ("true", "false"):
        raise SettingError(f"{key}={text} is neither true nor false", way_out=f"set {key} to true or false")
    return text.lower() == "true"


def _milliseconds(key: str, text: str | None, default: int) -> int:
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 1 << 31:
        raise SettingError(f"{key}={text} is no number of milliseconds", way_out=f"give {key} from 1 to 2147483647")
    return int(text)


def _one_of(texts: Mapping[str, str], key: str, words: Mapping[str, str], default: str) -> str:
    text = texts.get(key, default)
    if text not in words:
        raise SettingError(f"{key}={text} is not known", way_out=f"give one of {', '.join(words)}")
    return words[text]
