"""Certificates of stores, decoded: what each is good for, and which trust stores its chain leads to. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from itertools import takewhile

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, ExtensionOID, NameOID

from kraft_runbook.cluster.observation import Unread
from kraft_runbook.cluster.stores import (
    ANY_USAGE,
    CLIENT_AUTH,
    KEYS,
    SERVER_AUTH,
    Certificate,
    StoreNamed,
    StoreSeen,
)

NAMED = {
    NameOID.COMMON_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COUNTRY_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.DOMAIN_COMPONENT,
    NameOID.USER_ID,
}
"""The attributes that RFC 2253 names (section 2.3). Of any other, e.g. emailAddress, Java writes the value's bytes."""
USAGES = {
    ExtendedKeyUsageOID.SERVER_AUTH: SERVER_AUTH,
    ExtendedKeyUsageOID.CLIENT_AUTH: CLIENT_AUTH,
    ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE: ANY_USAGE,
}


@dataclass(frozen=True, slots=True)
class StoreRead:
    """A store with its certificates: the chain of a key store, or what a trust store trusts."""

    seen: StoreSeen
    chain: tuple[x509.Certificate, ...] = ()
    trusted: tuple[x509.Certificate, ...] = ()


def store_read(store: StoreNamed, texts: Sequence[str]) -> StoreRead:
    """A store that opened, with its certificates in PEM. Those that can't be decoded are left out of the trusted, and
    end a chain.
    """
    found: list[x509.Certificate] = []
    undecoded = False
    for text in texts:
        try:
            found.append(x509.load_pem_x509_certificate(text.encode()))
        except ValueError:
            undecoded = True
            if store.kind == KEYS:
                break
    seen = StoreSeen(store.key, store.path, undecoded=undecoded)
    if store.kind != KEYS:
        return StoreRead(seen, trusted=tuple(found))
    try:
        return StoreRead(replace(seen, certificate=_decoded(found[0])), chain=tuple(found))
    except (ValueError, IndexError):
        return StoreRead(replace(seen, unread="its certificate could not be decoded"))


def with_anchors(
    stores: Mapping[int, Sequence[StoreRead] | Unread],
) -> dict[int, tuple[StoreSeen, ...] | Unread]:
    """The same stores, each with the certificates that the chains of all key stores lead to. Of a chain Java asks no
    certificate for its date from the first one on that the caller trusts (PKIXValidator): only what stands before one
    that every trust store holds counts as its intermediates.
    """
    read = [each for found in stores.values() if not isinstance(found, Unread) for each in found]
    anchors = {_fingerprint(each): each for store in read for each in store.trusted}
    led_to = {id(store): tuple(_led_to(store.chain, anchors)) for store in read if store.chain}
    used = {each for found in led_to.values() for each in found}

    trusted = [{_named(each) for each in store.trusted} for store in read if store.trusted]
    everywhere = set.intersection(*trusted) if trusted else set()

    def told(store: StoreRead) -> StoreSeen:
        held = sorted({_fingerprint(each) for each in store.trusted} & used)
        seen = replace(store.seen, anchors=led_to.get(id(store), tuple(held)))
        if seen.certificate is None:
            return seen
        asked = takewhile(lambda each: _named(each) not in everywhere, store.chain[1:])
        ends = [each.not_valid_after_utc for each in asked if each.issuer != each.subject]
        return replace(seen, certificate=replace(seen.certificate, issuers_end=min(ends, default=None)))

    return {
        node: found if isinstance(found, Unread) else tuple(told(each) for each in found)
        for node, found in stores.items()
    }


def _named(certificate: x509.Certificate) -> tuple[bytes, bytes]:
    """Subject and public key: by these Java knows a certificate that it trusts."""
    try:
        key = certificate.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):  # known by all of it then
        key = certificate.fingerprint(hashes.SHA256())
    return certificate.subject.public_bytes(), key


def _led_to(chain: Sequence[x509.Certificate], anchors: Mapping[str, x509.Certificate]) -> Iterator[str]:
    """Of these, the ones that are in the chain or signed a certificate of it, as far as each is signed by the next."""
    for number, each in enumerate(chain):
        for name, anchor in anchors.items():
            if anchor == each or _signed(each, anchor):
                yield name
        if number + 1 < len(chain) and not _signed(each, chain[number + 1]):
            return


def _signed(certificate: x509.Certificate, by: x509.Certificate) -> bool:
    if certificate.issuer != by.subject:
        return False
    try:
        certificate.verify_directly_issued_by(by)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _fingerprint(certificate: x509.Certificate) -> str:
    return certificate.fingerprint(hashes.SHA256()).hex()


def _decoded(found: x509.Certificate) -> Certificate:
    subject = found.subject.rfc4514_string() if all(each.oid in NAMED for each in found.subject) else None
    begins, ends = found.not_valid_before_utc, found.not_valid_after_utc
    return Certificate(subject, begins, ends, tuple(_names(found)), _usages(found), _signs(found))


def _usages(certificate: x509.Certificate) -> tuple[str, ...] | None:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return None
    return tuple(USAGES.get(each, each.dotted_string) for each in extension)


def _signs(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature
    except x509.ExtensionNotFound:
        return True


def _names(certificate: x509.Certificate) -> Iterator[str]:
    dns: list[str] = []
    try:
        extension = certificate.extensions.get_extension_for_oid(ExtensionOID.SUBJECT_ALTERNATIVE_NAME).value
    except x509.ExtensionNotFound:
        pass
    else:
        assert isinstance(extension, x509.SubjectAlternativeName)
        dns = extension.get_values_for_type(x509.DNSName)
        yield from dns
        yield from map(str, extension.get_values_for_type(x509.IPAddress))
    if not dns:
        common = (str(each.value) for each in certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME))
        yield from (each for each in common if not _is_address(each))


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
