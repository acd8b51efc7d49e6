"""What a host's look at a key store says of it, beside what Kafka itself does with the same store and passwords."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from asked_java import ask_java
from feature_looks import host_module
from kafka_jars import kafka_jar

OF_STORE, OF_KEY, GUESSED = "of-the-store", "of-the-key", "guessed-one"


key_stores = host_module("key_stores")


def run(*words: str | Path) -> None:
    subprocess.run(words, check=True, capture_output=True)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    here = tmp_path_factory.mktemp("stores")
    made = ("-keyalg", "EC", "-dname", "CN=c101", "-alias", "own", "-storepass", OF_STORE)
    run("keytool", "-genkeypair", "-keystore", here / "k.jks", "-storetype", "JKS", "-keypass", OF_KEY, *made)
    run("keytool", "-genkeypair", "-keystore", here / "k.p12", "-storetype", "PKCS12", *made)
    curve, bare = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"), here / "bare"
    for name in ("bare", "other"):
        run(
            "openssl",
            "req",
            "-x509",
            *curve,
            "-nodes",
            "-keyout",
            here / name,
            "-out",
            here / f"{name}.crt",
            "-subj",
            "/CN=c",
        )
    run("openssl", "ec", "-in", bare, "-out", here / "sec1")
    for name, how in (("pbes1", ("-v1", "PBE-SHA1-3DES")), ("pbes2", ("-v2", "aes256"))):
        run("openssl", "pkcs8", "-topk8", *how, "-in", bare, "-out", here / name, "-passout", f"pass:{OF_KEY}")
    certificate = (here / "bare.crt").read_text()
    for name in ("bare", "sec1", "pbes1", "pbes2", "other"):
        (here / f"{name}.pem").write_text((here / name).read_text() + certificate)
    (here / "two.pem").write_text((here / "bare.pem").read_text() + bare.read_text())
    return here


def java() -> str:
    found = shutil.which("java")
    assert found is not None
    return str(Path(found).resolve())


def look(file: Path, password: str | None, key_password: str | None, **also: object) -> str:
    """What is wrong with the store; empty where nothing is; ``?`` and why, where that is not known."""
    kind = {".jks": "JKS", ".p12": "PKCS12"}.get(file.suffix, "PEM")
    asked = {"path": str(file), "kind": "keystore", "type": kind, "of_zookeeper": False, "unknown": "", **also}
    try:
        found = key_stores.opened(asked, password, key_password, java)
    except key_stores.Wrong as error:
        return str(error)
    except key_stores.Unknown as error:
        return f"?{error}"
    assert len(found) == 1 and found[0].startswith("-----BEGIN CERTIFICATE-----")
    return ""


CASES = [
    ("k.jks", OF_STORE, OF_KEY, ""),
    ("k.jks", OF_STORE, GUESSED, "the key's password does not open its private key"),
    ("k.jks", OF_STORE, None, "no password of the key is set"),
    ("k.jks", GUESSED, OF_KEY, "its password does not open it"),
    ("k.jks", None, OF_KEY, "no password is set for it"),
    ("k.p12", OF_STORE, None, ""),
    ("k.p12", OF_STORE, OF_STORE, ""),
    ("k.p12", OF_STORE, GUESSED, "its key's password is another than its own"),
    ("bare.pem", None, None, ""),
    ("bare.pem", None, OF_KEY, "its private key is not encrypted"),
    ("bare.pem", OF_STORE, None, "a keystore password is set"),
    ("sec1.pem", None, None, "its private key is a EC PRIVATE KEY"),
    ("pbes1.pem", None, OF_KEY, ""),
    ("pbes1.pem", None, GUESSED, "the key's password does not open its private key"),
    ("pbes1.pem", None, None, "is encrypted, and no password of the key is set"),
    ("pbes2.pem", None, GUESSED, "the key's password does not open its private key"),
    ("two.pem", None, None, "it holds 2 private keys"),
]


def test_each_store_is_judged_as_kafka_judges_it(stores: Path) -> None:
    for name, password, key_password, told in CASES:
        said = look(stores / name, password, key_password)
        assert told in said and bool(told) == bool(said), (name, password, key_password)
    kinds = {"jks": "JKS", "p12": "PKCS12", "pem": "PEM"}
    asked = "".join(f"{kinds[n[-3:]]} {stores / n} {p or '-'} {k or '-'}\n" for n, p, k, _ in CASES)
    jars = kafka_jar("kafka-clients").parent
    answers = ask_java(Path(__file__).with_name("AskKeyStores.java"), jars=jars, given=asked).split()
    assert answers == ["refused" if told else "taken" for *_, told in CASES]


def test_a_private_key_of_another_certificate_is_told_which_kafka_finds_at_the_first_connection(stores: Path) -> None:
    assert look(stores / "other.pem", None, None) == "its private key is not that of its first certificate"


@pytest.mark.parametrize(("release", "told"), [(17, "which Java 17 does not open for Kafka"), (21, "?"), (25, "")])
def test_a_key_of_pbes2_opens_where_java_can(
    stores: Path, monkeypatch: pytest.MonkeyPatch, release: int, told: str
) -> None:
    monkeypatch.setattr(key_stores, "_java_release", lambda _: release)
    said = look(stores / "pbes2.pem", None, OF_KEY)
    assert told in said and bool(told) == bool(said)


def test_zookeepers_client_has_one_password_for_both(stores: Path) -> None:
    assert look(stores / "pbes1.pem", OF_KEY, None, of_zookeeper=True) == ""
    assert "does not open its private key" in look(stores / "pbes1.pem", GUESSED, None, of_zookeeper=True)
    assert look(stores / "bare.pem", "", None, of_zookeeper=True) == ""


def test_what_is_no_store_is_told_and_a_type_that_java_has_not_by_itself_is_not_judged(
    stores: Path, tmp_path: Path
) -> None:
    (tmp_path / "k.p12").write_text("no store")
    assert look(tmp_path / "k.p12", OF_STORE, None) == "it is no store of type PKCS12, or is damaged"
    assert look(tmp_path / "k.p12", OF_STORE, None, type="JCEKS") == "it is no store of type JCEKS, or is damaged"
    assert look(stores / "k.p12", OF_STORE, None, type="BCFKS").startswith("?keytool did not open it, and a store of")
    assert look(tmp_path, OF_STORE, None, type="JKS") == "it is a directory"
    for gone in (tmp_path / "none.p12", tmp_path / "k.p12" / "none.p12"):
        assert look(gone, OF_STORE, None) == "it is not there"


def test_a_store_that_kafka_alone_may_read_is_not_judged(stores: Path) -> None:
    before = os.geteuid()
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory) / "closed" / "k.p12"
        store.parent.mkdir()
        shutil.copy(stores / "k.p12", store)
        for mode_of_file, mode_of_directory in ((0, 0o755), (0o644, 0)):
            os.chmod(directory, 0o755)
            store.chmod(mode_of_file)
            store.parent.chmod(mode_of_directory)
            if before == 0:
                os.seteuid(65534)
            try:
                with pytest.raises(PermissionError):
                    look(store, OF_STORE, None)
            finally:
                os.seteuid(before)
                store.parent.chmod(0o755)
