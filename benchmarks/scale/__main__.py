"""``python -m benchmarks.scale up|status|churn|down``: see benchmarks/README.md."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks.scale import churn, measure
from benchmarks.scale.cluster import DEFAULT_DIRECTORY, DEFAULT_NETWORK, Plan, heaps, saved_plan
from kraft_runbook.errors import RunbookError


def _property(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not (key and equals):
        raise argparse.ArgumentTypeError(f"{text!r} is not key=value")
    return key, value


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scale",
        description="A cluster of any size: real ZooKeeper, real controllers, stand-in brokers",
    )
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="make it, let the controllers copy, leave it in dual write")
    add_up_options(up)
    up.add_argument("--partitions", type=int, default=20_000)
    up.add_argument(
        "--set",
        dest="properties",
        action="append",
        type=_property,
        default=[],
        metavar="KEY=VALUE",
        help="a property of every controller",
    )
    up.add_argument(
        "--log-level-warn",
        action="store_true",
        help="the controllers' loggers of org.apache.kafka.controller and .image at WARN",
    )
    up.add_argument("--keep", action="store_true", help="when it fails, leave what runs for a look")
    for name, purpose in (
        ("status", "what runs, and whether dual write moves"),
        ("down", "stop it"),
        ("churn", "change metadata at a rate"),
    ):
        command = commands.add_parser(name, help=purpose)
        command.add_argument("--directory", type=Path, default=DEFAULT_DIRECTORY)
        if name == "down":
            command.add_argument("--purge", action="store_true", help="and remove its directory")
        if name == "churn":
            command.add_argument("--rate", type=float, default=50, help="metadata changes a second")
            command.add_argument("--seconds", type=float, default=60)
    return parser


def add_up_options(parser: argparse.ArgumentParser) -> None:
    """The options that every command which makes a cluster has."""
    parser.add_argument("--directory", type=Path, default=DEFAULT_DIRECTORY, help=f"default: {DEFAULT_DIRECTORY}")
    parser.add_argument("--network", default=DEFAULT_NETWORK, help="the first three numbers of its loopback addresses")
    parser.add_argument("--brokers", type=int, default=30, help="stand-in brokers (default 30)")
    parser.add_argument("--controllers", type=int, default=1)
    parser.add_argument(
        "--controller-heap", help="-Xmx of each controller; default: what the size needs, and at least Kafka's own 1g"
    )
    parser.add_argument("--zookeeper-heap", help="-Xmx of ZooKeeper; default: what the size needs")
    parser.add_argument("--patience", type=float, default=7200, help="seconds that the copy and dual write may take")


def plan_of(
    asked: argparse.Namespace, partitions: int, properties: dict[str, str], *, quiet: bool, heap: str | None = None
) -> Plan:
    """The plan that these options ask for. ``heap``: of a controller, before what the options say."""
    controller_heap, zookeeper_heap = heaps(partitions, asked.brokers)
    return Plan(
        directory=asked.directory.absolute(),
        partitions=partitions,
        brokers=asked.brokers,
        controllers=asked.controllers,
        network=asked.network,
        controller_heap=heap or asked.controller_heap or controller_heap,
        zookeeper_heap=asked.zookeeper_heap or zookeeper_heap,
        properties=properties,
        quiet=quiet,
    )


def main() -> int:
    asked = _parser().parse_args()
    try:
        if asked.command == "up":
            plan = plan_of(asked, asked.partitions, dict(asked.properties), quiet=asked.log_level_warn)
            print(json.dumps(asdict(measure.up(plan, patience=asked.patience, keep=asked.keep)), indent=1))
            return 0
        plan = saved_plan(asked.directory)
        if asked.command == "status":
            print("\n".join(measure.status(plan)))
        elif asked.command == "down":
            measure.down(plan, purge=asked.purge)
        else:
            print(json.dumps(vars(churn.drive(plan, rate=asked.rate, seconds=asked.seconds)), indent=1))
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
