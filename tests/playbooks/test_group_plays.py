"""Playbooks of an application's owner, played by the house's runner."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from kraft_runbook.cluster.group_applications import GroupApplication
from kraft_runbook.errors import Refused, StepFailed
from kraft_runbook.io.hosts.group_plays import play_application

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
PLAY = """
- hosts: HOSTS
  gather_facts: false
  tasks:
    - name: What fails here is to be ignored
      ansible.builtin.command: "false"
      ignore_errors: true
      changed_when: false
    - name: Answer with words that mean something in playbooks of our own
      ansible.builtin.set_fact: {clock: noon}
    - name: Stop the application
      ansible.builtin.copy:
        content: "{{ kafka_group }} {{ coordination }}"
        dest: "WHERE/{{ inventory_hostname }}"
        mode: "0600"
      failed_when: inventory_hostname == 'FAILS'
"""


def application(where: Path, *, fails: str = "", hosts: str = "all") -> GroupApplication:
    playbook = where / "stop.yml"
    playbook.write_text(PLAY.replace("HOSTS", hosts).replace("WHERE", str(where)).replace("FAILS", fails))
    both = {"app-1": LOCAL, "app-2": LOCAL}
    return GroupApplication(groups=("g",), stop=str(playbook), start="/none.yml", hosts=both, seconds=120)


def play(found: GroupApplication, group: str = "g") -> tuple[str, ...]:
    said: list[str] = []
    return play_application(found, found.stop, group=group, coordination="zookeeper", tell=said.append)


def test_it_is_played_on_every_host_and_again_changes_nothing(tmp_path: Path) -> None:
    found = application(tmp_path)
    name = "{{ lookup('pipe', 'id') }}<b>"
    assert play(found, name) == ("app-1", "app-2")
    assert (tmp_path / "app-2").read_text() == f"{name} zookeeper", "a name is no template"
    assert play(found, name) == ()


def test_what_fails_is_told_with_host_and_task(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"stop\.yml for group g: 'Stop the application' failed on app-2") as failed:
        play(application(tmp_path, fails="app-2"))
    assert "app-1:" not in failed.value.problem and "played again" in failed.value.way_out


def test_a_play_for_other_hosts_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match="it ran no task on app-2"):
        play(application(tmp_path, hosts="app-1"))


def test_a_playbook_that_is_not_there_is_refused(tmp_path: Path) -> None:
    found = application(tmp_path)
    with pytest.raises(Refused, match=r"there is no playbook /none\.yml"):
        play_application(found, found.start, group="g", coordination="kafka", tell=print)


@pytest.mark.parametrize(
    "wrong",
    [
        {"stop": "stop.yml"},
        {"hosts": {}},
        {"hosts": {"a b": {}}},
        {"hosts": {"a": {"ansible_password": "x"}}},
        {"hosts": {"a": {"ansible_become_pass": "x"}}},
        {"groups": ("[",)},
        {"seconds": 0},
    ],
)
def test_an_entry_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    given = {"groups": ("g",), "stop": "/s.yml", "start": "/s.yml", "hosts": {"a": {}}}
    with pytest.raises(ValidationError):
        GroupApplication.model_validate({**given, **wrong})
