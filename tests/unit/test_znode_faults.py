"""Each kind of znode that Kafka can't go on with is told, by its path and by what comes of it; no value is
ever quoted.
"""

from __future__ import annotations

import pytest
from bad_znodes import BAD, GOOD, Bad, acl, config, data_of
from observations import SPEC

from kraft_runbook.cluster.observation import Consequence, Unread
from kraft_runbook.cluster.spec_types import SecretRef
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.password_encoder import decode_password, encode_password
from kraft_runbook.metadata.znodes.znode_faults import faults_of
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets, ZnodeFindings
from kraft_runbook.metadata.znodes.znode_rows import Decoding
from kraft_runbook.parity.decoding import decoding_of, password_secrets

# "correct horse", encoded by Kafka 3.9.2 (EncryptingPasswordEncoder) with the secrets "now" and "old".
WITH_NOW = (
    "initializationVector:BGGzcyGXd32D2PAQ8iu30A==,keyLength:128,salt:0SXiJ5g2mZjRJ+deUGnlSjIZnp4PrYRUkk/3SI4GvooJVc/V5a+pX7f9FrhrnYxNu"
    "Cl4koqfuND0vZSc7PT5YXZ7ve0gXiJdq4ZBeAi9THLYHNuUHWxB1gLBuWhb0qbVZFvnTcMsdZFO4W5+8VSSn5nMW2CywjsrblmjZe/Am1zdfs7fXQeOHHRXZWNEyK6qkEq"
    "jllsQyk1Gofp2oLlqhD7gOhKedG7F6vTXY4IMBJNfaIKDsJPpieCfm/SN8AJQGkxm6NKZocrNCt8HLtQc2/aUUBOCkdcJJkbT9hRGPCXx+yF/1GHq7Px+Cn8bzWR8keU5x"
    "MMyoumGAYdfMWGigA==,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:1"
    "3,encryptedPassword:CrgH42ddwVGqOUQzJFqVtw=="
)
WITH_OLD = (
    "initializationVector:N7DfSBYjSOKXdAmJLp+OQg==,keyLength:128,salt:ANRMTtlwus9BPTQLbfHYX+cVqS2dqX8gt+tkfQAIIxo4qbRX3RkM8L01eH423ux+F"
    "/B4eJHKYx3l4yABYxalyIw947lEbpWqd8uh6+qzDXGoFXOwwPVGWSpKGolxHmaWcc6H2L6ZKRcROZMlzp/nlW/X4LaZT/qTlfJGONyW5nQ0nAnyM5AqWbYyyrnyjOyGvj6"
    "+r2Vb55yDmFWvmcF7SoqCaq8zJJrqAvTJHVGhSOWA76ee5cev3I4ZqbkkjJwTj4fvgA9+OESEW7lwHEYMP2AKUmuq+ilda7YVOQC6iS3KcaXxJ61ZuQeCubj5ZkcKpSL3t"
    "S22z4LaVoHE5Hv7dQ==,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CBC/PKCS5Padding,iterations:4096,passwordLength:1"
    "3,encryptedPassword:5WSlxfZMAyrdKBjGzEHJdA=="
)
IN_CTR = (
    "initializationVector:THm8R/oDkMxwdZNPWdZO1w==,keyLength:128,salt:6h+GXibCFgSb8X8ujyJa6SaK7LOduUQmaTEADbuUMENxeBhnvW3g4ERQO2ymuZ+a7"
    "x0QjT8E2nRSm5aqqhCVKxlXOyvvY3bSz2eB/mkT7xPkREYqwpM+NZVBERzBq/ySxAdM1S480xp3RNya0aTmRKOUlqtaVq880ax2IyGjcEOVuZGyKYYkB3KOK8+5QcvfxeQ"
    "QqarYILnKmXZJEJFP0rV7YUoJoEc4REaLO4FHJG3vmQ7f8yrGOHju1uqmTuSOldnNkmOb0XYdFnqsN4uYY57TS+H4wzRzyUILF1ho3D/t1FcVkaSQ0alRY+lIg5umIwSMf"
    "GiVXmPlFZ5VjW+n9A==,keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:AES/CTR/NoPadding,iterations:4096,passwordLength:13,e"
    "ncryptedPassword:diyQ2bAMk17jXymdog=="
)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad[0]} {data_of(bad[1])[:60]!r}")
def test_a_bad_znode_is_told(bad: Bad) -> None:
    path, content, expected = bad
    found = faults_of(path, data_of(content))
    assert {(each.consequence, each.problem) for each in found} == expected
    assert {each.path for each in found} == {path}


@pytest.mark.parametrize("good", GOOD, ids=lambda good: f"{good[0]} {data_of(good[1])[:60]!r}")
def test_a_good_one_is_not(good: tuple[str, object]) -> None:
    assert faults_of(good[0], data_of(good[1])) == ()


