"""``kraft-runbook evidence``: exit codes, what is found under which name, and files that were tampered with."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
from evidence_runs import forward

from kraft_runbook.cli import app
from kraft_runbook.cli.outputs import schema
from kraft_runbook.evidence.store import append_record, evidence_directory

NAME = "zk_to_kraft_migration__lab__manual__2026-03-04T09_58_12_00_00"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            app.main(["evidence", *map(str, arguments)])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.out + captured.err
        return int(ended.value.code or 0), captured.out, captured.err

    return call


@pytest.fixture
def evidence(tmp_path: Path) -> Path:
    (tmp_path / f"{NAME}.jsonl").write_text("".join(r.to_line() + "\n" for r in forward().records))
    return tmp_path


def lines(evidence: Path) -> list[str]:
    return (evidence / f"{NAME}.jsonl").read_text().splitlines(keepends=True)


@pytest.mark.parametrize(
    "name", [NAME, "manual__2026-03-04T09:58:12+00:00", "zk_to_kraft_migration__lab/manual__2026-03-04T09:58:12+00:00"]
)
def test_a_whole_run_is_shown_under_its_name_here_and_in_airflow(run: Run, evidence: Path, name: str) -> None:
    code, out, _ = run("--run", name, "--directory", evidence)
    assert code == 0
    assert "roll_brokers_to_kraft.broker_2.restart" in out
    assert f"chain verified: 47 records, last digest {forward().records[-1].digest}" in out


def test_an_altered_record_is_named_and_is_a_no(run: Run, evidence: Path) -> None:
    (evidence / f"{NAME}.jsonl").write_text("".join(lines(evidence)).replace('"by":"jon"', '"by":"eve"'))
    code, out, _ = run("--run", NAME, "--directory", evidence)
    assert code == 1
    place = next(n for n, r in enumerate(forward().records) if r.body.get("by") == "jon")
    assert f"THE EVIDENCE CAN'T BE TRUSTED: record {place} was altered after it was written" in out
    code, out, _ = run("--directory", evidence)
    assert code == 1
    assert f"record {place} was altered" in out


def test_a_line_that_is_no_record_is_named(run: Run, evidence: Path) -> None:
    text = lines(evidence)
    (evidence / f"{NAME}.jsonl").write_text("".join([*text[:7], "nonsense\n", *text[7:]]))
    code, out, _ = run("--run", NAME, "--directory", evidence)
    assert code == 1
    assert "record 7 can't be read" in out


def test_a_tail_cut_off_is_found_by_the_noted_digest_alone(run: Run, evidence: Path) -> None:
    noted = forward().records[-1].digest
    assert run("--run", NAME, "--directory", evidence, "--anchor", noted)[0] == 0
    (evidence / f"{NAME}.jsonl").write_text("".join(lines(evidence)[:-1]))
    assert run("--run", NAME, "--directory", evidence)[0] == 0
    code, out, _ = run("--run", NAME, "--directory", evidence, "--anchor", noted)
    assert code == 1
    assert noted in out


def test_a_copy_of_the_object_store_is_read_like_the_file(run: Run, evidence: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / NAME
    copy.mkdir(parents=True)
    for record in forward().records:
        (copy / f"{record.sequence:06d}-{record.digest}.json").write_text(record.to_line() + "\n")
    assert run("--run", NAME, "--directory", copy.parent)[1] == run("--run", NAME, "--directory", evidence)[1]
    assert NAME in run("--directory", copy.parent)[1]
    next(copy.glob("000009-*")).unlink()
    code, out, _ = run("--run", NAME, "--directory", copy.parent)
    assert code == 1
    assert "record 9 does not follow the one before it" in out


def test_the_page_is_written_and_said_not_to_standard_output(run: Run, evidence: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    code, out, err = run("--run", NAME, "--directory", evidence, "--html", page, "--json")
    assert code == 0
    json.loads(out)
    assert str(page) in err
    assert "Succeeded in FINALIZED" in page.read_text()


def test_json_fits_its_schema_with_and_without_a_run(run: Run, evidence: Path) -> None:
    for arguments in (("--run", NAME), ()):
        code, out, _ = run(*arguments, "--directory", evidence, "--json")
        assert code == 0
        found = json.loads(out)
        jsonschema.validate(found, json.loads(schema("evidence")))
        assert found["runs"][0]["run"] == NAME
        assert (found["report"] is None) == (not arguments)


def test_what_is_not_there_is_an_error_with_a_way_out(run: Run, evidence: Path) -> None:
    for arguments in (
        ("--run", "nope", "--directory", evidence),
        ("--directory", evidence / "nowhere"),
        ("--run", "x", "--directory", evidence / "nowhere"),
    ):
        code, out, err = run(*arguments)
        assert (code, out) == (3, "")
        assert "What to do: " in err
    assert run("--run", NAME, "--directory", evidence, "--html", evidence / "no" / "page.html")[0] == 3
    assert run("--directory", evidence, "--html", "page.html")[0] == 4


def test_a_copy_under_a_name_that_no_run_has_is_told_and_passed_over(
    run: Run, evidence: Path, caplog: pytest.LogCaptureFixture
) -> None:
    listed = run("--directory", evidence)
    copy = evidence / f"{NAME} (1).jsonl"
    copy.write_text("".join(lines(evidence)))
    assert run("--directory", evidence)[:2] == listed[:2] and listed[0] == 0
    assert f"{copy} is passed over" in caplog.text


def test_one_airflow_run_id_of_two_dags_is_not_guessed(run: Run, tmp_path: Path) -> None:
    for dag in ("forward__lab", "back__lab"):
        append_record(tmp_path, f"{dag}__manual__1", {"n": 1})
    code, _, err = run("--run", "manual__1", "--directory", tmp_path)
    assert code == 3
    assert "back__lab__manual__1, forward__lab__manual__1" in err


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"KRAFT_RUNBOOK_EVIDENCE": "/e", "KRAFT_RUNBOOK_STATE": "/s"}, "/e"),
        ({"KRAFT_RUNBOOK_EVIDENCE": "s3://c@b/p", "KRAFT_RUNBOOK_STATE": "/s"}, "/s/evidence"),
        ({"KRAFT_RUNBOOK_STATE": "/s", "AIRFLOW_HOME": "/a"}, "/s/evidence"),
        ({"AIRFLOW_HOME": "/a"}, "/a/kraft-runbook/evidence"),
    ],
)
def test_the_files_lie_where_the_settings_say(environment: dict[str, str], place: str) -> None:
    assert evidence_directory(environment) == Path(place)
