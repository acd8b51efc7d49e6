"""``python -m lab up | down | restart | status | seed | secrets | workload``"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from kraft_runbook.errors import RunbookError
from lab import layout, lifecycle
from lab.broker_state import require_well
from lab.secret_files import make_secrets


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code is 0, or 1 after an error, which goes to standard error with its way out."""
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except RunbookError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("error: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m lab", description="A real Kafka cluster on this machine, described by include/clusters/lab.yaml"
    )
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser(
        "up",
        help="start ZooKeeper and the brokers (or whatever the configuration of an existing lab says); a cluster file"
        " without ZooKeeper is brought up in KRaft mode",
    )
    up.add_argument("--fresh", action="store_true", help="remove the lab that is there, data and all, first")
    down = commands.add_parser("down", help="stop every process")
    down.add_argument("--purge", action="store_true", help="and remove the lab's directory, data and all")
    restart = commands.add_parser("restart", help="stop and start services, one by one")
    restart.add_argument("services", nargs="+", metavar="SERVICE", help="such as broker-2")
    commands.add_parser("status", help="what runs, since when, started how often; and what of it is half dead")
    seed = commands.add_parser("seed", help="every kind of metadata, and some records")
    seed.add_argument(
        "--topics", type=int, default=0, metavar="N", help="further topics of 10 partitions, to see scale"
    )
    commands.add_parser("secrets", help="make the lab's secrets if they are not there, and name the files")
    workload = commands.add_parser(
        "workload", help="producers and consumers until SIGTERM, then an account of every record"
    )
    workload.add_argument("--report", type=Path, required=True, metavar="FILE", help="where the account goes, as JSON")
    workload.add_argument(
        "--status", type=Path, metavar="FILE", help="a line that says how it goes, rewritten each second"
    )
    workload.add_argument("--rate", type=float, metavar="N", help="records a second of each producer")
    return parser


def _run(options: argparse.Namespace) -> int:
    spec = layout.load()
    match options.command:
        case "up":
            if options.fresh:
                lifecycle.down(spec, purge=True)
            lifecycle.up(spec)
        case "down":
            lifecycle.down(spec, purge=options.purge)
        case "restart":
            lifecycle.restart(spec, options.services)
        case "status":
            return _print_status()
        case "seed":
            from lab.seed import seed

            seed(spec, extra_topics=options.topics)
        case "secrets":
            here = layout.layout(spec)
            here.directory.mkdir(parents=True, exist_ok=True)
            make_secrets(spec, here.secrets_environment)
            print(f"for clients:  . {here.secrets_environment}\nfor Kafka:    {spec.secrets_file}")
        case "workload":
            from lab.workload import run
            from lab.writers import RECORDS_A_SECOND

            return run(spec, report=options.report, status=options.status, rate=options.rate or RECORDS_A_SECOND)
    return 0


def _print_status() -> int:
    """The table; exit code 0 when everything runs that the configuration calls for, else 3. Raises StepFailed for a
    broker that is half dead.
    """
    spec = layout.load()
    counted = layout.starts(spec)
    print(f"{'service':<16}{'state':<15}{'pid':>8}{'up, s':>9}{'starts':>8}  {'configured':<17}address")
    rows = lifecycle.status(spec)
    for row in rows:
        columns = f"{row.service:<16}{row.state:<15}{row.pid or '-':>8}{row.uptime:>9.0f}{counted[row.service]:>8}"
        print(f"{columns}  {row.mode:<17}{row.address}")
    runs = bool(rows) and all(row.state == "RUNNING" for row in rows if row.needed)
    if runs:
        require_well(spec)
    return 0 if runs else 3


if __name__ == "__main__":
    sys.exit(main())
