"""The copy's expected length, what is rendered to shorten it, and that Kafka knows each name."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from asked_java import ask_java
from hypothesis import given
from hypothesis import strategies as st
from kafka_jars import kafka_jar
from observations import SPEC

from kraft_runbook.migration.copy_tuning import (
    COPIES,
    HEAPS,
    LARGE,
    SIZES,
    SMALL,
    Settings,
    estimate,
    heap_mib,
    heap_needed,
    quieted,
    render_measurements,
    size_of,
    tune,
)

ROOT = Path(__file__).resolve().parents[2]
COUNTS = st.integers(0, 5_000_000)


# -- the table ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", Settings)
def test_the_table_has_each_size_once_and_a_larger_copy_takes_longer(settings: Settings) -> None:
    rows = sorted((row for row in COPIES if row.settings is settings), key=lambda row: row.partitions)
    assert len({row.partitions for row in rows}) == len(rows) > 0
    assert [row.seconds for row in rows] == sorted(row.seconds for row in rows)
    assert all(row.records > row.partitions and row.records_a_second > 0 and row.source for row in rows)


@pytest.mark.parametrize("row", COPIES, ids=lambda row: f"{row.partitions}-{row.settings.name}")
def test_at_a_measured_size_the_measured_time_is_expected(row) -> None:
    assert estimate(row.partitions, row.settings).seconds == row.seconds
    assert estimate(row.partitions, row.settings).beyond is None


@pytest.mark.parametrize("settings", Settings)
def test_between_two_rows_it_is_read_off_the_line_between_them(settings: Settings) -> None:
    rows = sorted((row.partitions, row.seconds) for row in COPIES if row.settings is settings)
    for (few, quick), (many, slow) in pairwise(rows):
        middle = estimate((few + many) // 2, settings)
        assert middle.seconds == pytest.approx((quick + slow) / 2, abs=0.1)
        assert str(middle).startswith("about ") or middle.seconds < 1


@pytest.mark.parametrize("settings", Settings)
def test_beyond_the_largest_copy_nothing_is_promised(settings: Settings) -> None:
    largest = max((row for row in COPIES if row.settings is settings), key=lambda row: row.partitions)
    found = estimate(largest.partitions + 1, settings)
    assert (found.seconds, found.beyond) == (largest.seconds, largest.partitions)
    assert str(found).startswith("more than ") and f"measured at {largest.partitions:,} partitions" in str(found)


@given(COUNTS, COUNTS, st.sampled_from(Settings))
def test_more_partitions_are_never_expected_to_be_quicker(one: int, other: int, settings: Settings) -> None:
    few, many = sorted((one, other))
    assert estimate(few, settings).seconds <= estimate(many, settings).seconds


def test_the_tables_in_the_docs_are_current() -> None:
    """Print ``render_measurements()`` and put it into docs/copy.md."""
    assert render_measurements() in (ROOT / "docs" / "copy.md").read_text()


# -- the heap ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", HEAPS, ids=lambda row: f"{row.partitions}x{row.brokers}")
def test_the_heap_that_was_measured_is_asked_for_and_more_where_it_was_not_enough(row) -> None:
    need = heap_needed(row.partitions, row.brokers)
    assert (need.mib == row.mib and need.measured) if row.enough else need.mib > row.mib


@given(COUNTS, COUNTS, st.integers(1, 200), st.integers(1, 200))
def test_neither_more_partitions_nor_more_brokers_ever_need_less_heap(
    one: int, other: int, here: int, there: int
) -> None:
    (few, many), (small, large) = sorted((one, other)), sorted((here, there))
    assert heap_needed(few, small).mib <= heap_needed(many, large).mib


def test_many_partitions_on_few_brokers_need_room_for_the_metadata_itself() -> None:
    assert heap_needed(1_000_000, 3).mib > 1024
    assert not heap_needed(1_000_000, 3).measured


def test_a_heap_is_given_as_java_takes_it() -> None:
    assert (heap_mib("512m"), heap_mib("6g"), heap_mib("2G")) == (512, 6144, 2048)
    with pytest.raises(ValueError, match="6 GB is no heap"):
        heap_mib("6 GB")


@pytest.mark.parametrize(("more", "enough"), [(None, None), (0, True), (-1, False)])
def test_a_declared_heap_is_compared_and_an_undeclared_one_is_not_taken_for_enough(
    more: int | None, enough: bool | None
) -> None:
    need = heap_needed(200_000, 30)
    spec = SPEC.model_copy(
        update={"controller_heap": None if more is None else f"{need.mib + more}m", "brokers": SPEC.brokers * 10}
    )
    tuning = tune(spec, 200_000)
    assert tuning.heap_is_enough is enough
    assert f"each controller needs {need}" in tuning.render_heap()


# -- the sizes ---------------------------------------------------------------------------------------------------------


def test_a_small_cluster_keeps_kafkas_defaults() -> None:
    assert size_of(0) is size_of(1_999) is SMALL
    assert not SMALL.properties and not SMALL.loggers
    assert "no setting is rendered for it" in "\n".join(tune(SPEC, 501).render_lines())


def test_a_large_cluster_gets_what_was_measured() -> None:
    assert size_of(2_000) is LARGE and size_of(2_000_000).properties
    assert dict(LARGE.properties) == {
        "zookeeper.metadata.migration.min.batch.size": "5000",
        "zookeeper.max.in.flight.requests": "200",
    }
    assert dict(LARGE.loggers) == {"org.apache.kafka.controller": "WARN", "org.apache.kafka.image": "WARN"}


def test_the_plans_lines_say_both_times_every_setting_and_where_the_loggers_are() -> None:
    text = "\n".join(tune(SPEC, 200_000, topics=20_000).render_lines())
    tuned, defaults = estimate(200_000, size_of(200_000).settings), estimate(200_000, Settings.DEFAULTS)
    assert (
        f"200,000 partitions of 20,000 topics: {tuned} with the rendered settings, {defaults} with Kafka's defaults"
        in text
    )
    assert all(f"{key}={value}: " in text for key, value in size_of(200_000).properties.items())
    assert "set them by hand: the cluster file names no log4j_file" in text
    named = SPEC.model_copy(
        update={"controllers": tuple(c.model_copy(update={"log4j_file": f"/etc/{c.id}"}) for c in SPEC.controllers)}
    )
    assert "in /etc/101, /etc/102, /etc/103, until finalization" in "\n".join(tune(named, 200_000).render_lines())


def test_quieting_a_logger_keeps_its_appenders_and_never_makes_it_louder() -> None:
    own = {
        "log4j.rootLogger": "INFO, stdout",
        "log4j.logger.org.apache.kafka.controller": "TRACE, controllerAppender",
        "log4j.logger.org.apache.kafka.image": "error",
    }
    assert quieted(own, LARGE) == {
        **own,
        "log4j.logger.org.apache.kafka.controller": "WARN, controllerAppender",
        "log4j.logger.org.apache.kafka.image": "ERROR",
    }
    assert quieted({}, LARGE) == {
        "log4j.logger.org.apache.kafka.controller": "WARN",
        "log4j.logger.org.apache.kafka.image": "WARN",
    }
    assert quieted(own, SMALL) == own


# -- Kafka's own word --------------------------------------------------------------------------------------------------

ASK = """
import java.util.*;
public class Ask {
  public static void main(String[] given) throws Exception {
    var keys = kafka.server.KafkaConfig.configDef().configKeys();
    for (String each : given) {
      String name = each.split("=")[0];
      String value = each.split("=")[1];
      var key = keys.get(name);
      if (key == null) { System.out.println("UNKNOWN " + name); continue; }
      Object parsed = org.apache.kafka.common.config.ConfigDef.parseType(name, value, key.type);
      if (key.validator != null) key.validator.ensureValid(name, parsed);
      System.out.println(name + " takes " + parsed + " in place of " + key.defaultValue);
    }
    for (String logger : List.of("org.apache.kafka.controller.QuorumController", "org.apache.kafka.image.MetadataImage",
        "org.apache.kafka.metadata.migration.KRaftMigrationDriver"))
      System.out.println(Class.forName(logger, false, Ask.class.getClassLoader()).getPackageName());
  }
}
"""


def test_kafka_3_9_defines_every_property_and_takes_its_value(tmp_path: Path) -> None:
    (tmp_path / "Ask.java").write_text(ASK)
    rendered = {f"{key}={value}" for size in SIZES for key, value in size.properties.items()}
    said = ask_java(tmp_path / "Ask.java", *sorted(rendered), jars=kafka_jar("kafka_2.13").parent).splitlines()
    assert {line.partition(" in place of ")[0] for line in said[:-3]} == {
        each.replace("=", " takes ") for each in rendered
    }
    assert {
        "zookeeper.max.in.flight.requests takes 200 in place of 10",
        "zookeeper.metadata.migration.min.batch.size takes 5000 in place of 200",
    } <= {*said}
    assert said[-3:] == [
        *(
            "org.apache.kafka.controller",
            "org.apache.kafka.image",
        ),  # the loggers that are quieted are those of these packages
        "org.apache.kafka.metadata.migration",  # the copy's own lines are not among them
    ]
