"""What the modules make of a host's volumes: what is set aside on one, and that nothing is formatted beside one."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")


def test_a_configuration_set_aside_is_its_owners_alone_and_a_directory_keeps_its_mode(
    on_the_host: SimpleNamespace, tmp_path: Path
) -> None:
    (tmp_path / "controller.properties").write_text("x.password=1\n")
    (tmp_path / "controller.properties").chmod(0o644)
    (tmp_path / "data").mkdir(0o750)
    moved = [
        Path(on_the_host.kafka_set_aside.set_aside(str(tmp_path / name), "set-aside-1"))
        for name in ("controller.properties", "data")
    ]
    assert [path.stat().st_mode & 0o777 for path in moved] == [0o600, 0o750]
    assert not (tmp_path / "data").exists()


@pytest.fixture(params=["tmpfs", "bind"])
def mounted(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A directory that is a mount point, as a controller's disk is: a file system's, or a bind mount's of the same
    file system.
    """
    point, source = tmp_path / "the disk", tmp_path / "source"
    point.mkdir()
    source.mkdir()
    command = ["mount", "-t", "tmpfs", "tmpfs"] if request.param == "tmpfs" else ["mount", "--bind", str(source)]
    if subprocess.run([*command, str(point)], capture_output=True).returncode:
        pytest.skip("nothing may be mounted here")
    yield point
    subprocess.run(["umount", str(point)], check=True)


@needs_root
def test_of_a_mount_point_what_it_holds_is_set_aside_in_it_and_nothing_is_left_then(
    on_the_host: SimpleNamespace, mounted: Path
) -> None:
    module = on_the_host.kafka_set_aside
    (mounted / "lost+found").mkdir()
    assert not module.is_left(str(mounted)), "a new file system holds nothing of Kafka's"
    (mounted / "meta.properties").write_text("x")
    (mounted / "__cluster_metadata-0").mkdir()
    assert module.is_left(str(mounted))
    aside = Path(module.set_aside(str(mounted), "set-aside-1"))
    assert aside == mounted / "set-aside-1"
    assert sorted(each.name for each in aside.iterdir()) == ["__cluster_metadata-0", "meta.properties"]
    assert sorted(each.name for each in mounted.iterdir()) == ["lost+found", "set-aside-1"]
    assert not module.is_left(str(mounted))
    (mounted / "meta.properties").write_text("y")
    assert module.is_left(str(mounted)), "it was provisioned again"
    module.set_aside(str(mounted), "set-aside-2")
    assert (aside / "meta.properties").read_text() == "x"


def test_any_other_path_is_left_while_it_is_there(on_the_host: SimpleNamespace, tmp_path: Path) -> None:
    module = on_the_host.kafka_set_aside
    assert module.is_left(str(tmp_path)) and not module.is_left(str(tmp_path / "nothing"))
    (tmp_path / "link").symlink_to(tmp_path / "nothing")
    assert module.is_left(str(tmp_path / "link")), "a link that leads nowhere is a name that is taken"


@needs_root
def test_a_link_to_a_mount_point_is_a_name_like_any_other(
    on_the_host: SimpleNamespace, mounted: Path, tmp_path: Path
) -> None:
    module = on_the_host.kafka_set_aside
    (tmp_path / "link").symlink_to(mounted)
    assert module.is_left(str(tmp_path / "link"))
    assert Path(module.set_aside(str(tmp_path / "link"), "set-aside-1")).is_symlink()
    assert not module.is_left(str(tmp_path / "link"))


@needs_root
def test_a_file_that_is_a_mount_point_is_left(on_the_host: SimpleNamespace, mounted: Path, tmp_path: Path) -> None:
    """As a container's configuration may be: it can't be renamed, and that is said."""
    file = tmp_path / "controller.properties"
    file.touch()
    (mounted / "source").touch()
    subprocess.run(["mount", "--bind", str(mounted / "source"), str(file)], check=True)
    try:
        assert on_the_host.kafka_set_aside.is_left(str(file))
        with pytest.raises(OSError, match=str(file)):
            on_the_host.kafka_set_aside.set_aside(str(file), "set-aside-1")
    finally:
        subprocess.run(["umount", str(file)], check=True)


def to_mount(directory: Path, *points: Path, unit: Path | None = None) -> tuple[str, str]:
    """The files of a host that say that it is to mount these."""
    fstab = "".join(f"UUID=1 {str(point).replace(' ', chr(92) + '040')} ext4 defaults 0 2\n" for point in points)
    (directory / "fstab").write_text(f"# /data\n\nUUID=0 / ext4 defaults 0 1\n/swap none swap sw 0 0\n{fstab}")
    (directory / "units").mkdir()
    if unit is not None:
        (directory / "units" / "data.mount").write_text(f"[Mount]\nWhat=/dev/x\nWhere={unit}\n")
    return str(directory / "fstab"), str(directory / "units")


def test_a_controller_is_not_formatted_beside_a_volume_that_is_not_mounted(
    on_the_host: SimpleNamespace, tmp_path: Path
) -> None:
    module, disk = on_the_host.kafka_format, tmp_path / "the disk"
    files = to_mount(tmp_path, disk, unit=tmp_path / "other")
    for log_dir, told in ((disk / "kraft", "fstab"), (disk, "fstab"), (tmp_path / "other" / "kraft", "data.mount")):
        with pytest.raises(Exception, match="is not mounted") as refused:
            module.formatted({"log_dir": str(log_dir)}, *files)
        assert told in str(refused.value)
    assert module.formatted({"log_dir": str(tmp_path / "the disk of another" / "kraft")}, *files) is False


def test_a_controller_that_joins_a_quorum_is_formatted_at_the_level_that_it_is_given(
    on_the_host: SimpleNamespace,
) -> None:
    asked = {"kafka_home": "/k", "config_file": "/c", "cluster_id": "-id", "joins": True, "release_version": "3.9-IV0"}
    begins = ["/k/bin/kafka-storage.sh", "format", "--cluster-id=-id", "--config=/c"]
    of = on_the_host.kafka_format.format_command
    assert of(asked) == [*begins, "--no-initial-controllers", "--release-version=3.9-IV0"]
    assert of({**asked, "joins": False, "release_version": None}) == begins


def test_a_table_of_mounts_writes_blanks_and_backslashes_by_their_numbers(on_the_host: SimpleNamespace) -> None:
    assert on_the_host.kafka_host.without_octal("/a\\040b\\011c\\134040") == "/a b\tc\\040"


@needs_root
def test_on_a_volume_that_is_mounted_it_is(on_the_host: SimpleNamespace, mounted: Path, tmp_path: Path) -> None:
    files = to_mount(tmp_path, mounted)
    assert on_the_host.kafka_format.formatted({"log_dir": str(mounted / "kraft")}, *files) is False
