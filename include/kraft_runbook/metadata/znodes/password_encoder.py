"""Passwords as brokers in ZooKeeper mode store them (Kafka 3.9, ``EncryptingPasswordEncoder``): PBKDF2 makes the key,
AES encrypts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC, CTR, GCM
from cryptography.hazmat.primitives.padding import PKCS7

_ITERATIONS = range(1, 10_000_000)
"""Kafka's default is 4,096, and it takes no fewer than 1,024 (``password.encoder.iterations``). More than these would
keep this tool busy for minutes.
"""
_KEY_BYTES = range(1, 129)
OPEN_FIELDS = ("keyFactoryAlgorithm", "cipherAlgorithm", "keyLength", "iterations", "authenticationTagLength")
"""What an encoded password says of how it was encoded (``EncryptingPasswordEncoder``, ``GcmParamsEncoder``)."""


class Undecodable(Exception):
    """The password can't be decoded; the message says why and what to do, and holds nothing secret."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """An encoded config, taken apart."""

    fields: dict[str, str]
    salt: bytes
    text: bytes
    vector: bytes
    algorithm: str
    digest: str
    key_bytes: int
    iterations: int
    length: int

    def key(self, secret: str, salt: bytes) -> bytes:
        return hashlib.pbkdf2_hmac(self.digest, secret.encode(), salt, self.iterations, self.key_bytes)


def _parts(encoded: str) -> _Parts:
    try:
        fields = dict(part.split(":", 1) for part in encoded.split(","))
        salt, text = base64.b64decode(fields["salt"]), base64.b64decode(fields["encryptedPassword"])
        key_bytes, iterations = int(fields["keyLength"]) // 8, int(fields["iterations"])
        algorithm, factory = fields["cipherAlgorithm"], fields.get("keyFactoryAlgorithm", "PBKDF2WithHmacSHA512")
        length = int(fields["passwordLength"])
        vector = base64.b64decode(fields["initializationVector"])
    except (KeyError, ValueError, binascii.Error):
        raise Undecodable(
            "it is not encoded as Kafka encodes passwords; set it again, or delete it, with kafka-configs.sh"
        ) from None
    if iterations not in _ITERATIONS or key_bytes not in _KEY_BYTES:
        raise Undecodable(
            "its key's length or iterations are none that Kafka uses; set it again, or delete it, with kafka-configs.sh"
        )
    return _Parts(fields, salt, text, vector, algorithm, _digest(factory), key_bytes, iterations, length)


def _java_length(text: str) -> int:
    """Java counts UTF-16 units."""
    return len(text.encode("utf-16-le")) // 2


def decode_password(encoded: str, secret: str) -> str:
    """The password in an encoded config. ``secret``: password.encoder.secret. Raises Undecodable."""
    given = _parts(encoded)
    plain = _decrypt(given.algorithm, given.key(secret, given.salt), given.vector, given.text)
    if _java_length(plain) != given.length:
        raise _wrong_secret()
    return plain


def encode_password(password: str, secret: str, *, like: str, random: Callable[[int], bytes]) -> str:
    """The password, encoded with this secret as ``like`` is with its own: the same cipher, key factory, key length and
    iterations; its salt and initialization vector are ``random`` (which gives so many bytes), of the same lengths.
    Raises Undecodable where ``like`` is not encoded as Kafka encodes passwords.
    """
    given = _parts(like)
    salt, vector = random(len(given.salt)), random(len(given.vector))
    text = _encrypt(given.algorithm, given.key(secret, salt), vector, password.encode())
    changed = {
        "salt": base64.b64encode(salt).decode(),
        "initializationVector": base64.b64encode(vector).decode(),
        "encryptedPassword": base64.b64encode(text).decode(),
        "passwordLength": str(_java_length(password)),
    }
    kept = {name: value for name, value in given.fields.items() if name in OPEN_FIELDS}
    return ",".join(f"{name}:{value}" for name, value in (kept | changed).items())


def length_of(encoded: str) -> int:
    """The length that an encoded config says its password has, in UTF-16 units. Raises Undecodable."""
    return _parts(encoded).length


def cipher_of(encoded: str) -> str:
    """The cipher that an encoded config says it was encrypted with; empty where it says none."""
    return next(
        (part.split(":", 1)[1].strip() for part in encoded.split(",") if part.strip().startswith("cipherAlgorithm:")),
        "",
    )


def _digest(factory: str) -> str:
    name = factory.removeprefix("PBKDF2WithHmac").lower()
    if name not in ("sha1", "sha224", "sha256", "sha384", "sha512"):
        raise Undecodable(f"its key factory {factory} is not known here; set it again with Kafka's default encoder")
    return name


def _decrypt(algorithm: str, key: bytes, vector: bytes, text: bytes) -> str:
    try:
        if algorithm.startswith("AES/GCM/"):
            sealed = Cipher(AES(key), GCM(vector, text[-16:])).decryptor()
            return (sealed.update(text[:-16]) + sealed.finalize()).decode()
        if algorithm == "AES/CTR/NoPadding":
            opener = Cipher(AES(key), CTR(vector)).decryptor()
            return (opener.update(text) + opener.finalize()).decode()
        if algorithm != "AES/CBC/PKCS5Padding":
            raise Undecodable(f"its cipher {algorithm} is not known here; set it again with Kafka's default encoder")
        opener = Cipher(AES(key), CBC(vector)).decryptor()
        padded = opener.update(text) + opener.finalize()
        unpadder = PKCS7(128).unpadder()
        return (unpadder.update(padded) + unpadder.finalize()).decode()
    except Undecodable:
        raise
    except Exception:  # a wrong key shows as bad padding, a bad tag or bad UTF-8: all say the same
        raise _wrong_secret() from None


def _encrypt(algorithm: str, key: bytes, vector: bytes, plain: bytes) -> bytes:
    """The reverse of ``_decrypt``. Raises Undecodable."""
    try:
        if algorithm.startswith("AES/GCM/"):
            tagging = Cipher(AES(key), GCM(vector)).encryptor()
            return tagging.update(plain) + tagging.finalize() + tagging.tag
        if algorithm == "AES/CTR/NoPadding":
            sealer = Cipher(AES(key), CTR(vector)).encryptor()
            return sealer.update(plain) + sealer.finalize()
        if algorithm == "AES/CBC/PKCS5Padding":
            padder = PKCS7(128).padder()
            sealer = Cipher(AES(key), CBC(vector)).encryptor()
            return sealer.update(padder.update(plain) + padder.finalize()) + sealer.finalize()
    except ValueError:  # a key or a vector of a length that the cipher does not take
        raise Undecodable("its key or initialization vector has a length that its cipher does not take") from None
    raise Undecodable(f"its cipher {algorithm} is not known here; set it again with Kafka's default encoder")


def _wrong_secret() -> Undecodable:
    return Undecodable(
        "password.encoder.secret does not decode it; give the secret that the brokers use (secrets:"
        " password.encoder.secret in the cluster file)"
    )
