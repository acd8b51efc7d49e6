"""What a broker's answer to Fetch tells of its replicas' topic ids."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

from connected import nodes_that
from observations import SPEC

from kraft_runbook.io.kafka.replica_ids import NO_LOG_ENDS_THERE, IdsHeld, ask_for_ids
from kraft_runbook.io.secrets import environment_secrets
from kraft_runbook.metadata.canonical_rows import kafka_uuid, uuid_of

IDS = {f"t-{n}": f"BQHmqfPtTlGeScgm5iii_{letter}" for n, letter in enumerate("AQgw")}
ERRORS = {"t-0": 0, "t-1": 1, "t-2": 103, "t-3": 100, "t-4": 29}
LAST = "ddaYNaX2RW-M4Tbe3DPT9A"


def held(ids: dict[str, str], answers: dict[str, int], **given: Any) -> tuple[IdsHeld, list[Any]]:
    """What broker 2 has of replicas, which answers with these errors, by topic."""
    fetched: list[Any] = []
    names = {topic_id: name for name, topic_id in ids.items()}

    def answer(_: str, request: Any) -> Any:
        if type(request).__name__ == "MetadataRequest":
            partitions = [
                SimpleNamespace(partition_index=0, replica_nodes=[1, 3]),
                SimpleNamespace(partition_index=5, replica_nodes=[3, 2]),
            ]
            return SimpleNamespace(topics=[SimpleNamespace(name=name, partitions=partitions) for name in answers])
        fetched.append(request)
        return SimpleNamespace(
            error_code=0,
            responses=[
                SimpleNamespace(
                    topic_id=each.topic_id,
                    partitions=[SimpleNamespace(error_code=answers[names[kafka_uuid(each.topic_id)]])],
                )
                for each in request.topics
                if answers[names[kafka_uuid(each.topic_id)]] is not None
            ],
        )

    ask = partial(ask_for_ids, SPEC, SPEC.broker(2), secrets=environment_secrets({}), connect=nodes_that(answer))
    return ask(ids, **given), fetched


def test_another_id_is_told_from_the_same_and_from_what_tells_nothing() -> None:
    found, fetched = held({**IDS, "t-4": LAST}, ERRORS, at_once=2)
    assert (found.alike, found.otherwise) == (2, ("t-2",))
    assert found.unread == {
        "t-3": f"the broker does not know ZooKeeper's id {IDS['t-3']}",
        "t-4": "this tool's identity may not read the topic",
    }
    assert [len(each.topics) for each in fetched] == [2, 2, 1]


def test_a_replica_of_its_own_is_asked_for_by_the_id_where_nothing_can_be_read() -> None:
    _, (request,) = held({"t-0": IDS["t-0"]}, {"t-0": 1})
    (topic,) = request.topics
    (partition,) = topic.partitions
    assert topic.topic_id == uuid_of(IDS["t-0"])
    assert (partition.partition, partition.fetch_offset, request.max_wait_ms) == (5, NO_LOG_ENDS_THERE, 0)


def test_a_topic_that_the_answer_lacks_and_one_without_an_id_count_for_nothing() -> None:
    found, fetched = held({"t-0": IDS["t-0"], "t-1": "nonsense"}, {"t-0": None, "t-1": 0, "t-9": 0})  # type: ignore[dict-item]
    assert found == IdsHeld(0, (), {"t-0": "the broker did not name it"})
    assert len(fetched) == 1


def test_a_topic_that_is_not_shown_was_not_looked_at() -> None:
    """Metadata leaves out, without an error, what the identity may not describe."""
    found, fetched = held({"t-0": IDS["t-0"], "t-1": IDS["t-1"]}, {"t-0": 0})
    assert (found.alike, list(found.unread), len(fetched)) == (1, ["t-1"], 1)
    assert "may not describe the topic" in found.unread["t-1"]
