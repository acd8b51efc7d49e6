"""The key stores and trust stores that a node's properties name, and what its host shows of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from kraft_runbook.cluster.addresses import one_host

KEYS, TRUST = "keystore", "truststore"
_LOCATION = ("ssl.keystore.location", "ssl.truststore.location")
_KEY_PASSWORD = "ssl.key.password"  # noqa: S105 - a property's name
_HOW_IT_OPENS = re.compile(r"(listener\.name\..+\.)(?:ssl\.(key|trust)store\.(?:type|password)|ssl\.key\.password)")
"""A listener's own property of a store. With no path of its own it opens the common one (``AbstractConfig``'s
``valuesWithPrefixOverride``).
"""
DEFAULT_TYPE = "JKS"
OF_ZOOKEEPER = "zookeeper."
SERVER_AUTH, CLIENT_AUTH, ANY_USAGE = "serverAuth", "clientAuth", "anyExtendedKeyUsage"
THIS_TOOL = -1
"""Stands for this tool among the ids of nodes, where stores are read."""


@dataclass(frozen=True, slots=True)
class StoreNamed:
    """A store that properties name. ``key``: the property with its path, by the name that its listener asks for.
    ``password``: the property with the one that opens it; ``key_password``: of the one that opens its private key,
    where that is another. None: none is set.
    """

    key: str
    path: str
    kind: str
    type: str
    password: str | None
    key_password: str | None = None

    @property
    def of_zookeeper(self) -> bool:
        """Whether ZooKeeper's client uses it, which goes by rules of its own."""
        return self.key.startswith(OF_ZOOKEEPER)


@dataclass(frozen=True, slots=True)
class Certificate:
    """The first certificate of a store's private key. ``subject``: as Java writes it (RFC 2253); None where it has an
    attribute that RFC 2253 does not name, of which Java writes the bytes. ``names``: the DNS names and addresses that
    it is for; without a DNS name among them, its common name too, which stands for no address (Java's
    ``HostnameChecker``). ``usages``: what its extended key usage allows, ``serverAuth`` and ``clientAuth`` by these
    names, others by their numbers; None: it does not say, which allows all. ``signs``: whether its key usage, if it has
    one, allows digital signatures. ``issuers_end``: when the first of the intermediate certificates in its chain ends;
    None: it has none.
    """

    subject: str | None
    begins: datetime
    ends: datetime
    names: tuple[str, ...]
    usages: tuple[str, ...] | None = None
    signs: bool = True
    issuers_end: datetime | None = None

    def ending(self) -> Iterator[tuple[str, datetime]]:
        """It, and what its chain needs besides, each with its end. Java trusts an authority's own without its dates."""
        yield "its certificate", self.ends
        if self.issuers_end is not None:
            yield "an intermediate certificate of its chain", self.issuers_end

    def unfit_for(self, use: str) -> str | None:
        """Why Java refuses it of a server (``serverAuth``) or of a client (``clientAuth``), as its
        ``EndEntityChecker`` does; None: it does not.
        """
        if self.usages is not None and not {use, ANY_USAGE} & set(self.usages):
            return f"its extended key usage lacks {use}: it has {', '.join(self.usages)}"
        if use == CLIENT_AUTH and not self.signs:
            return "its key usage lacks digitalSignature, without which no client can use it"
        return None

    def is_for(self, host: str) -> bool:
        """Whether a client that checks names takes it for the host (RFC 2818: one wildcard, as the leftmost label)."""
        rest = host.lower().partition(".")[2]
        return any(
            one_host(name) == one_host(host) or (name.startswith("*.") and rest and name[2:].lower() == rest)
            for name in self.names
        )


@dataclass(frozen=True, slots=True)
class StoreSeen:
    """A store on a host. ``wrong``: why Kafka could not use it; None: it opened. ``unread``: why that was not told.
    ``certificate``: of a key store that opened. ``anchors``: the SHA-256 fingerprints of certificates of trust stores:
    those that a key store's chain leads to, among all trust stores that were read; those of a trust store that the
    chain of any key store leads to. Two stores with one in common trust. ``undecoded``: whether one of its certificates
    could not be decoded, so that ``anchors`` may lack some.
    """

    key: str
    path: str
    wrong: str | None = None
    unread: str | None = None
    certificate: Certificate | None = None
    anchors: tuple[str, ...] = ()
    undecoded: bool = False


def stores_named(properties: Mapping[str, str]) -> Iterator[StoreNamed]:
    """The stores, in the order of the properties. A path that is opened in the same way as another is told with its
    first property alone, as a key store and as a trust store. Empty paths name none.
    """
    told: set[tuple[str | None, ...]] = set()
    for key, location, path in _paths(properties):
        before, what = key[: -len(location)], location.removesuffix(".location")
        kind = KEYS if what.endswith(KEYS) else TRUST
        # Kafka's own stores take what is not set for the listener from the property without its prefix; ZooKeeper's
        # client has names of its own.
        plain = before == OF_ZOOKEEPER or not before
        found = {
            part: next((each for each in (f"{before}{part}", *(() if plain else (part,))) if each in properties), None)
            for part in (f"{what}.type", f"{what}.password", _KEY_PASSWORD)
        }
        named = found[f"{what}.type"]
        store_type = properties[named].strip().upper() if named else _by_suffix(path, before)
        of_key = found[_KEY_PASSWORD] if kind == KEYS and before != OF_ZOOKEEPER else None
        store = StoreNamed(key, path, kind, store_type, found[f"{what}.password"], of_key)
        opened_by = (kind, path, store_type, store.password, of_key)
        if opened_by not in told:
            told.add(opened_by)
            yield store


def _paths(properties: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """The name by which each path is asked for, the same without a prefix, and the path."""
    for key, value in properties.items():
        location = next((each for each in _LOCATION if key == each or key.endswith(f".{each}")), None)
        if location is not None:
            if value.strip():
                yield key, location, value
        elif own := _HOW_IT_OPENS.fullmatch(key):
            location = _LOCATION[own.group(2) == "trust"]
            key = f"{own.group(1)}{location}"
            if key not in properties and properties.get(location, "").strip():
                yield key, location, properties[location]


def _by_suffix(path: str, before: str) -> str:
    """Kafka takes JKS where no type is set; ZooKeeper's client goes by the file's name (``KeyStoreFileType``)."""
    ends = {"p12": "PKCS12", "pem": "PEM"}
    return ends.get(path.rpartition(".")[2].lower(), DEFAULT_TYPE) if before == OF_ZOOKEEPER else DEFAULT_TYPE
