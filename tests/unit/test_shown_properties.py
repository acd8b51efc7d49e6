"""What a difference of a properties file shows: no secret, also none that somebody only commented out."""

from __future__ import annotations

import pytest
from feature_looks import host_module

shown = host_module("properties_text").shown

COMMENTED_OUT = """\
#listener.name.sasl_ssl.plain.sasl.jaas.config=\\
#   org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" \\
#   password="by-hand" \\
#   user_alice="by-hand";
# brokers of rack a
broker.id=1
"""


def test_the_further_lines_of_a_login_that_is_commented_out_are_hidden_to_its_end() -> None:
    told = shown(COMMENTED_OUT)
    assert "by-hand" not in told
    assert told.rstrip().splitlines()[-2:] == ["# brokers of rack a", "broker.id=1"]


@pytest.mark.parametrize(
    "line",
    [
        '# org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="by-hand";',
        "! the old one was ssl.key.password=by-hand",
    ],
)
def test_a_comment_with_a_secret_in_it_is_hidden_from_there_on(line: str) -> None:
    assert shown(line).startswith(line[:10]) and "by-hand" not in shown(line)


def test_a_comment_without_one_stays_as_it_is() -> None:
    lines = ["# one: \\", "# two", "#log.dirs=/a,\\", "# /b"]
    assert shown("\n".join(lines)).splitlines() == lines
