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
import re
import signal
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException

import kraft_runbook
from kraft_runbook.cluster.operation_settings import SparkSettings
from kraft_runbook.cluster.spec import ClusterSpec
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.evidence.kinds import TaskFailed
from kraft_runbook.evidence.unwritten import NOT_WRITABLE
from kraft_runbook.io.secrets import connection_variable, references
from kraft_runbook.parity.spark.settings import JVM_OPTIONS, SETTINGS
from kraft_runbook.steps.handle import Cluster
from kraft_runbook.steps.run import Run
from kraft_runbook_airflow.base.environment import clusters_directory

INCLUDE = Path(kraft_runbook.__file__).resolve().parents[1]
"""Where the core lies: ``include`` of a checkout, or the site-packages that it was installed into."""

ENVIRONMENT = {
    "PYSPARK_PYTHON": sys.executable,
    "PYSPARK_DRIVER_PYTHON": sys.executable,
    "PYTHONPATH": str(INCLUDE),
}
PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None).prctl  # looked up here: between fork and exec nothing is to be loaded


def given_to_a_job(cluster: ClusterSpec) -> dict[str, Any]:
    """What an operator that starts a job for a cluster is made with, for ``words``."""
    return {"cluster": cluster.name, **({"pool": cluster.spark.pool} if cluster.spark.pool else {})}


def how_to_submit(cluster: str, job: str, what: str) -> dict[str, Any]:
    """What SparkSubmitOperator is made with. ``job``: the job's file below ``kraft_runbook``. ``what``: its
    name for a person, such as "parity". Where it runs is in the cluster file, which each task reads anew.
    """
    return {
        "application": str(INCLUDE / "kraft_runbook" / job),
        "name": f"kraft-runbook-{what}-{cluster}",
        "env_vars": ENVIRONMENT,
        "conf": {JVM_OPTIONS: SETTINGS[JVM_OPTIONS]},
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

    Raises Refused where its passwords could be seen or the cluster file's Spark is not there, StepFailed where it can't
    be started, AirflowFailException where it left no report.
    """
    settle_where(task, run.spec.spark)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.unlink(missing_ok=True)
    fixed = ["--cluster", run.spec.name, "--clusters-dir", str(clusters_directory()), "--output", str(output)]
    task.application_args = [*fixed, *arguments]
    passwords = _connections(run.cluster)
    task.env_vars = {**ENVIRONMENT, **passwords}
    failure: AirflowException | None = None
    try:
        if passwords:
            require_environment_passed(task._get_hook(), run.spec.spark.connection)
        SparkSubmitOperator.execute(task, context)
    except AirflowException as error:  # a report that says no is an exit code too: the report decides
        failure = error
    except OSError as error:
        if error.errno in NOT_WRITABLE:
            raise
        raise StepFailed(
            f"the {what} job could not be started: {error}",
            way_out=(
                "let spark-submit (pyspark brings it) and java be on the PATH of this worker, or name another binary in"
                f" the extra 'spark-binary' of the connection {run.spec.spark.connection}; then clear this task"
            ),
        ) from None
    if not output.is_file():
        run.journal.record(TaskFailed(error=f"the {what} job left no report: {failure}"))
        raise AirflowFailException(
            f"the {what} job left no report: {failure}. Look at the Spark output above; `{by_hand}` runs the same"
            " without Airflow."
        )


def settle_where(task: SparkSubmitOperator, spark: SparkSettings) -> None:
    """Let the task submit where the cluster file says, by the settings of its properties file. Raises Refused where
    Airflow has no such connection, or this worker can't read that file.
    """
    try:
        BaseHook.get_connection(spark.connection)
    except AirflowNotFoundException:
        raise Refused(
            f"Airflow has no connection {spark.connection}, which says where Spark runs",
            way_out=(
                f"airflow connections add {spark.connection} --conn-type spark --conn-host 'local[2]' lets it run on"
                " the worker itself; 'spark.connection' of the cluster file names another (docs/own-airflow.md)"
            ),
        ) from None
    task._conn_id, task.properties_file = spark.connection, spark.properties_file
    if spark.properties_file is None:
        return
    try:
        text = Path(spark.properties_file).read_text()
    except OSError as error:
        raise Refused(
            f"'spark.properties_file' of the cluster file can't be read on this worker: {error}",
            way_out="let it be on every worker of Airflow, readable by Airflow's user; then clear this task",
        ) from None
    if re.search(rf"^\s*{re.escape(JVM_OPTIONS)}[\s=:]", text, re.MULTILINE):
        task.conf = {}


def require_environment_passed(hook: SparkSubmitHook, connection: str) -> None:
    """Raise Refused where SparkSubmitHook would put the job's environment into spark-submit's arguments, which ``ps``
    and Spark's own pages show.
    """
    if hook._is_yarn or hook._is_kubernetes:
        raise Refused(
            "the cluster file takes passwords from Airflow connections, and Airflow's Spark connection"
            f" {connection} leads to {hook._connection['master']}: they would stand in the arguments of"
            " spark-submit, for anyone to see",
            way_out=(
                f"let {connection} lead to local[2], or to spark://HOST:PORT with deploy-mode client: these get the"
                " passwords in the process's environment"
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
