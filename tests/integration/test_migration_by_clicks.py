"""A whole migration by a person in a browser: the form, the dashboard, and Airflow's page of each gate. Nothing else is
asked or told to go on; ``observe --json`` says whether the dashboard shows the truth.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator

import browser as seen_in
import pytest
from patience import Patience
from playwright.sync_api import Locator, expect
from stage import MIGRATION, Stage

from kraft_runbook.cluster.phases import Phase
from kraft_runbook.io.local import supervision
from lab.airflow_standalone import USER
from lab.layout import layout

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(seen_in.CHROMIUM is None, reason=seen_in.NEEDED),
]
WATCH = "cluster_watch__lab"
GATES = (("start", Phase.ZOOKEEPER), ("dual_write", Phase.HYBRID), ("finalize", Phase.DUAL_WRITE))
SLOW = 120_000.0
"""Milliseconds that a page may take on two cores that a cluster and Airflow have already."""


@pytest.fixture(scope="module")
def person(stage: Stage) -> Iterator[seen_in.Watching]:
    """Somebody who has logged in."""
    with seen_in.chromium() as browser:
        watching = seen_in.window(browser, seen_in.PICTURES / "migration")
        watching.page.set_default_timeout(SLOW)
        seen_in.log_in(watching, stage.airflow.url, USER, stage.airflow.password())
        yield watching


def dashboard(person: seen_in.Watching, stage: Stage) -> Locator:
    """The lab's page, by a click on Airflow's home page."""
    person.page.goto(stage.airflow.url)
    person.page.locator(".krb").get_by_role("link", name="lab", exact=True).click()
    expect(person.page.locator(".krb h2")).to_have_text("lab", timeout=SLOW)
    return person.page.locator(".krb")


def seconds_until_shown_as_observed(person: seen_in.Watching, stage: Stage, phase: Phase) -> float:
    """How long after ``observe --json`` the dashboard shows the same phase as the present one."""
    told = stage.command("observe", "--cluster", "lab", "--json")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["phase"]["phase"] == phase.value
    began = time.monotonic()
    present = person.page.locator(".krb li[aria-current=step]")
    expect(present).to_have_text(f"{phase.value} (now)", timeout=60_000)
    return time.monotonic() - began


def test_a_migration_by_clicks_alone(
    stage: Stage, person: seen_in.Watching, record_property: Callable[[str, object], None]
) -> None:
    stage.client.wait_for_dag(WATCH)
    stage.client.trigger(WATCH, {})
    stage.client.wait_for_dag(MIGRATION)
    shown_after: dict[str, float] = {}
    run_id = begin_by_the_form(person, stage)
    for gate, phase in GATES:
        stage.wait(MIGRATION, run_id, f"gate_{gate}.approve", {"awaiting_input"})
        stage.client.settle(MIGRATION, run_id, f"gate_{gate}.approve")
        page = dashboard(person, stage)
        shown_after[gate] = seconds_until_shown_as_observed(person, stage, phase)
        person.picture(f"{gate}-1-dashboard")
        page.get_by_role("link", name=f"Answer: gate {gate} of {MIGRATION}").click()
        approve = person.page.get_by_role("button", name="Approve", exact=True)
        approve.wait_for()
        person.picture(f"{gate}-2-asked")
        # a page that is left takes the answer back that is still on its way
        with person.page.expect_response(lambda a: "hitlDetails" in a.url and a.request.method == "PATCH"):
            approve.click()
        page = dashboard(person, stage)
        expect(page.get_by_label("Gates")).to_contain_text(f"{gate}: signed", timeout=SLOW)
        expect(page.get_by_label("Gates")).to_contain_text(f"{USER} signed", timeout=SLOW)
    patience = Patience(1200)
    while (state := stage.client.run_state(MIGRATION, run_id)) == "running":
        assert patience.left(), "the run has not ended"
        time.sleep(2)
    assert state == "success", stage.failures(MIGRATION, run_id)
    page = dashboard(person, stage)
    shown_after["end"] = seconds_until_shown_as_observed(person, stage, Phase.FINALIZED)
    expect(page.get_by_label("Last runs")).to_contain_text("succeeded in FINALIZED")
    person.picture("finalized")
    assert seen_in.too_faint(person.page, ".krb") == []
    assert seen_in.scrolls_sideways(person.page) == []
    page.get_by_label("Last runs").get_by_role("link", name=f"Evidence of {MIGRATION}").click()
    expect(person.page.locator("h1").first).to_contain_text("Evidence", timeout=SLOW)
    person.picture("evidence")
    assert seen_in.too_faint(person.page, "body") == []
    record_property("seconds_until_the_dashboard_shows_what_is_observed", shown_after)
    print(f"shown as observed after, in seconds: {shown_after}")
    assert person.complaints == []


def begin_by_the_form(person: seen_in.Watching, stage: Stage) -> str:
    """Fill in the form of the DAG's page, and send it; returns the id of the run that began."""
    page = person.page
    page.goto(f"{stage.airflow.url}/dags/{MIGRATION}")
    page.get_by_role("button", name="Trigger").first.click()
    soak = page.locator("[name=element_soak_minutes]")
    soak.fill("0.1")
    soak.press("Tab")
    person.picture("form")
    page.get_by_role("dialog").get_by_role("button", name="Trigger").click()
    patience = Patience(120)
    while not (found := stage.client.runs(MIGRATION)):
        assert patience.left(), "no run began"
        time.sleep(1)
    return found[-1]


def test_a_stopped_controller_is_shown_in_the_quorum(
    stage: Stage, person: seen_in.Watching, record_property: Callable[[str, object], None]
) -> None:
    quorum = dashboard(person, stage).get_by_label("Quorum")
    expect(quorum).not_to_contain_text("does not run")
    here, service = layout(stage.lab.spec), stage.lab.spec.controller(103).service
    began = time.monotonic()
    supervision.begin_stop(here, service)
    row = quorum.locator("tr").filter(has_text="103")
    expect(row).to_contain_text("does not run", timeout=90_000)
    took = time.monotonic() - began
    person.picture("controller-stopped")
    supervision.start(here, service)
    expect(quorum).not_to_contain_text("does not run", timeout=SLOW)
    record_property("seconds_until_a_stopped_controller_is_shown", took)
    print(f"a stopped controller is shown after {took:.1f} s")


def test_a_stopped_watch_makes_the_look_old(
    stage: Stage, person: seen_in.Watching, record_property: Callable[[str, object], None]
) -> None:
    page = dashboard(person, stage)
    expect(page).to_contain_text("FINALIZED (now)", timeout=SLOW)
    began = time.monotonic()
    stage.client.pause(WATCH)
    for each in stage.client.runs(WATCH):
        if stage.client.run_state(WATCH, each) in {"running", "queued"}:
            stage.client.mark_run(WATCH, each, "failed")
    expect(page).to_contain_text("Old: nobody has looked for", timeout=180_000)
    took = time.monotonic() - began
    assert "(now)" not in page.inner_text()
    expect(page).to_contain_text("FINALIZED (when last seen)")
    person.picture("watch-stopped")
    record_property("seconds_until_the_look_is_old", took)
    print(f"after the watch was stopped the look is old in {took:.1f} s")
