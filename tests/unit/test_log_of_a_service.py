"""What is shown of the log of a process that does not stay up."""

from __future__ import annotations

from feature_looks import host_module

host_module("kafka_host")
host_module("properties_text")
host_module("environment_files")
tail = host_module("service_manager")._tail


def test_the_last_errors_are_shown_above_the_end_where_the_end_holds_none() -> None:
    refused = [f"ERROR [RaftManager id=2] INCONSISTENT_CLUSTER_ID (correlationId={n})" for n in range(50)]
    fatal = "ERROR [BrokerServer id=2] Fatal error during broker startup. Prepare to shutdown"
    ending = [f"INFO shutting down {n}" for n in range(40)]
    shown = tail("\n".join(["INFO starting", *refused, fatal, "\tat org.apache.kafka.X", *ending]))
    assert shown == [refused[-1], fatal, "...", *ending[-15:]]


def test_of_many_errors_the_last_three_kinds_are_shown() -> None:
    shown = tail("\n".join([*(f"ERROR of {kind}" for kind in "abcda"), *["INFO"] * 15]))
    assert shown[:4] == ["ERROR of c", "ERROR of d", "ERROR of a", "..."]


def test_an_end_that_says_what_is_wrong_stays_as_it_is() -> None:
    lines = [f"INFO {n}" for n in range(30)] + ["ERROR Exiting Kafka due to fatal exception"]
    assert tail("\n".join(lines)) == lines[-15:]