@pytest.mark.parametrize("root", ["/config/clients", "/config/users", "/kafka-acl/Topic"])
def test_a_name_that_no_record_takes_ends_the_copy(root: str) -> None:
    data = data_of(acl() if root.startswith("/kafka-acl") else config(request_percentage="1"))
    (found,) = faults_of(f"{root}/{'x' * 32_768}", data)
    assert (found.consequence, found.problem.partition(" has")[2]) == (
        Consequence.COPY_FAILS,
        " more than 32,767 bytes, which no record of KRaft's metadata log takes",
    )
    assert faults_of(f"{root}/{'x' * 32_767}", data) == ()


@pytest.mark.parametrize(("length", "told"), [(32_767, False), (32_768, True)])
def test_a_password_counts_as_it_is_decoded(length: int, told: bool) -> None:
    """Encoded, both have more bytes than a record's text may have."""
    encoded = encode_password("p" * length, "now", like=WITH_NOW, random=bytes)
    assert len(encoded) > 32_768
    findings = ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets("now"))
    findings.see("/config/brokers/1", data_of(config(**{NAME: encoded})))
    assert [each.problem for each in findings.passwords] == [None]
    assert [found.samples for found in findings.faults.values()] == [
        (f"/config/brokers/1 ({NAME} has more than 32,767 bytes, which no record of KRaft's metadata log takes)",)
    ] * told


def test_a_producer_id_block_that_is_null_says_that_none_was_handed_out() -> None:
    """Kafka tells that from an empty one, which ends the copy (``KafkaZkClient.getDataAndStat``)."""
    assert faults_of("/latest_producer_id_block", None) == ()
    assert {each.consequence for each in faults_of("/feature", None)} == {Consequence.BROKER_STAYS_DOWN}


CIPHERS = {"plain text": "", IN_CTR: "AES/CTR/NoPadding"}
NAME = "listener.name.sasl.scram-sha-256.sasl.jaas.config"


@pytest.mark.parametrize(
    ("encoded", "secrets", "problem"),
    [
        (WITH_NOW, PasswordSecrets("now"), None),
        (WITH_NOW, PasswordSecrets("other", "old"), "password.encoder.secret does not decode it"),
        (WITH_OLD, PasswordSecrets("now", "old"), "it is encoded with password.encoder.old.secret"),
        (IN_CTR, PasswordSecrets("now"), None),
        (IN_CTR, PasswordSecrets("other"), "password.encoder.secret does not decode it"),
        ("plain text", PasswordSecrets("now"), "it is not encoded as Kafka encodes passwords"),
        (WITH_NOW, PasswordSecrets(None, "old", "it is nowhere"), Unread("it is nowhere")),
    ],
)
def test_a_stored_password_is_decoded_and_never_shown(
    encoded: str, secrets: PasswordSecrets, problem: str | Unread | None
) -> None:
    findings = ZnodeFindings(Decoding(Fingerprints(b"salt")), secrets)
    assert findings.see("/config/brokers/1", data_of(config(**{NAME: encoded, "max.connections": "5"})))
    (found,) = findings.passwords
    assert (found.path, found.name, found.cipher) == (
        "/config/brokers/1",
        NAME,
        CIPHERS.get(encoded, "AES/CBC/PKCS5Padding"),
    )
    assert found.problem == problem or (
        isinstance(problem, str) and isinstance(found.problem, str) and found.problem.startswith(problem)
    )
    assert not {"correct horse", encoded} & {str(found), str(findings.faults)} and "correct" not in str(found)


@pytest.mark.parametrize("secret", ["now", "now\n", " \tnow \r\n"])
def test_the_encoder_s_secret_is_taken_without_the_blanks_around_it_as_kafka_takes_it(secret: str) -> None:
    """``ConfigDef.parseType`` trims every text; a secret from a file often ends with a line's end."""
    refs = {"password.encoder.secret": SecretRef(env="NOW"), "password.encoder.old.secret": SecretRef(env="OLD")}
    spec = SPEC.model_copy(update={"secrets": refs})

    def secrets(ref: SecretRef) -> str:
        return secret if ref.env == "NOW" else secret.replace("now", "old")

    assert decode_password(WITH_NOW, str(decoding_of(spec, secrets=secrets).encoder_secret)) == "correct horse"
    assert password_secrets(spec, secrets) == PasswordSecrets("now", "old")


def test_what_a_comparison_cannot_read_is_counted_beside_the_faults() -> None:
    findings = ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets())
    for path, content, _ in BAD:
        findings.see(path, data_of(content))
    assert findings.unreadable.count > len(findings.unreadable.samples) == 20
    told = {each.consequence for path, content, _ in BAD for each in faults_of(path, data_of(content))}
    assert findings.faults.keys() == told
