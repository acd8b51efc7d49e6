"""Whether Kafka could use a key store or a trust store of this host, tried as Kafka does (``DefaultSslEngineFactory``,
3.9): with the store's password and with the key's.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import re
import shutil
import ssl
import subprocess
from typing import Callable

SECONDS = 20.0
CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
PRIVATE = re.compile(r"-----BEGIN ((?:[A-Z0-9]+ )*)PRIVATE KEY-----(.*?)-----END ", re.DOTALL)
ENTRY = re.compile(r"^Alias name: (.*)$", re.MULTILINE)
KEYS = "keystore"
_OF_JAVA = ("JKS", "PKCS12", "JCEKS")
"""The types that every Java reads by itself."""
ENGLISH = ("-J-Duser.language=en", "-J-Duser.country=US")
_REFUSED = re.compile(r"password was incorrect|password verification failed|keystore password", re.IGNORECASE)
_NO_KEY = re.compile(r"Cannot recover key|UnrecoverableKey|Get Key failed|not properly padded", re.IGNORECASE)
_OTHER_KEY = ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH", "NO_CERTIFICATE_ASSIGNED")
_NOT_DECRYPTED = (None, "PEM_LIB", "BAD_DECRYPT", "BAD_PASSWORD_READ")
_PBES2 = bytes.fromhex("2a864886f70d01050d")
_TRIED_HERE = (_PBES2, *(bytes.fromhex(f"2a864886f70d010c01{last:02x}") for last in (3, 4)))
"""The encryptions of a key that Python's TLS opens everywhere: PBES2, and PKCS #12's with Triple DES."""
_JAVA_WITHOUT, _JAVA_WITH = 17, 25
"""Releases of Java that do not, and that do, open a key of PBES2 as Kafka asks for it (JDK-8231581; both measured)."""
NO_PASSWORD_SET = "no password is set for it, and Kafka does not start without one"  # noqa: S105 - a text


class Wrong(Exception):
    """Kafka could not use the store."""


class Unknown(Exception):
    """Whether it could is not known."""


def opened(store: dict, password: str | None, key_password: str | None, java: Callable[[], str]) -> list[str]:
    """The certificates, in PEM, of a store that opens, and whose private key does: of a key store the chain of its
    first private key, that key's own first; of a trust store those that it trusts. ``java``: the path of the Java that
    is to open it; it raises Unknown where there is none. Raises Wrong, Unknown, OSError.
    """
    _require_readable(store["path"])
    if store["unknown"]:
        raise Unknown(store["unknown"])
    if store["type"] == "PEM":
        return _pem(store, password, key_password, java)
    if store["kind"] == KEYS and password is None and not store["of_zookeeper"]:
        raise Wrong(NO_PASSWORD_SET)
    done = _keytool(java, ["-list", "-rfc"], store, password)
    said = done.stdout + done.stderr
    if done.returncode:
        if _REFUSED.search(said):
            raise Wrong("its password does not open it" if password is not None else "it has a password; none is set")
        if store["type"] not in _OF_JAVA:
            raise Unknown(
                f"keytool did not open it, and a store of type {store['type']} may need a provider that Kafka has"
            )
        raise Wrong(f"it is no store of type {store['type']}, or is damaged")
    entries = list(zip(ENTRY.findall(said), ENTRY.split(said)[2::2]))
    if store["kind"] != KEYS:
        # Of an entry with a private key Java trusts the first certificate alone.
        found = [each.group() for _, entry in entries if (each := CERTIFICATE.search(entry))]
        if not found:
            raise Wrong("it holds no certificate")
        return found
    keys = [(alias, entry) for alias, entry in entries if "Entry type: PrivateKeyEntry" in entry]
    if not keys:
        raise Wrong("it holds no private key")
    for alias, _ in keys:  # Java opens all of them with the one password
        _open_key(java, store, alias.strip(), password, key_password)
    return CERTIFICATE.findall(keys[0][1])


def _require_readable(path: str) -> None:
    """Raises Wrong where no file is there, OSError where Ansible's user may not read it: Kafka's may."""
    try:
        with open(path, "rb"):
            pass
    except (FileNotFoundError, NotADirectoryError):
        raise Wrong("it is not there") from None
    except IsADirectoryError:
        raise Wrong("it is a directory") from None


def _open_key(java: Callable[[], str], store: dict, alias: str, password: str | None, key_password: str | None) -> None:
    """Ask keytool for something that takes the private key. Of a PKCS12 store it tries the store's password, whatever
    it is given.
    """
    asked = password if key_password is None else key_password
    done = _keytool(java, ["-certreq", "-alias", alias], store, password, asked)
    differs = store["type"] == "PKCS12" and asked != password
    if done.returncode == 0:
        if differs:
            raise Wrong("its key's password is another than its own, with which its private key opens")
        return
    if differs or not _NO_KEY.search(done.stdout + done.stderr):
        raise Unknown("whether the key's password opens its private key can't be told by keytool")
    raise Wrong(
        "its own password does not open its private key, and no password of the key is set"
        if key_password is None
        else "the key's password does not open its private key"
    )


def _keytool(
    java: Callable[[], str], command: list, store: dict, password: str | None, key_password: str | None = None
) -> subprocess.CompletedProcess:
    given = ["-storepass:env", "KRB_STORE"] if password is not None else []
    given += ["-keypass:env", "KRB_KEY"] if key_password is not None else []
    return subprocess.run(
        [_beside(java()), *ENGLISH, *command, "-keystore", store["path"], "-storetype", store["type"], *given],
        input="\n",
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
        env={**os.environ, "KRB_STORE": password or "", "KRB_KEY": key_password or ""},
    )


def _beside(java: str) -> str:
    """The keytool of a Java; else the path's."""
    own = os.path.join(os.path.dirname(java), "keytool")
    found = own if os.access(own, os.X_OK) else shutil.which("keytool")
    if not found:
        raise Unknown(f"no keytool: neither beside {java} nor on the path")
    return found


