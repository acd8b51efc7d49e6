"""The key stores and trust stores that a node's properties name, and what its host shows of them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

KEYS, TRUST = "keystore", "truststore"
_LOCATION = ("ssl.keystore.location", "ssl.truststore.location")
DEFAULT_TYPE = "JKS"


@dataclass(frozen=True, slots=True)
class StoreNamed:
    """A store that properties name. ``key``: the property with its path. ``password``: the property with the one that
    opens it; None: none is set.
    """

    key: str
    path: str
    kind: str
    type: str
    password: str | None


@dataclass(frozen=True, slots=True)
class Certificate:
    """The first certificate of a store's private key. ``subject``: as Java writes it (RFC 2253); None where it has an
    attribute that RFC 2253 does not name, of which Java writes the bytes. ``names``: the DNS names and addresses that
    it is for; where it has none, its common name.
    """

    subject: str | None
    begins: datetime
    ends: datetime
    names: tuple[str, ...]

    def is_for(self, host: str) -> bool:
        """Whether a client that checks names takes it for the host (RFC 2818: one wildcard, as the leftmost label)."""
        rest = host.lower().partition(".")[2]
        return any(
            name.lower() == host.lower() or (name.startswith("*.") and rest and name[2:].lower() == rest)
            for name in self.names
        )


@dataclass(frozen=True, slots=True)
class StoreSeen:
    """A store on a host. ``wrong``: why Kafka could not use it; None: it opened. ``unread``: why that was not told.
    ``certificate``: of a key store that opened.
    """

    key: str
    path: str
    wrong: str | None = None
    unread: str | None = None
    certificate: Certificate | None = None


def stores_named(properties: Mapping[str, str]) -> Iterator[StoreNamed]:
    """The stores, in the order of the properties, each path with its first property alone, as a key store and as a
    trust store. Empty paths name none.
    """
    told: set[tuple[str, str]] = set()
    for key, path in properties.items():
        location = next((each for each in _LOCATION if key == each or key.endswith(f".{each}")), None)
        if location is None or not path.strip():
            continue
        before, what = key[: -len(location)], location.removesuffix(".location")
        kind = KEYS if what.endswith(KEYS) else TRUST
        if (kind, path) in told:
            continue
        told.add((kind, path))
        # Kafka's own stores take what is not set for the listener from the property without its prefix; ZooKeeper's
        # client has names of its own.
        plain = before == "zookeeper." or not before
        found = {
            part: next((each for each in (f"{before}{part}", *(() if plain else (part,))) if each in properties), None)
            for part in (f"{what}.type", f"{what}.password")
        }
        named = found[f"{what}.type"]
        store_type = properties[named].strip().upper() if named else _by_suffix(path, before)
        yield StoreNamed(key, path, kind, store_type, found[f"{what}.password"])


def _by_suffix(path: str, before: str) -> str:
    """Kafka takes JKS where no type is set; ZooKeeper's client goes by the file's name (``KeyStoreFileType``)."""
    ends = {"p12": "PKCS12", "pem": "PEM"}
    return ends.get(path.rpartition(".")[2].lower(), DEFAULT_TYPE) if before == "zookeeper." else DEFAULT_TYPE
