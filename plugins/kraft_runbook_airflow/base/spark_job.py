"""A Spark job of this project as a task: submitted by SparkSubmitOperator, with the passwords of Airflow connections in
its process's environment alone, and ended with the task that started it, however that task ends.

A task that is killed runs none of its own code any more; its job would go on without it, and read the cluster beside
the next try's. What ends with it is spark-submit, which in client mode becomes the driver's JVM. The Python of the job
ends at its next word to that JVM. A driver in cluster mode goes on.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

import kraft_runbook
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import TaskFailed
from kraft_runbook.evidence.unwritten import NOT_WRITABLE
from kraft_runbook.io.secrets import connection_variable, references
from kraft_runbook.parity.spark.settings import SETTINGS
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.environment import clusters_directory

INCLUDE = Path(kraft_runbook.__file__).resolve().parents[1]
"""Where the core lies: ``include`` of a checkout, or the site-packages that it was installed into."""

SPARK_CONNECTION = "spark_default"

ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
    "PYTHONPATH": str(INCLUDE),
}
PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl  # looked up here: between fork and exec nothing is to be loaded


def how_to_submit(cluster: str, job: str, what: str) -> dict[str, Any]:
    """What SparkSubmitOperator is made with. ``job``: the job's file below ``kraft_runbook``. ``what``: its
    name for a person, such as "parity".
    """
    return {
        "application": str(INCLUDE / "kraft_runbook" / job),
        "name": f"kraft-runbook-{what}-{cluster}",
        "conn_id": SPARK_CONNECTION,
        "env_vars": ENVIRONMENT,
        "conf": SETTINGS,
        "verbose": False,
    }


def tied(hook: SparkSubmitHook) -> SparkSubmitHook:
    """The same; what it starts ends with this process. For an operator's ``_get_hook``."""
    hook.submit = partial(hook.submit, preexec_fn=ends_with_this_process())  # type: ignore[method-assign]
    return hook


def run_job(
    task: SparkSubmitOperator,
    context: Any,
    run: Run,
    arguments: Sequence[str],
    output: Path,
    *,
    what: str,
    by_hand: str,
) -> None:
    """Run the task's job once; it leaves its report in ``output``, whatever the report says. ``by_hand``: the command
    that does the same without Airflow.

    Raises Refused where its passwords could be seen, StepFailed where it can't be started, AirflowFailException where
    it left no report.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    fixed = ["--cluster", run.spec.name, "--clusters-dir", str(clusters_directory()), "--output", str(output)]
    task.application_args = [*fixed, *arguments]
    passwords = _connections(run.cluster)
    task.env_vars = {**ENVIRONMENT, **passwords}
    failure: AirflowException | None = None
    try:
        if passwords:
            require_environment_passed(task._get_hook())
        SparkSubmitOperator.execute(task, context)
    except AirflowException as error:  # a report that says no is an exit code too: the report decides
        failure = error
    except OSError as error:
        if error.errno in NOT_WRITABLE:
            raise
        raise StepFailed(
            f"the {what} job could not be started: {error}",
            way_out=(
                "let spark-submit (pyspark brings it) and java be on the PATH of this worker, or name another"
                f" binary in the extra 'spark-binary' of the connection {SPARK_CONNECTION}; then clear this task"
            ),
        ) from None
    if not output.is_file():
        run.journal.record(TaskFailed(error=f"the {what} job left no report: {failure}"))
        raise AirflowFailException(
            f"the {what} job left no report: {failure}. Look at the Spark output above; `{by_hand}` runs the same"
            " without Airflow."
        )


def require_environment_passed(hook: SparkSubmitHook) -> None:
    """Raise Refused where SparkSubmitHook would put the job's environment into spark-submit's arguments, which ``ps``
    and Spark's own pages show.
    """
    if hook._is_yarn or hook._is_kubernetes:
        raise Refused(
            "the cluster file takes passwords from Airflow connections, and Airflow's Spark connection"
            f" {SPARK_CONNECTION} leads to {hook._connection['master']}: they would stand in the arguments of"
            " spark-submit, for anyone to see",
            way_out=(
                f"let {SPARK_CONNECTION} lead to local[*], or to spark://HOST:PORT with deploy-mode client: these"
                " get the passwords in the process's environment (Airflow takes yarn where the connection is not"
                " defined)"
            ),
        )


def ends_with_this_process() -> Callable[[], None]:
    """For Popen's ``preexec_fn``, called in the main thread: the kernel kills the child when the thread that starts it
    ends (Linux). spark-submit becomes its JVM by exec, so that is the child.
    """
    parent = os.getpid()

    def before_it_runs() -> None:
        _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it ended before the call above
            os._exit(1)

    return before_it_runs


def _connections(cluster: Cluster) -> dict[str, str]:
    """The passwords that the cluster file takes from Airflow connections, for the job's process, which has no Airflow
    to ask.
    """
    wanted = [ref for ref in references(cluster.spec) if ref.airflow_connection is not None]
    return {
        connection_variable(ref): json.dumps({"conn_type": "generic", "password": cluster.secrets(ref)})
        for ref in wanted
    }
