"""A container has the processors of its quota, and not its host's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kraft_runbook.io.local.cores import Processors, Quota, processors

HERE = len(os.sched_getaffinity(0))


def mounted(tmp_path: Path, groups: str, files: dict[str, str]) -> Processors:
    (tmp_path / "cgroup").write_text(groups)
    for name, text in files.items():
        file = tmp_path / "mounted" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return processors(tmp_path / "cgroup", tmp_path / "mounted")


def test_without_a_quota_it_has_what_it_may_run_on(tmp_path: Path) -> None:
    for found in (
        processors(tmp_path / "none", tmp_path),
        mounted(tmp_path, "0::/a.slice/b.service\n", {"a.slice/b.service/cpu.max": "max 100000\n"}),
        mounted(tmp_path, "4:cpu,cpuacct:/\n1:name=systemd:/\n", {"cpu/cpu.cfs_quota_us": "-1\n"}),
    ):
        assert (found.cores, found.quotas, found.waited()) == (HERE, (), None)
        assert found.load(3.0) == 3.0
    assert Processors(64, 2).cores == 2 and Processors(64, 2).load(3.0) == 3.0


STAT = "usage_usec 9000000\nnr_periods 90\nnr_throttled 30\nthrottled_usec 1500000\n"
STAT_1 = "nr_periods 90\nnr_throttled 30\nthrottled_time 1500000000\n"


@pytest.mark.parametrize(
    ("groups", "files"),
    [
        ("0::/\n", {"cpu.max": "50000 100000\n", "cpu.stat": STAT}),
        ("0::/a/b\n", {"a/b/cpu.max": "max 100000\n", "a/cpu.max": "50000 100000\n", "a/cpu.stat": STAT}),
        ("0::/of/the/host\n", {"cpu.max": "50000 100000\n", "cpu.stat": STAT}),
        (
            "9:memory:/x\n4:cpuacct,cpu:/docker/7\n0::/\n",
            {
                "cpu/docker/7/cpu.cfs_quota_us": "50000\n",
                "cpu/docker/7/cpu.cfs_period_us": "100000\n",
                "cpu/docker/7/cpu.stat": STAT_1,
            },
        ),
    ],
    ids=["version 2, in a container", "version 2, of a group above", "version 2, named by the host", "version 1"],
)
def test_a_quota_counts_with_its_part_of_a_core_and_what_was_waited_for(
    tmp_path: Path, groups: str, files: dict[str, str]
) -> None:
    found = mounted(tmp_path, groups, files)
    assert (found.cores, found.waited()) == (0.5, 1.5)


def test_a_quota_has_its_part_of_the_machines_load_where_its_own_waits_are_told(tmp_path: Path) -> None:
    stat = tmp_path / "cpu.stat"
    of_a_container = Processors(64, 64, (Quota(2.0, stat), Quota(8.0, stat)))
    assert of_a_container.cores == 2.0
    assert of_a_container.load(96.0) == 96.0, "no stat"
    stat.write_text(STAT)
    assert of_a_container.load(96.0) == 3.0
    assert of_a_container.waited() == 3.0, "of both groups"
    assert Processors(64, 2, (Quota(2.0, stat),)).load(96.0) == 3.0, "beside a cpuset too"
    assert Processors(64, 2).load(96.0) == 96.0, "of a cpuset alone nobody tells what waited"
