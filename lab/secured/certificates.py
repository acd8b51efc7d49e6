"""Certificates of the lab, signed by an authority of its own that nobody keeps."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12
from cryptography.x509.oid import NameOID

from kraft_runbook.io.private_file import make_private_directory, private_file

DAYS = 30


class Authority:
    """Signs certificates; its own is ``file``, its name's in ``directory``; its key is in memory alone."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        make_private_directory(directory)
        self.directory, self.file = directory, directory / f"{name}.pem"
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        self._certificate = self._signed(self._name, self._key.public_key(), (basic, True))
        self.file.write_bytes(self._certificate.public_bytes(serialization.Encoding.PEM))

    def keystore(
        self, file: Path, name: str, password: str, *addresses: str, usages: Sequence[x509.ObjectIdentifier] = ()
    ) -> None:
        """A PKCS12 store with a key and its certificate, which names these addresses; ``name`` is its subject's CN.
        ``usages``: the only ones that it allows, if any are given.
        """
        key, certificate = self._issued(name, addresses, usages)
        encryption = serialization.BestAvailableEncryption(password.encode())
        _write(
            file,
            pkcs12.serialize_key_and_certificates(name.encode(), key, certificate, [self._certificate], encryption),
        )

    def pem(self, file: Path, name: str, *addresses: str, usages: Sequence[x509.ObjectIdentifier] = ()) -> None:
        """A file with the key and the certificate. ``usages``: the only ones that it allows, if any are given."""
        key, certificate = self._issued(name, addresses, usages)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        _write(file, private + certificate.public_bytes(serialization.Encoding.PEM))

    def _issued(
        self, name: str, addresses: tuple[str, ...], usages: Sequence[x509.ObjectIdentifier] = ()
    ) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
        key = ec.generate_private_key(ec.SECP256R1())
        extensions: list[tuple[x509.ExtensionType, bool]] = []
        if addresses:
            names = x509.SubjectAlternativeName([x509.IPAddress(ip_address(each)) for each in addresses])
            extensions.append((names, False))
        if usages:
            extensions.append((x509.ExtendedKeyUsage(usages), False))
        return key, self._signed(_named(name), key.public_key(), *extensions)

    def _signed(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, *extensions: tuple[x509.ExtensionType, bool]
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        made = x509.CertificateBuilder(
            self._name, subject, key, x509.random_serial_number(), now - timedelta(hours=1), now + timedelta(days=DAYS)
        )
        for extension, critical in extensions:
            made = made.add_extension(extension, critical=critical)
        return made.sign(self._key, hashes.SHA256())


def _write(file: Path, content: bytes) -> None:
    with private_file(file) as opened:
        opened.write(content)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
