"""Where a rehearsal's throwaway lies: whose the place must be, and how long its path may be."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_runbook.cluster.rehearsal_settings import Rehearsal
from kraft_runbook.errors import Refused
from kraft_runbook.io.local.layout import room_for_name
from kraft_runbook.procedures.throwaway_place import one_rehearsal, own_directory, place_of, remove_when_free

NOBODY = 65534
LONG = "prod-eu-west-1-payments-events-of-kafka-and-more"


def begin(place: Path) -> None:
    with one_rehearsal(Rehearsal(directory=str(place)), "prod", tell=print):
        pass


def clean_up(place: Path) -> None:
    (place / "prod").mkdir(exist_ok=True)
    remove_when_free(Rehearsal(directory=str(place)), "prod", tell=lambda line: None)


BOTH = pytest.mark.parametrize("act", [begin, clean_up])


@BOTH
@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_place_that_others_may_write_to_is_refused(tmp_path: Path, act: Callable[[Path], None], mode: int) -> None:
    """Whoever may could put another throwaway there, and have it started."""
    place = tmp_path / "place"
    place.mkdir()
    place.chmod(mode)
    with pytest.raises(Refused, match=rf"mode 0{mode:o}: a rehearsal needs a directory that uid"):
        act(place)
    assert not (place / "lock").exists()


@BOTH
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_place_that_another_user_made_first_is_refused(tmp_path: Path, act: Callable[[Path], None]) -> None:
    place = tmp_path / "place"
    place.mkdir(mode=0o700)
    os.chown(place, NOBODY, NOBODY)
    with pytest.raises(Refused, match=rf"belongs to uid {NOBODY}"):
        act(place)


@BOTH
def test_a_lock_that_is_a_link_is_refused_and_what_it_leads_to_stays(
    tmp_path: Path, act: Callable[[Path], None]
) -> None:
    (tmp_path / "precious").write_text("evidence")
    (tmp_path / "place").mkdir()
    (tmp_path / "place" / "lock").symlink_to(tmp_path / "precious")
    with pytest.raises(Refused, match="is a link"):
        act(tmp_path / "place")
    assert (tmp_path / "precious").read_text() == "evidence"


def test_without_a_directory_it_lies_below_the_state_directory(tmp_path: Path) -> None:
    state = {"KRAFT_RUNBOOK_STATE": str(tmp_path / "state")}
    assert place_of(Rehearsal(), state) == tmp_path / "state" / "rehearsals"


def test_a_long_name_is_cut_so_that_a_socket_can_be_bound_there() -> None:
    place = Path("/var/lib/airflow/kraft-runbook/rehearsals")
    settings = Rehearsal(directory=str(place))
    assert own_directory(settings, "prod") == place / "prod"
    cut = own_directory(settings, LONG)
    assert re.fullmatch(r"prod-eu-west-1-payments-events-o-[0-9a-f]{8}", cut.name), cut.name
    assert len(cut.name) == room_for_name(place) and len(f"{cut}/supervisor.sock.4194304") <= 107
    assert own_directory(settings, f"{LONG}2") not in (cut, own_directory(settings, LONG[:-1]))


def test_a_place_too_deep_for_any_name_is_refused(tmp_path: Path) -> None:
    deep = Rehearsal(directory=str(tmp_path / ("d" * 90)))
    with pytest.raises(Refused, match="is too long a path") as refused, one_rehearsal(deep, "prod", tell=print):
        pass
    assert "rehearsal.directory" in refused.value.way_out and not (tmp_path / ("d" * 90)).exists()
