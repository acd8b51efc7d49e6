"""References to files of the host, followed beside Kafka's own FileConfigProvider."""

from __future__ import annotations

from pathlib import Path

from asked_java import ask_java
from feature_looks import host_module

from lab.installation import JARS

host_module("kafka_host")
host_module("properties_text")
references = host_module("references")

PROVIDERS = {"config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider"}
HELD = {
    "plain": b"word=one\n",
    "escaped": b"word=p\\u00e4ss\r\nother=x",
    "characters": "word=p\u00e4ss\u20ac\n".encode(),
    "latin": "word=p\u00e4ss\n".encode("latin-1"),
    "latin-elsewhere": "word=one\n# \u00e4\n".encode("latin-1"),
    "marked": b"\xef\xbb\xbfword=one\n",
    "none": b"other=x\n",
}


def test_a_file_of_secrets_is_read_as_kafka_reads_it(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in HELD}
    for name, content in HELD.items():
        files[name].write_bytes(content)
    told, reasons = {}, {}
    for name, path in files.items():
        reference = f"${{file:{path}:word}}"
        found, unfollowed = references.followed(reference, PROVIDERS)
        told[name] = "none" if unfollowed else str([ord(each) for each in found])
        assert all(isinstance(each, references.Lacking) for each in unfollowed)
        reasons[name] = [each.problem for each in unfollowed]
    asked = ask_java(Path(__file__).with_name("AskFileProvider.java"), *files.values(), jars=JARS).splitlines()
    assert told == dict(zip(files, asked, strict=True))
    assert told["characters"] == str([ord(each) for each in "p\u00e4ss\u20ac"])
    assert reasons["latin"] == [f"{files['latin']} is not UTF-8, as which Kafka reads it"]
    assert reasons["none"] == [f"{files['none']} has no word"]
