"""Airflow's pages of the clusters as a person sees them: a real Chromium, Airflow's own API server, and the files that
the product writes. No cluster runs: test_migration_by_clicks.py has one.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import browser as seen_in
import httpx
import pytest
import yaml
from api_server import api_server
from observations import CLUSTERS, observation
from playwright.sync_api import Browser, expect
from unit import evidence_runs

from kraft_runbook.cluster.cluster_file import load_cluster
from kraft_runbook.cluster.observation import ClusterObservation
from kraft_runbook.cluster.phases import Phase
from kraft_runbook.dashboard.look_files import keep_look, latest_path, lines_path
from kraft_runbook.evidence.course import CoursePoint, course_to_list
from kraft_runbook.evidence.record import EvidenceRecord, make_record
from kraft_runbook.evidence.store import append_record, run_name
from lab import ROOT
from lab.airflow_client import AirflowClient
from lab.airflow_standalone import USER, Airflow

pytestmark = pytest.mark.skipif(seen_in.CHROMIUM is None, reason=seen_in.NEEDED)
MIGRATION = "zk_to_kraft_migration__{}"
EVIL = "<img src=x onerror=globalThis.hit=1><b>bold</b>"
"""What a name, a reason or a person may hold. It must be seen as it is written here."""
RUNS = 300
OPERATIONS = ("zk_to_kraft_migration", "zk_to_kraft_rollback")
PAGES = ("home", "all", "cluster", "many", "tab", "evidence")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Airflow]:
    """An API server that knows a cluster of the lab's form, and one of 40 brokers and 5 controllers with 300 runs."""
    home = tmp_path_factory.mktemp("airflow") / "home"
    directory = home / "clusters"
    directory.mkdir(parents=True)
    lab = yaml.safe_load((CLUSTERS / "lab.yaml").read_text())
    (directory / "lab.yaml").write_text(yaml.safe_dump({**lab, "description": EVIL}))
    forty = yaml.safe_load((ROOT / "docs" / "forty-brokers.yaml").read_text())
    forty["controllers"] = [{"id": "1001-1005", "host": "controller[1:5].example.org"}]
    (directory / "forty.yaml").write_text(yaml.safe_dump(forty))
    given = {"KRAFT_RUNBOOK_CLUSTERS": str(directory)}
    with api_server(home, OPERATIONS, given) as airflow:
        write_many_runs(state(airflow) / "evidence")
        yield airflow


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with seen_in.chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def run_id(served: Airflow) -> str:
    """A run of the lab's migration that waits at its first gate, by its evidence; a person with an evil name signed an
    earlier one. It moves replicas too, which no migration does: the pages show what a run tells.
    """
    client = AirflowClient(served, USER)
    dag = MIGRATION.format("lab")
    run = client.trigger(dag, {})
    bound = {"gate": "start", "digest": EVIL, "task_instance": "i", "try_number": 1}
    for body in (
        {"task": "gate_start.prove", "outcome": "proven", "gate": "start", "phase": "ZOOKEEPER", "digest": EVIL}
        | {"parity": None, "passed": False, "proof": {}},
        {"task": "gate_start.approve", "outcome": "asked", "number": 1, "needed": 2, **bound},
        {"task": "gate_start.approve", "outcome": "approved", "by": EVIL, "by_id": "7", **bound}
        | {"answered_at": datetime.now(UTC).isoformat()},
        {"task": "gate_start.approve_second", "outcome": "asked", "number": 2, "needed": 2, **bound},
    ):
        whole = {"cluster": "lab", "dag": dag, "run": run, **body}
        append_record(state(served) / "evidence", run_name(dag, run), whole)
    course = went(datetime.now(UTC))
    ended = {"task": "move", "outcome": "moves", "what": "ended", "partitions": 400, "told": EVIL, "course": course}
    append_record(state(served) / "evidence", run_name(dag, run), {"cluster": "lab", "dag": dag, "run": run, **ended})
    came = {"began_at": datetime.now(UTC).isoformat(), "every": 1, "slowest_ms": [9, 12, None, None, 2600, 11]}
    account = {"task": "workload", "outcome": "workload", "acknowledged": 9, "lost": 0, "duplicated": 0}
    whole = {"cluster": "lab", "dag": dag, "run": run, **account, "acknowledgements": came}
    append_record(state(served) / "evidence", run_name(dag, run), whole)
    lines = lines_path(state(served), "lab")
    lines.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    rolled = ({"at": (now + timedelta(seconds=n)).isoformat(), "out_of_sync": {"1": 40 - n}} for n in range(30))
    lines.write_text("".join(f"{json.dumps(each)}\n" for each in rolled))
    kept = state(served) / "reassignments" / run_name(dag, run)
    kept.mkdir(parents=True)
    (kept / "course.json").write_text(json.dumps(course))
    told = {"at": datetime.now(UTC).isoformat(), "partitions": 400, "there": 380, "moving": 20, "bytes_left": 10**9}
    (kept / "progress.json").write_text(json.dumps({**told, "stuck": [EVIL]}))
    return run


