"""The distributions of Kafka: how their versions end, where an installation has its jars and scripts, and where their
packages put what a cluster file names. Pure.

Sources: Apache's archive, and for Confluent's archive and packages cp-ansible (``roles/variables``) and the class paths
that brokers log. Confluent's software was not at hand: its layout is tested with Apache's jars laid out like it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Distribution:
    """``ending``: of its versions. ``jars`` and ``script``: below ``home``; ``{}`` is a tool such as kafka-storage. The
    rest is what ``adopt`` takes where nothing else names it (``controller_file``: beside the brokers' own, or a path).
    """

    name: str
    ending: str
    jars: str
    script: str
    home: str
    service: str
    broker_file: str
    controller_service: str
    controller_file: str
    controller_log_dir: str


APACHE = Distribution(
    name="Apache Kafka",
    ending="",
    jars="libs",
    script="bin/{}.sh",
    home="/opt/kafka",
    service="kafka",
    broker_file="/etc/kafka/server.properties",
    controller_service="kafka-controller",
    controller_file="controller.properties",
    controller_log_dir="/var/lib/kafka/controller",
)
CONFLUENT_SERVER = Distribution(
    name="Confluent Server",
    ending="-ce",
    jars="share/java/kafka",
    script="bin/{}",
    home="/usr",
    service="confluent-server",
    broker_file="/etc/kafka/server.properties",
    controller_service="confluent-kcontroller",
    controller_file="/etc/controller/server.properties",
    controller_log_dir="/var/lib/controller/data",
)
CONFLUENT_COMMUNITY = Distribution(
    name="Confluent's community Kafka",
    ending="-ccs",
    jars=CONFLUENT_SERVER.jars,
    script=CONFLUENT_SERVER.script,
    home=CONFLUENT_SERVER.home,
    service="confluent-kafka",
    broker_file=CONFLUENT_SERVER.broker_file,
    controller_service=CONFLUENT_SERVER.controller_service,
    controller_file=CONFLUENT_SERVER.controller_file,
    controller_log_dir=CONFLUENT_SERVER.controller_log_dir,
)
DISTRIBUTIONS = (APACHE, CONFLUENT_COMMUNITY, CONFLUENT_SERVER)
LAYOUTS = tuple(dict.fromkeys((each.jars, each.script) for each in DISTRIBUTIONS))
"""Of an installation. The hosts have the same (``playbooks/module_utils/installation.py``); a test compares them."""


def distribution_of(version: str) -> Distribution:
    """By how the version ends; a version of any other ending is taken for Apache's."""
    return next((each for each in DISTRIBUTIONS if each.ending and version.strip().endswith(each.ending)), APACHE)
