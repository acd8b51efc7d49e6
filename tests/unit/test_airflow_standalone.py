"""What the lab reads off Airflow's own log (lines as Airflow 3.3.2 wrote them) and off its health."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from lab.airflow_standalone import Airflow

PARKED = (
    "scheduler  | 2026-11-23T12:14:45.568813Z [info     ] TaskInstance Finished: dag_id=zk_to_kraft_migration__lab,"
    " task_id=gate_start.approve, run_id=manual__2026-11-23T12:14:13.619911+00:00_3714d6f6, map_index=0,"
    " ti_id=01a20854-04bf-763e-90a7-05ff8b13a231, run_start_date=2026-11-23 12:14:44.334361+00:00, run_end_date=None,"
    " run_duration=None, state=awaiting_input, executor=LocalExecutor(parallelism=4), executor_state=success,"
    " try_number=1, max_tries=0, pool=default_pool, queue=default, priority_weight=48, operator=ApprovalGate,"
    " queued_dttm=2026-11-23 12:14:44.271573+00:00, scheduled_dttm=2026-11-23 12:14:44.219952+00:00,queued_by_job_id=1,"
    " pid=13905 [airflow.jobs.scheduler_job_runner.SchedulerJobRunner]"
)
EVENT = (
    "scheduler  | 2026-11-23T12:14:45.512207Z [info     ] Received executor event with state success for task instance "
    "TaskInstanceKey(dag_id='zk_to_kraft_migration__lab', task_id='gate_start.approve', "
    "run_id='manual__2026-11-23T12:14:13.619911+00:00_3714d6f6', try_number=1, map_index=0)"
)
INSTANCE = "01a20854-04bf-763e-90a7-05ff8b13a231"


QUEUED = "2026-11-23T12:14:44.271573Z"
AGAIN = "2026-11-23T12:15:02.000000Z"


@pytest.mark.parametrize(
    ("log", "instance", "number", "queued", "seen"),
    [
        ([EVENT, PARKED], INSTANCE, 1, QUEUED, True),
        ([EVENT], INSTANCE, 1, QUEUED, False),
        ([PARKED], "01a20854-04bf-763e-90a7-05ff8b13a232", 1, QUEUED, False),
        ([PARKED], INSTANCE, 2, QUEUED, False),
        ([PARKED.replace("state=awaiting_input", "state=success")], INSTANCE, 1, QUEUED, False),
        # an answer was turned away, and the gate parks again in the same try
        ([PARKED], INSTANCE, 1, AGAIN, False),
        ([PARKED, PARKED.replace("12:14:44.271573+", "12:15:02+")], INSTANCE, 1, AGAIN, True),
    ],
)
def test_a_gate_is_parked_once_the_scheduler_has_read_so(
    tmp_path: Path, log: list[str], instance: str, number: int, queued: str, seen: bool
) -> None:
    (tmp_path / "standalone.log").write_text("\n".join(["standalone | starting", *log, ""]))
    task = {"id": instance, "try_number": number, "queued_when": queued}
    assert Airflow(tmp_path, "127.0.0.1", 8080).saw_it_parked(task) is seen


@pytest.mark.parametrize(
    ("execution", "scheduler", "healthy"), [(200, "healthy", True), (503, "healthy", False), (200, "unhealthy", False)]
)
def test_it_is_healthy_once_its_components_and_the_workers_api_are(
    tmp_path: Path, execution: int, scheduler: str, healthy: bool
) -> None:
    parts = {part: {"status": "healthy"} for part in ("metadatabase", "triggerer", "dag_processor")}
    answers = {
        "/execution/health": httpx.Response(execution),
        "/api/v2/monitor/health": httpx.Response(200, json={**parts, "scheduler": {"status": scheduler}}),
    }
    http = httpx.Client(transport=httpx.MockTransport(lambda request: answers[request.url.path]))
    assert Airflow(tmp_path, "127.0.0.1", 8080).healthy(http.get) is healthy
