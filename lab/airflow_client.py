"""The REST API of the lab's Airflow, as a person at the UI uses it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING, Any

import httpx

from kraft_runbook.errors import RunbookError
from lab.patient_http import PatientHttp

if TYPE_CHECKING:
    from lab.airflow_standalone import Airflow

SEEN_BY_THEN = 30.0
"""Seconds after which a gate is answered though the scheduler's log does not show it as parked: that scheduler may have
died.
"""
PATIENCE = 300.0
"""Seconds that a call goes on while nobody answers, unless it is told otherwise."""


def moment(shown: str) -> datetime:
    """A moment as the API shows it."""
    return datetime.fromisoformat(shown.replace("Z", "+00:00"))


class AirflowClient:
    """The few REST calls of a person at the UI: trigger, look, answer a gate."""

    def __init__(
        self, airflow: Airflow, user: str, *, patience: float | None = PATIENCE, say: Callable[[str], None] = print
    ) -> None:
        """Log in. ``patience``: seconds that each call goes on while nobody answers; None: as long as an API server of
        this Airflow runs.
        """
        self._airflow, self._user = airflow, user

        def log_in(http: httpx.Client) -> httpx.Response:
            return http.post(f"{airflow.url}/auth/token", json={"username": user, "password": airflow.password(user)})

        self._http = PatientHttp(
            "Airflow", f"{airflow.url}/api/v2", log_in, patience=patience, gone=airflow.gone, say=say
        )

    def _call(
        self, method: str, path: str, *, done: Callable[[], Any] | None = None, json: Any = None, **given: Any
    ) -> Any:
        return (
            self._http.get(path, **given).json()
            if method == "GET"
            else self._http.change(method, path, json, done=done)
        )

    def wait_for_dag(self, dag_id: str, *, deadline: float = 300) -> None:
        """Wait until the DAG processor has stored the DAG, and unpause it."""
        ends = time.monotonic() + deadline
        while self._http.get(f"/dags/{dag_id}", absent=(404,)).status_code != 200:
            if time.monotonic() > ends:
                errors = self._call("GET", "/importErrors")["import_errors"]
                raise RunbookError(
                    f"DAG {dag_id} was not parsed within {deadline:.0f} s: {[e['stack_trace'][-500:] for e in errors]}",
                    way_out="correct the import error",
                )
            time.sleep(0.5)
        self._call("PATCH", f"/dags/{dag_id}", json={"is_paused": False}, done=lambda: self._unpaused(dag_id))

    def _unpaused(self, dag_id: str) -> dict[str, Any] | None:
        dag = dict(self._call("GET", f"/dags/{dag_id}"))
        return None if dag["is_paused"] else dag

    def pause(self, dag_id: str) -> None:
        """Let no further run of a DAG begin."""
        self._call("PATCH", f"/dags/{dag_id}", json={"is_paused": True})

    def trigger(self, dag_id: str, conf: Mapping[str, Any]) -> str:
        """Trigger a run with these parameters; returns its run id, which is made here: Airflow takes no id twice, so no
        second run can begin.
        """
        run_id = f"manual__{datetime.now(UTC).isoformat()}_{secrets.token_hex(4)}"

        def begun() -> dict[str, Any] | None:
            answer = self._http.get(f"/dags/{dag_id}/dagRuns/{run_id}", absent=(404,))
            return dict(answer.json()) if answer.status_code == 200 else None

        body = {"dag_run_id": run_id, "logical_date": None, "conf": dict(conf)}
        return str(self._call("POST", f"/dags/{dag_id}/dagRuns", json=body, done=begun)["dag_run_id"])

    def runs(self, dag_id: str) -> list[str]:
        """The ids of a DAG's runs, the scheduler's own among them; those of its last 100 runs, the oldest first."""
        found = self._call("GET", f"/dags/{dag_id}/dagRuns", params={"limit": 100, "order_by": "-run_after"})
        return [str(each["dag_run_id"]) for each in reversed(found["dag_runs"])]

    def run_state(self, dag_id: str, run_id: str) -> str:
        return str(self._call("GET", f"/dags/{dag_id}/dagRuns/{run_id}")["state"])

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """Every task of the run, with state, start_date and end_date. Of a mapped one the latest instance: a gate has
        one for each time it was proven.
        """
        path, found = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances", list[dict[str, Any]]()
        while True:  # a page holds a hundred at most, whatever is asked for
            page = self._call("GET", path, params={"limit": 100, "offset": len(found)})
            found += page["task_instances"]
            if not page["task_instances"] or len(found) >= page["total_entries"]:
                break
        return list({each["task_id"]: each for each in sorted(found, key=lambda t: t["map_index"])}.values())

    def _instance(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        return next(each for each in self.tasks(dag_id, run_id) if each["task_id"] == task_id)

    def _map_index(self, dag_id: str, run_id: str, task_id: str) -> int:
        return int(self._instance(dag_id, run_id, task_id)["map_index"])

    def gate(self, dag_id: str, run_id: str, task_id: str) -> dict[str, Any]:
        """What the gate shows: subject, body, assigned users, response."""
        index = self._map_index(dag_id, run_id, task_id)
        return dict(self._call("GET", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/{index}/hitlDetails"))

    def answer(self, dag_id: str, run_id: str, task_id: str, choice: str) -> None:
        """The call that a person's click makes, no sooner than a person could. ``choice``: Approve or Reject."""
        self.settle(dag_id, run_id, task_id)

        def answered() -> dict[str, Any] | None:
            detail = self.gate(dag_id, run_id, task_id)
            by = (detail.get("responded_by_user") or {}).get("id")
            return (
                detail
                if detail["response_received"] and detail["chosen_options"] == [choice] and by == self._user
                else None
            )

        index = self._map_index(dag_id, run_id, task_id)
        body = {"chosen_options": [choice], "params_input": {}}
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/{index}/hitlDetails"
        self._call("PATCH", path, json=body, done=answered)

    def settle(self, dag_id: str, run_id: str, task_id: str) -> None:
        """Wait until a gate has parked for good.

        Airflow 3.3 fails a gate that is answered, or marked, in the very moment it parks: the scheduler then takes the
        end of the parking process for the end of the resumed task. So this waits until the scheduler's log shows that
        it has dealt with that end.
        """
        while True:
            task = self._instance(dag_id, run_id, task_id)
            if task["state"] != "awaiting_input" or self._airflow.saw_it_parked(task):
                return
            if (datetime.now(UTC) - moment(task["queued_when"])).total_seconds() > SEEN_BY_THEN:
                return
            time.sleep(0.2)

    def xcom(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """A task's return value; None where it left none."""
        where = {"map_index": self._map_index(dag_id, run_id, task_id)}
        answer = self._http.get(
            f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries/return_value",
            params=where,
            absent=(404,),
        )
        return answer.json()["value"] if answer.status_code == 200 else None

    def write_xcom(self, dag_id: str, run_id: str, task_id: str, value: Any) -> None:
        """Give a task a return value by hand: whoever may edit the DAG's XComs can."""
        path = f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries"
        self._call(
            "POST",
            path,
            json={"key": "return_value", "value": value, "map_index": self._map_index(dag_id, run_id, task_id)},
        )

    def log_lines(self, dag_id: str, run_id: str, task_id: str, try_number: int) -> list[str]:
        """The messages of a task's log."""
        answer = self._http.get(
            f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{max(1, try_number)}",
            params={"full_content": True, "map_index": self._map_index(dag_id, run_id, task_id)},
            headers={"Accept": "application/json"},
            absent=(403, 404),
        )
        if answer.is_error:
            return []
        content = answer.json().get("content", [])
        return [str(line.get("event", "")) for line in content if isinstance(line, dict)]

    def mark(self, dag_id: str, run_id: str, task_id: str, state: str) -> None:
        """Mark a task by hand, as the UI's button does."""
        index = self._map_index(dag_id, run_id, task_id)
        one = f"/{index}" if index >= 0 else ""
        self._call("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}{one}", json={"new_state": state})

    def downstream(self, dag_id: str, task_id: str) -> tuple[str, ...]:
        """The tasks right behind a task."""
        return tuple(self._call("GET", f"/dags/{dag_id}/tasks/{task_id}")["downstream_task_ids"])

    def last_first(self, dag_id: str) -> tuple[str, ...]:
        """Every task of a DAG, each before those that it waits for."""
        tasks = self._call("GET", f"/dags/{dag_id}/tasks")["tasks"]
        return tuple(TopologicalSorter({each["task_id"]: each["downstream_task_ids"] for each in tasks}).static_order())

    def mark_run(self, dag_id: str, run_id: str, state: str) -> None:
        """Mark a whole run by hand: what is under way is ended."""
        self._call("PATCH", f"/dags/{dag_id}/dagRuns/{run_id}", json={"state": state})

    def clear(self, dag_id: str, run_id: str, task_ids: list[str], *, downstream: bool = True) -> None:
        """Clear tasks of one run, as the UI's button does."""
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": task_ids,
            "include_downstream": downstream,
            "only_failed": False,
            "reset_dag_runs": True,
        }
        self._call("POST", f"/dags/{dag_id}/clearTaskInstances", json=body)