def _pem(store: dict, password: str | None, key_password: str | None, java: Callable[[], str]) -> list[str]:
    with open(store["path"], encoding="latin-1") as stream:
        text = stream.read()
    found = CERTIFICATE.findall(text)
    if not found:
        raise Wrong("it holds no certificate")
    if password is not None and not store["of_zookeeper"]:
        raise Wrong(f"a {store['kind']} password is set, with which Kafka takes no store of type PEM")
    if store["kind"] == KEYS:
        # ZooKeeper's client has one password, and takes an empty one for none.
        _open_pem_key(store["path"], text, (password or None) if store["of_zookeeper"] else key_password, java)
    return found


def _open_pem_key(path: str, text: str, password: str | None, java: Callable[[], str]) -> None:
    keys = PRIVATE.findall(text)
    if len(keys) != 1:
        raise Wrong("it holds no private key" if not keys else f"it holds {len(keys)} private keys, and may hold one")
    label, body = keys[0]
    if label.strip() not in ("", "ENCRYPTED"):
        raise Wrong(f"its private key is a {label}PRIVATE KEY, and Java reads PKCS #8 alone (openssl pkcs8 -topk8)")
    encrypted = bool(label)
    if encrypted and password is None:
        raise Wrong("its private key is encrypted, and no password of the key is set")
    if password is not None and not encrypted:
        raise Wrong("its private key is not encrypted, and with a password of the key set it would have to be")
    try:
        head = base64.b64decode(body)[:64]
    except (binascii.Error, ValueError):
        raise Wrong("its private key is damaged") from None
    if encrypted and not any(each in head for each in _TRIED_HERE):
        raise Unknown("its private key is encrypted in a way that can't be tried here")
    _load(path, password, encrypted=encrypted)
    if encrypted and _PBES2 in head:
        release = _java_release(java())
        if release <= _JAVA_WITHOUT:
            raise Wrong(
                f"its private key is encrypted by PBES2, which Java {release} does not open for Kafka (JDK-8231581);"
                " openssl pkcs8 -topk8 -v1 PBE-SHA1-3DES makes one that it does"
            )
        if release < _JAVA_WITH:
            raise Unknown(f"its private key is encrypted by PBES2, which Java {release} may not open (JDK-8231581)")


def _load(path: str, password: str | None, *, encrypted: bool) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with contextlib.suppress(ssl.SSLError):  # small keys are for Java to refuse; older libraries have no such levels
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
    try:
        context.load_cert_chain(path, password=lambda: password or "")
    except ssl.SSLError as error:
        if error.reason in _OTHER_KEY:
            raise Wrong("its private key is not that of its first certificate") from None
        if encrypted and error.reason in _NOT_DECRYPTED:
            raise Wrong("the key's password does not open its private key") from None
        raise Unknown(f"its private key can't be tried here ({error.reason or 'no reason is given'})") from None


def _java_release(java: str) -> int:
    done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=SECONDS, check=False)
    found = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    if not found:
        raise Unknown(f"{java} -version did not name a version")
    return int(found.group(1))
