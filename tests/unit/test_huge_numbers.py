"""A number with thousands of digits, wherever it stands, is named and ends no look (Python reads 4,300 at most)."""

from __future__ import annotations

import pytest

from kraft_runbook.cluster.java_values import NotJson, java_int, java_long, parse_json
from kraft_runbook.cluster.observation import Consequence
from kraft_runbook.metadata.canonical_rows import Fingerprints
from kraft_runbook.metadata.znodes.password_encoder import Undecodable, decode_password
from kraft_runbook.metadata.znodes.topic_config_values import refused
from kraft_runbook.metadata.znodes.znode_findings import PasswordSecrets, ZnodeFindings
from kraft_runbook.metadata.znodes.znode_rows import Decoding

HUGE = "9" * 5_000
ID = "B" * 21 + "A"
ENCODED = (
    "encryptedPassword:YQ==,keyLength:{0},iterations:{1},passwordLength:{2},salt:YQ==,initializationVector:YQ==,"
    "cipherAlgorithm:AES/CBC/PKCS5Padding,keyFactoryAlgorithm:PBKDF2WithHmacSHA512"
)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        (HUGE, None),
        (f"-{HUGE}", None),
        (f"1{'0' * 5_000}", None),
        (f"{'0' * 5_000}12", 12),
        (f"-{'0' * 5_000}12", -12),
        (f"+{'0' * 5_000}", 0),
        (f"{'٠' * 5_000}٣", 3),
        (f"{'0' * 5_000}x", None),
    ],
)
def test_java_reads_any_number_of_zeros_and_no_number_too_large(text: str, number: int | None) -> None:
    assert java_int(text) == java_long(text) == number


def test_json_with_a_number_of_more_digits_than_jackson_takes_is_none() -> None:
    assert parse_json(b"[-%b]" % (b"9" * 1_000)) == [-int("9" * 1_000)]
    with pytest.raises(NotJson):
        parse_json(b"[%b]" % (b"9" * 1_001))


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/brokers/topics/t", f'{{"topic_id":"{ID}","partitions":{{"0":[{HUGE}]}}}}'),
        ("/brokers/topics/t", f'{{"topic_id":"{ID}","partitions":{{"{HUGE}":[1]}}}}'),
        ("/brokers/topics/t/partitions/0/state", f'{{"leader":{HUGE},"isr":[1],"leader_epoch":0}}'),
        ("/config/topics/t", f'{{"version":1,"config":{{"retention.ms":"{HUGE}"}}}}'),
        ("/config/topics/t", f'{{"version":1,"config":{{"follower.replication.throttled.replicas":"{HUGE}:1"}}}}'),
        ("/config/brokers/1", f'{{"version":1,"config":{{"leader.replication.throttled.rate":"{HUGE}"}}}}'),
        (f"/config/brokers/{HUGE}", '{"version":1,"config":{}}'),
        ("/config/users/u", f'{{"version":1,"config":{{"producer_byte_rate":"{HUGE}"}}}}'),
        (
            "/config/users/u",
            f'{{"config":{{"SCRAM-SHA-256":"salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations={HUGE}"}}}}',
        ),
        ("/config/ips/1.2.3.4", f'{{"version":1,"config":{{"connection_creation_rate":"{HUGE}"}}}}'),
        ("/latest_producer_id_block", f'{{"version":1,"broker":1,"block_start":"{HUGE}","block_end":"{HUGE}"}}'),
        ("/delegation_token/tokens/x", f'{{"version":3,"issueTimestamp":{HUGE}}}'),
        ("/kafka-acl/Topic/t", f'{{"version":{HUGE},"acls":[]}}'),
        ("/feature", f'{{"version":{HUGE}}}'),
    ],
)
def test_a_znode_with_one_is_named(path: str, data: str) -> None:
    findings = ZnodeFindings(Decoding(Fingerprints(b"salt")), PasswordSecrets("secret"))
    findings.see(path, data.encode())
    named = [sample for found in findings.faults.values() for sample in found.samples]
    assert named and all(each.startswith(path) for each in named)
    assert HUGE not in "".join(named).replace(path, "")
    assert set(findings.faults) <= set(Consequence)


@pytest.mark.parametrize(
    "given", [(HUGE, "4096", "1"), ("128", HUGE, "1"), ("128", "4096", HUGE), ("128", "9" * 12, "1")]
)
def test_a_password_with_one_is_not_decoded(given: tuple[str, str, str]) -> None:
    with pytest.raises(Undecodable):
        decode_password(ENCODED.format(*given), "secret")


@pytest.mark.parametrize("value", [HUGE, f"0x1p{HUGE[:6]}", f"1e{HUGE}"])
def test_a_ratio_is_refused(value: str) -> None:
    assert refused("min.cleanable.dirty.ratio", value) == "is not between 0 and 1"