def state(airflow: Airflow) -> Path:
    return airflow.home / "kraft-runbook"


def went(now: datetime) -> list[dict[str, Any]]:
    """The course of a reassignment in batches of 20 partitions: two hours, and half an hour of them nobody told."""
    points = [
        CoursePoint(now - timedelta(minutes=120 - n), 400 - 20 * (n // 6), 800 - 6 * n, 10**9 * (6 - n % 6))
        for n in range(120)
        if not 60 < n < 90
    ]
    return course_to_list(points)


def look(airflow: Airflow, **changes: Any) -> None:
    """A look at each cluster, of now."""
    for name in ("lab", "forty"):
        spec = load_cluster(name, directory=airflow.home / "clusters", environment={})
        seen: ClusterObservation = replace(observation(Phase.HYBRID, spec), observed_at=datetime.now(UTC), **changes)
        keep_look(state(airflow), seen, pytest.fail)


def write_many_runs(directory: Path) -> None:
    """``RUNS`` whole runs of the large cluster."""
    directory.mkdir(parents=True, exist_ok=True)
    example = [each.body for each in evidence_runs.forward().records]
    for n in range(RUNS):
        dag = f"{OPERATIONS[n % len(OPERATIONS)]}__forty"
        records: list[EvidenceRecord] = []
        for second, body in enumerate(example):
            at = datetime.now(UTC) - timedelta(days=1 + n, seconds=-second)
            whole = {**body, "cluster": "forty", "dag": dag, "run": f"manual__{n}"}
            records.append(make_record(records[-1] if records else None, whole, at=at))
        text = "".join(f"{each.to_line()}\n" for each in records)
        (directory / f"{run_name(dag, f'manual__{n}')}.jsonl").write_text(text)


def address(page: str, run: str) -> str:
    dag = MIGRATION.format("lab")
    return {
        "home": "/",
        "all": "/plugin/kafka",
        "cluster": "/plugin/kafka?cluster=lab",
        "many": "/plugin/kafka?cluster=forty",
        "tab": f"/dags/{dag}/plugin/cluster",
        "evidence": f"/dags/{dag}/runs/{run}/plugin/evidence",
    }[page]


@pytest.fixture(scope="module")
def light(served: Airflow, chromium: Browser) -> seen_in.Watching:
    """A person who has logged in, in Airflow's light colours."""
    watching = seen_in.window(chromium, seen_in.PICTURES)
    seen_in.log_in(watching, served.url, USER, served.password())
    return watching


@pytest.fixture(scope="module")
def dark(light: seen_in.Watching, chromium: Browser) -> seen_in.Watching:
    """The same person in the dark ones."""
    return seen_in.window(chromium, light.pictures, dark=True, of=light)


def test_what_is_wrong_is_found(chromium: Browser, tmp_path: Path) -> None:
    """On a page that is wrong in each way: else the other tests would say nothing."""
    wrong = """<body style="background: #fff"><div class=krb><p>plain</p><p style="color: #999">grey</p>
    <p style="background: #333"><span>dark on dark</span></p><div style="width: 2000px">wide</div>
    <svg width=90 height=30><rect width=90 height=30 fill=#222 /><text y=20 fill=#333>drawn</text></svg>
    <svg width=90 height=30 role=img aria-label=drawn><text x=-20 y=20>cut off</text></svg>
    <a href="/a">reached</a> <a href="/b" tabindex=-1>not reached</a><button></button></div>
    <script>console.error("told"); fetch("http://127.0.0.1:9/"); throw new Error("thrown")</script>"""
    person = seen_in.window(chromium, tmp_path)
    person.page.set_content(wrong)
    assert [each.partition(":")[0] for each in seen_in.too_faint(person.page, ".krb")] == [
        "grey",
        "dark on dark",
        "drawn",
    ]
    assert len(wide := seen_in.scrolls_sideways(person.page)) == 4 and "text cut off" in wide[-1]
    assert seen_in.not_reached_by_keyboard(person.page, person.page, ".krb", most=10) == ["not reached"]
    assert {each.partition(":")[0] for each in seen_in.barriers(person.page, ".krb")} == {
        "button-name",
        "color-contrast",
    }
    told = " ".join(person.complaints)
    assert "console: told" in told and "uncaught: thrown" in told and "failed: GET http://127.0.0.1:9/" in told


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("colours", ["light", "dark"])
def test_a_page_keeps_nobody_out_fits_complains_of_nothing_and_shows_html_as_text(
    colours: str, name: str, served: Airflow, run_id: str, request: pytest.FixtureRequest
) -> None:
    person: seen_in.Watching = request.getfixturevalue(colours)
    look(served)
    person.complaints.clear()
    page = person.page
    page.goto(served.url + address(name, run_id))
    if name == "evidence":
        page.frame_locator("iframe").locator("h1").first.wait_for()
        (shown,) = (each for each in page.frames if "/kafka_clusters/evidence/" in each.url)
        root = "body"
    else:
        page.locator(".krb section").first.wait_for()
        shown, root = page.main_frame, ".krb"
    person.picture(f"{name}-{colours}")
    assert seen_in.barriers(shown, "html" if name == "evidence" else root) == []
    assert seen_in.too_faint(shown, root) == []
    assert seen_in.scrolls_sideways(page) == []
    assert seen_in.scrolls_sideways(shown) == []
    if name != "many":
        assert EVIL in shown.locator(root).inner_text()
    assert shown.locator(f"{root} :is(img, b)").count() == 0
    assert shown.evaluate("globalThis.hit") is None
    assert (page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark") is (colours == "dark")
    assert colours == "dark" or seen_in.not_reached_by_keyboard(page, shown, root) == []
    assert person.complaints == []


def test_from_the_home_page_a_click_leads_to_each_cluster_and_from_there_to_its_runs(
    light: seen_in.Watching, served: Airflow, run_id: str
) -> None:
    look(served)
    page = light.page
    page.goto(served.url)
    page.locator(".krb").get_by_role("link", name="lab", exact=True).click()
    expect(page.locator(".krb h2")).to_have_text("lab", timeout=60_000)
    page.locator(".krb").get_by_role("link", name=f"Evidence of {MIGRATION.format('lab')} {run_id}").click()
    expect(page.locator("h1").first).to_contain_text("Evidence", timeout=60_000)


def test_the_evidence_of_a_run_that_goes_on_is_renewed_and_what_a_person_does_there_stays(
    light: seen_in.Watching, served: Airflow, run_id: str
) -> None:
    page, dag = light.page, MIGRATION.format("lab")
    light.complaints.clear()
    page.goto(served.url + address("evidence", run_id))
    shown = page.frame_locator("iframe")
    first = shown.locator("details").last
    first.locator("summary").click()
    expect(first).to_have_attribute("open", "", timeout=60_000)
    digest, before = first.locator("summary").text_content(), shown.locator("body")
    top = before.evaluate("body => document.scrollingElement.scrollTop")
    assert digest and top > 0
    told = {"cluster": "lab", "dag": dag, "run": run_id, "task": "written_now", "outcome": "already_done", "why": EVIL}
    append_record(state(served) / "evidence", run_name(dag, run_id), told)
    expect(shown.locator("body")).to_contain_text("written_now", timeout=60_000)
    again = shown.locator("details").filter(has_text=digest)
    expect(again).to_have_attribute("open", "")
    expect(again.locator("summary")).to_be_focused()
    assert shown.locator("body").evaluate("body => document.scrollingElement.scrollTop") == top
    assert light.complaints == []


def test_the_form_of_a_run_leads_to_where_the_cluster_stands(light: seen_in.Watching, served: Airflow) -> None:
    page = light.page
    page.goto(f"{served.url}/dags/{MIGRATION.format('lab')}")
    page.get_by_role("button", name="Trigger").first.click(timeout=60_000)
    link = page.get_by_role("link", name="Where lab stands now")
    expect(link).to_be_visible(timeout=60_000)
    light.picture("form")
    assert str(link.get_attribute("href")).endswith("/plugin/kafka?cluster=lab")


def test_a_look_that_is_spoilt_or_gone_is_said_in_words_and_no_old_value_stays(
    light: seen_in.Watching, served: Airflow, run_id: str
) -> None:
    """By the page's own renewal every 5 s, on a page that showed the value."""
    look(served)
    page, file = light.page, latest_path(state(served), "lab")
    page.goto(served.url + address("cluster", run_id))
    shown = page.locator(".krb")
    expect(shown).to_contain_text("HYBRID (now)", timeout=60_000)
    light.complaints.clear()
    for spoil, words in (
        (lambda: file.write_text('{"phase": "HYB'), "can't be read"),
        (file.unlink, "Nobody has looked"),
    ):
        spoil()
        expect(shown).to_contain_text(words, timeout=60_000)
        for old in ("(now)", "(when last seen)", "Leader 101", "3.9.2 ", "Traceback"):
            expect(shown).not_to_contain_text(old)
    light.picture("no-look")
    assert light.complaints == []


def test_a_server_that_does_not_answer_is_said_with_the_time_of_what_is_shown(
    light: seen_in.Watching, served: Airflow, run_id: str
) -> None:
    look(served)
    page = light.page
    page.goto(served.url + address("cluster", run_id))
    expect(page.locator(".krb")).to_contain_text("HYBRID (now)", timeout=60_000)
    silent = page.get_by_role("alert").filter(has_text="Not renewed")
    page.context.set_offline(True)
    try:
        expect(page.get_by_role("alert").filter(has_text="Not renewed")).to_contain_text(
            "what is shown is of", timeout=60_000
        )
        light.picture("server-silent")
    finally:
        page.context.set_offline(False)
    expect(silent).to_have_count(0, timeout=60_000)


def test_many_nodes_and_runs_take_little_time_and_keep_nobody_else_waiting(
    served: Airflow, record_property: Callable[[str, object], None]
) -> None:
    """40 brokers, 5 controllers, 300 runs of evidence. The bound is generous, since other tests run beside: what was
    measured is in the test's report.
    """
    look(served)
    token = httpx.post(f"{served.url}/auth/token", json={"username": USER, "password": served.password()}, timeout=60)
    headers = {"Authorization": f"Bearer {token.json()['access_token']}"}

    def seconds(path: str, times: int) -> float:
        took = []
        with httpx.Client(base_url=served.url, headers=headers, timeout=60) as client:
            for _ in range(times):
                began = time.monotonic()
                client.get(path).raise_for_status()
                took.append(time.monotonic() - began)
        return statistics.median(took)

    stop = threading.Event()

    def dashboard() -> None:
        with httpx.Client(base_url=served.url, headers=headers, timeout=60) as client:
            while not stop.is_set():
                client.get("/kafka_clusters/clusters/forty").raise_for_status()
                stop.wait(5)

    version, fragment = seconds("/api/v2/version", 15), seconds("/kafka_clusters/clusters/forty", 15)
    with ThreadPoolExecutor(10) as ten:
        polls = [ten.submit(dashboard) for _ in range(10)]
        try:
            while_polled = seconds("/api/v2/version", 40)
        finally:
            stop.set()
        for each in polls:
            each.result()
    measured = {"version": version, "fragment": fragment, "version_while_ten_poll": while_polled}
    record_property("median_seconds", measured)
    print(f"seconds, medians: {measured}")
    assert fragment <= max(0.2, 25 * version), measured
    assert while_polled <= max(0.2, 25 * version), measured
