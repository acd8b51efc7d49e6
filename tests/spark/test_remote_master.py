"""A Spark master on other machines: used only where it is secured, and then it is really used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from kraft_runbook.errors import Refused
from kraft_runbook.parity.spark.remote_master import require_secured

ROOT = Path(__file__).parents[2]
SECURED = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}


@pytest.mark.parametrize("master", ["local", "local[2]", "local[*]", "local-cluster[2,1,1024]"])
def test_processes_of_this_machine_need_nothing(master: str) -> None:
    require_secured(master, {})


@pytest.mark.parametrize("master", ["spark://a:7077", "spark://a:7077,b:7077", "yarn", "k8s://https://a:443", "sc://a"])
def test_any_other_master_must_be_secured(master: str) -> None:
    require_secured(master, SECURED)
    with pytest.raises(Refused) as error:
        require_secured(master, {})
    assert master in str(error.value) and "local[2]" in str(error.value)
    assert all(f"{name}=true" in str(error.value) for name in SECURED)


@pytest.mark.parametrize("left_out", SECURED)
@pytest.mark.parametrize("value", ["false", "", None])
def test_the_refusal_names_what_is_missing_and_that_alone(left_out: str, value: str | None) -> None:
    chosen = {name: each for name, each in SECURED.items() if name != left_out}
    with pytest.raises(Refused) as error:
        require_secured("yarn", chosen if value is None else {**chosen, left_out: value})
    named = {name for name in SECURED if name in str(error.value)}
    assert named == {left_out}


def test_sparks_tls_encrypts_too() -> None:
    chosen = {**SECURED, "spark.network.crypto.enabled": "false", "spark.ssl.rpc.enabled": "TRUE"}
    require_secured("spark://a:7077", chosen)


def test_the_job_goes_to_the_master_that_spark_submit_was_given_and_refuses_an_open_one(tmp_path: Path) -> None:
    job = tmp_path / "job.py"
    job.write_text(
        "import sys\n"
        "from kraft_runbook.errors import Refused\n"
        "from kraft_runbook.parity.spark.session import session\n"
        "try:\n"
        "    with session(None):\n"
        "        print('a session')\n"
        "except Refused as error:\n"
        "    print(f'refused: {error}')\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "include"),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(tmp_path),
    }
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "spark://127.0.0.1:1", job]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert "refused: the Spark master spark://127.0.0.1:1 is not secured" in done.stdout, done.stdout + done.stderr
