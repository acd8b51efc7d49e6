"""Passwords as brokers in ZooKeeper mode store them (Kafka 3.9, ``EncryptingPasswordEncoder``): PBKDF2 makes the key,
AES encrypts.
"""

from __future__ import annotations

import base64
import binascii
import hashlib

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import CBC, CTR, GCM
from cryptography.hazmat.primitives.padding import PKCS7

_ITERATIONS = range(1, 10_000_000)
"""Kafka's default is 4,096, and it takes no fewer than 1,024 (``password.encoder.iterations``). More than these would
keep this tool busy for minutes.
"""
_KEY_BYTES = range(1, 129)


class Undecodable(Exception):
    """The password can't be decoded; the message says why and what to do, and holds nothing secret."""


def decode_password(encoded: str, secret: str) -> str:
    """The password in an encoded config. ``secret``: password.encoder.secret. Raises Undecodable."""
    try:
        fields = dict(part.split(":", 1) for part in encoded.split(","))
        salt, text = base64.b64decode(fields["salt"]), base64.b64decode(fields["encryptedPassword"])
        key_bytes, iterations = int(fields["keyLength"]) // 8, int(fields["iterations"])
        algorithm, factory = fields["cipherAlgorithm"], fields.get("keyFactoryAlgorithm", "PBKDF2WithHmacSHA512")
        length = int(fields["passwordLength"])
        vector = base64.b64decode(fields["initializationVector"])
    except (KeyError, ValueError, binascii.Error):
        raise Undecodable("it is not encoded as Kafka encodes passwords; set it again with kafka-configs.sh") from None
    if iterations not in _ITERATIONS or key_bytes not in _KEY_BYTES:
        raise Undecodable("its key's length or iterations are none that Kafka uses; set it again with kafka-configs.sh")
    key = hashlib.pbkdf2_hmac(_digest(factory), secret.encode(), salt, iterations, key_bytes)
    plain = _decrypt(algorithm, key, vector, text)
    if len(plain.encode("utf-16-le")) // 2 != length:  # Java counts UTF-16 units
        raise _wrong_secret()
    return plain


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


def _wrong_secret() -> Undecodable:
    return Undecodable(
        "password.encoder.secret does not decode it; give the secret that the brokers use (secrets:"
        " password.encoder.secret in the cluster file)"
    )
