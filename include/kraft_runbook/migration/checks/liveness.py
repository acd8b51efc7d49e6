"""Is dual write alive? No metric says so; two looks at /migration do."""

from __future__ import annotations

from functools import partial

from kraft_runbook.cluster.observation import ClusterObservation, ZkMigrationState, was_read
from kraft_runbook.migration.unfinished_copy import TELL, UNTOLD, end_untold
from kraft_runbook.parity.standstill import CURE, STANDSTILL_SECONDS
from kraft_runbook.runbook.check_results import CheckResult, Severity, Verdict
from kraft_runbook.runbook.lag import of_another_log

CODE = "KRB-DW-001"
TITLE = "ZooKeeper is still being written (dual write is alive)"
_result = partial(CheckResult, CODE, TITLE, Severity.BLOCKING)


def dual_write_liveness(earlier: ClusterObservation, later: ClusterObservation) -> CheckResult:
    """Whether /migration's offset kept up with the metadata log between two observations.

    PASS if the offset moved up to what was committed at the earlier observation, however close the two are. Where
    nothing moved at all, they must be more than two seconds apart. FAIL if the offset stood still though records after
    it were committed: dual write has stopped, whatever ZkMigrationState (1), ZkWriteBehindLag (0) and the logs say.
    FAIL too if the earlier offset is beyond what is committed later: /migration is of another log. UNKNOWN if
    /migration or the quorum was not read, or the two are too close. PASS after finalization, since ZooKeeper is no
    longer written then.
    """
    states = {c.metrics.zk_migration_state for c in later.controllers.values() if was_read(c.metrics)}
    if ZkMigrationState.POST_MIGRATION in states:
        return _result(Verdict.PASS, "the migration is final: ZooKeeper is no longer written, as intended")
    for name, seen in (("earlier", earlier), ("later", later)):
        for part in (seen.zookeeper, seen.quorum):
            if not was_read(part):
                return _result(
                    Verdict.UNKNOWN,
                    f"{name} look: {part.reason}",
                    "make ZooKeeper and the controllers reachable and look again",
                )
    if (
        not was_read(earlier.zookeeper)
        or not was_read(later.zookeeper)
        or not was_read(later.quorum)
        or not was_read(earlier.quorum)
    ):
        raise AssertionError("unread parts were answered above")
    before, after = earlier.zookeeper.migration, later.zookeeper.migration
    if before is None or after is None:
        return _result(
            Verdict.FAIL,
            "/migration does not exist",
            "no controller writes to ZooKeeper: do not go on; kraft-runbook explain shows the cluster's phase",
        )
    if end_untold(later):
        return _result(Verdict.FAIL, UNTOLD, TELL)
    if not after.holds_a_copy:
        return _result(
            Verdict.FAIL,
            "/migration has no offset: the metadata has not been copied, so there is no dual write yet",
            "wait for the copy (kraft-runbook explain says who is missing)",
        )
    foreign = of_another_log(later.quorum, earlier)
    if foreign:
        return _result(
            Verdict.FAIL,
            f"{foreign}. Nothing shows that ZooKeeper is written",
            "do not go on, and restart no controller: the next to be elected may overwrite ZooKeeper with this log. The"
            " controllers have older disks, or their quorum was formed anew: restore a disk with the newest log"
            " (docs/rollback.md, 'The disks of most controllers are lost')",
        )
    seconds = (later.observed_at - earlier.observed_at).total_seconds()
    committed, offset = earlier.quorum.high_watermark - 1, after.kraft_metadata_offset
    moved = offset - before.kraft_metadata_offset
    apart = seconds > STANDSTILL_SECONDS
    if offset >= committed and (moved > 0 or (apart and later.quorum.high_watermark - 1 <= offset)):
        return _result(
            Verdict.PASS,
            f"/migration went from offset {before.kraft_metadata_offset} to {offset} in {seconds:.1f} s; offset"
            f" {committed} was committed before",
        )
    if not apart:
        return _result(
            Verdict.UNKNOWN,
            f"the two looks are only {seconds:.1f} s apart",
            f"look twice, more than {STANDSTILL_SECONDS:g} s apart",
        )
    if moved > 0:
        return _result(
            Verdict.PASS,
            f"/migration advances ({moved} offsets in {seconds:.1f} s), {later.quorum.high_watermark - 1 - offset}"
            " behind the log",
        )
    ahead = later.quorum.high_watermark - 1 - offset
    return _result(
        Verdict.FAIL,
        f"/migration has stood at offset {offset} for {seconds:.1f} s while the metadata log went on to"
        f" {later.quorum.high_watermark - 1} ({ahead} records ahead): ZooKeeper is no longer written, though"
        " ZkMigrationState and ZkWriteBehindLag look healthy",
        CURE,
    )
