"""The one thread of a member that coordinates: it looks, takes every step, commits, and polls the embedded consumer."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from kraft_runbook_consumer.commits import Commits
from kraft_runbook_consumer.embedded import EmbeddedConsumer
from kraft_runbook_consumer.ending import attempt, close_each
from kraft_runbook_consumer.errors import ConsumerError, Unreachable
from kraft_runbook_consumer.handover import Handover
from kraft_runbook_consumer.lease import Lease
from kraft_runbook_consumer.listener import RebalanceListener, Teller
from kraft_runbook_consumer.mode import Mode, Toggles
from kraft_runbook_consumer.settings import Settings, embedded_config
from kraft_runbook_consumer.sight import LOOK_SECONDS, Sight
from kraft_runbook_consumer.step import Action, Held, Lock, Phase, Release, Start, State, Stop, step
from kraft_runbook_consumer.streams import Stream
from kraft_runbook_consumer.znodes import GroupPaths, Partition, Registration, is_made
from kraft_runbook_consumer.zookeeper import ZookeeperSession

LINGER_SECONDS = 0.2
"""How long a released partition stays locked after its commit beside old members. Those read the offset before they
have the lock: one that has read too early finds it held, and reads again.
"""
logger = logging.getLogger("kraft_runbook_consumer")


class Coordinator:
    """One member's coordination. ``run`` is the thread; all else is called in it, unless it says otherwise."""

    def __init__(
        self,
        settings: Settings,
        member: str,
        registration: Registration,
        listener: RebalanceListener | None,
    ) -> None:
        self.settings, self.registration = settings, registration
        self.teller = Teller(listener, member) if listener is not None else None
        self.state = State(member, settings.migrates, settings.strategy, settings.exclude_internal)
        self.streams: Sequence[Stream] = ()
        self.failure: ConsumerError | None = None
        self.toggles = Toggles()
        self.wake = threading.Event()
        self.looked = threading.Event()
        """Set once the group was seen for the first time, or it is over."""
        self._closing = threading.Event()
        self._ending = False
        self._runs_in = 0
        self._changed = threading.Event()
        lease = self._zookeeper_lease = Lease(settings.session_seconds)
        self._kafka_lease = Lease(45.0)
        paths, options = GroupPaths(settings.group), settings.zookeeper_options
        self.zookeeper = ZookeeperSession(settings.zookeeper, paths, lease, self._told, options)
        self.embedded: EmbeddedConsumer | None = None
        self.sight = Sight(settings, member, registration, self.zookeeper)
        self._handover: Handover | None = None
        self._commits = Commits(settings)
        self._stopped_at: dict[Partition, float] = {}
        self._named = ""

    # from other threads

    def may_hand_out(self) -> bool:
        """The stall rule, before each record: in kafka mode both sessions count, else ZooKeeper's."""
        if not self._zookeeper_lease.holds():
            return False
        return self.state.mode is not Mode.KAFKA or self._kafka_lease.holds()

    def commit(self, seconds: float, note: Callable[[], None] = lambda: None) -> bool:
        """Ask for a commit of all that is done with, once ``note`` has noted what the caller is done with; whether it
        was made within the time. A listener, which is called in the coordinator's thread, can't wait for it: there it
        is made at once. Raises Unreachable there.
        """
        if threading.get_ident() == self._runs_in:
            note()
            wait = self.state.mode is Mode.KAFKA
            return self._handover_().commit(self._positions(self.state.held), wait=wait)
        return self._commits.ask(seconds, note, self.wake)

    def close(self) -> None:
        """Ask ``run`` to end."""
        self._closing.set()
        self.wake.set()

    def _told(self) -> None:
        self._changed.set()
        self.wake.set()

    # the thread

    def start(self, bootstrap: Callable[[ZookeeperSession], str], make: Callable[[str], Sequence[Stream]]) -> None:
        """Connect and register. Raises ConsumerError. ``make``: the streams, of the brokers."""
        self.zookeeper.start(self.settings.connection_seconds)
        brokers = bootstrap(self.zookeeper)
        self.streams = make(brokers)
        if self.settings.migrates:
            config = embedded_config(self.settings, self.state.member)
            self._kafka_lease.session_seconds = float(str(config["session.timeout.ms"])) / 1000
            self.embedded = self.sight.embedded = EmbeddedConsumer(config, self._kafka_lease, self._revoked)
        self._handover = Handover(self.settings, brokers, self.state.member, self.zookeeper, self.embedded)
        self._register()

    def run(self) -> None:
        self._runs_in = threading.get_ident()
        try:
            while not self._closing.is_set():
                self.wake.clear()
                self._turn()
                self.wake.wait(self.settings.poll_seconds)
        except ConsumerError as error:
            self.failure = error
            logger.error("%s", error)
        except Exception as error:  # whatever else it is: nothing may be handed out by a member without coordination
            logger.exception("the coordinator has ended")
            self.failure = ConsumerError(f"the coordinator has ended: {error}", way_out="make a new consumer")
        finally:
            self.end()

    def _turn(self) -> None:
        try:
            if self.embedded is not None:
                self.embedded.poll()
            self.sight.leave_kafka_when_cut_off()
            if self.zookeeper.lost.is_set():
                self._begin_again()
            if self._changed.is_set() or self.sight.age > LOOK_SECONDS:
                self._look()
            self.sight.look_at_kafka(self.state.mode)
            self._abandon_late()
            self._work()
            if self.teller is not None:
                self.teller.settled(self.sight.settled_group(self.state.mode), self.state.held)
            self._name_embedded()  # last: it keeps nothing else
        except Unreachable as error:
            logger.info("%s", error)
        try:  # what can't be seen, started or released now keeps nothing else from its commit, nor the sign to Kafka
            self._commit_if_due()
        except Unreachable as error:
            logger.info("%s", error)

    def _name_embedded(self) -> None:
        """For a consumer.id of its own. An id of 1.1.1's form tells by itself that a member of Kafka's group is none of
        the new ones, and there may be any number of those.
        """
        if self.embedded is None or is_made(self.settings.group, self.state.member):
            return
        if self.embedded.member_id and self.embedded.member_id != self._named:
            self.zookeeper.name_embedded(self.state.member, self.embedded.member_id)
            self._named = self.embedded.member_id

    def _begin_again(self) -> None:
        """ZooKeeper's session has ended, and with it every lock: others have the partitions by now."""
        if self.state.held:
            logger.warning("the session with ZooKeeper has ended: %d partitions are lost", len(self.state.held))
        self._drop(self.state.held)
        self.state = replace(self.state, mode=None)
        self.sight.view = replace(self.sight.view, new=None)
        if not self.zookeeper.connected:
            raise Unreachable("ZooKeeper does not answer", way_out="wait: the member goes on once it does")
        self.zookeeper.begin_session()
        self._changed.set()
        self._register()

    def _register(self) -> None:
        """In ids only once it follows a mode: its share would lie idle until Kafka tells who is in its group."""
        follows = self.embedded is None or self.state.mode is not None
        data = self.registration.encode(int(time.time() * 1000))
        wait = self.settings.session_seconds * 1.5
        if follows:
            self._changed.set()
        self.zookeeper.register(
            self.state.member, data, migrates=self.settings.migrates, wait_seconds=wait, gets_a_share=follows
        )

    # what is seen

    def _look(self) -> None:
        self._changed.clear()
        seen = self.sight.look({topic for topic, _ in self.state.held})
        mine = self.zookeeper.session
        if lost := [each for each in self.state.held if seen.owners.get(each) != mine]:
            logger.warning("%s: somebody has deleted the owner znode of this session", lost)
            self._drop(lost)
        if self.state.member not in (seen.members.keys() & seen.migrating if self.embedded else seen.members):
            self._register()
        self.looked.set()
        unknown = [p for p, session in seen.owners.items() if session == mine and p not in self.state.held]
        for each in self.zookeeper.unlock(unknown):
            logger.info("%s is unlocked: the answer to its lock had not come", each)

    # what is done

    def _work(self, *, revoking: bool = False) -> None:
        """Steps until there is nothing to do now."""
        for _ in range(20):
            held = self.state.held
            quiet = frozenset(each for each, one in held.items() if self.streams[one.thread].quiet(each))
            view = replace(
                self.sight.view, quiet=quiet, assigned=self.sight.assigned(self.state.mode), revoking=revoking
            )
            found = step(self.state, view)
            if not revoking:
                self._turn_to(found.mode, found.notice)
            if not any([self._do(kind, found.actions) for kind in (Stop, Release, Lock, Start)]):
                return

    def _turn_to(self, mode: Mode | None, notice: str) -> None:
        if mode is not self.state.mode:
            logger.info("%s: %s assigns now", self.state.member, mode)
        self.toggles.note(mode, notice, self.sight.view.new)
        begins = self.embedded is not None and self.state.mode is None and mode is not None
        self.state = replace(self.state, mode=mode)
        if begins:
            self._register()

    def _do(self, kind: type[Action], actions: Sequence[Action]) -> bool:
        """The actions of one kind; whether one of them was done."""
        some = [each for each in actions if isinstance(each, kind)]
        if not some:
            return False
        done = {Stop: self._stop, Release: self._release, Lock: self._lock, Start: self._start}[kind](some)
        return bool(done)

    def _stop(self, actions: Sequence[Action]) -> int:
        for each in actions:
            held = self.state.held[each.partition]
            self.streams[held.thread].stop(each.partition)
            self._hold(each.partition, Held(held.thread, Phase.STOPPING))
            self._stopped_at[each.partition] = time.monotonic()
        return len(actions)

    def _release(self, actions: Sequence[Action]) -> int:
        partitions = [each.partition for each in actions]
        alone = self._ending and not self.zookeeper.connected  # what Kafka does not take then, nobody has
        self._handover_().give_up(self._last_of(partitions), wait=alone or self.state.mode is Mode.KAFKA)
        if any(isinstance(each, Release) and each.linger for each in actions):
            time.sleep(LINGER_SECONDS)
        try:
            if self.teller is not None:
                self.teller.releases(partitions)
        finally:  # all is committed: nobody shall wait for a partition because of an error in the application
            for each in self.zookeeper.unlock(partitions):
                self._forget(each)
        return len(partitions)

    def _lock(self, actions: Sequence[Action]) -> int:
        threads = {each.partition: each.thread for each in actions if isinstance(each, Lock)}
        locked = self.zookeeper.lock(threads, self.state.member)
        for each in locked:
            self._hold(each, Held(threads[each], Phase.LOCKED))
        if len(locked) < len(threads):
            self._changed.set()
        return len(locked)

    def _start(self, actions: Sequence[Action]) -> int:
        partitions = [each.partition for each in actions]
        follows_kafka = self.state.mode is Mode.KAFKA
        toggled = follows_kafka or self.sight.view.mode is not None
        begins = self._handover_().take_over(partitions, wait=follows_kafka, toggled=toggled)
        if begins and self.teller is not None:
            self.teller.starts(self.sight.whole_group(self.state.mode))
        for each in actions:
            assert isinstance(each, Start)
            if each.partition in begins:
                self.streams[each.thread].start(each.partition, begins[each.partition])
                self._hold(each.partition, Held(each.thread, Phase.RUNNING))
        return len(begins)

    def _revoked(self, gone: frozenset[Partition], lost: bool) -> None:
        """Kafka takes partitions away: what follows Kafka is given up before this returns, so a new member that gets
        them begins where this one has ended. ``lost``: they are somebody else's already.
        """
        if self._ending or self.state.mode is not Mode.KAFKA:
            return  # in ZooKeeper mode it goes on with what Kafka told last
        self.sight.view = replace(self.sight.view, new=None)
        mine = gone & self.state.held.keys()
        if lost:
            self._handover_().lost |= mine
            self._stop([Stop(each) for each in mine if self.state.held[each].phase is Phase.RUNNING])
            return
        deadline = time.monotonic() + self.settings.release_seconds
        while mine & self.state.held.keys():
            if self.zookeeper.lost.is_set():
                self._drop(mine & self.state.held.keys())
                return
            if late := time.monotonic() > deadline:
                self._abandon(mine & self.state.held.keys())
            try:
                self._work(revoking=True)
            except Unreachable as error:
                logger.warning("%s", error)
                late = late or not self.zookeeper.connected
                time.sleep(0.05)
            if late and (left := mine & self.state.held.keys()):
                self._leave(left)
                return
            time.sleep(0.005)
        self._handover_().await_others(gone)

    def _leave(self, partitions: Collection[Partition]) -> None:
        """Kafka gives them to somebody else while their locks can't be released: the last that Kafka hears of them."""
        self._handover_().tell_kafka(self._last_of(partitions), wait=True)
        self._handover_().lost |= set(partitions)

    def _abandon_late(self) -> None:
        oldest = time.monotonic() - self.settings.release_seconds
        self._abandon([each for each, since in self._stopped_at.items() if since < oldest])

    def _abandon(self, partitions: Collection[Partition]) -> None:
        for each in partitions:
            self.streams[self.state.held[each].thread].abandon(each)

    # commits

    def _positions(self, partitions: Iterable[Partition]) -> dict[Partition, int]:
        found = {each: self.streams[self.state.held[each].thread].position(each) for each in partitions}
        return {each: offset for each, offset in found.items() if offset is not None}

    def _last_of(self, partitions: Collection[Partition]) -> dict[Partition, int]:
        """What a release commits. With auto.commit.enable=false: only what commit() took, or is waited for."""
        if self.settings.auto_commit or self._commits.asked:
            return self._positions(partitions)
        return self._handover_().committed(partitions)

    def _may_commit(self) -> bool:
        """Whether what is held is nobody else's yet: in kafka mode Kafka tells, else the session that holds the locks.
        Who is cut off from ZooKeeper learns only later that it has ended.
        """
        if self.zookeeper.lost.is_set():
            return False
        lease = self._zookeeper_lease
        return self.state.mode is Mode.KAFKA or lease.age < lease.session_seconds

    def _commit_if_due(self) -> None:
        if not self._may_commit():
            return
        try:
            wait, silent = self.state.mode is Mode.KAFKA, not self._zookeeper_lease.holds()
            self._commits.make(self._handover_(), lambda: self._positions(self.state.held), wait=wait, now=silent)
        finally:
            self._handover_().sign(self.state.held)

    # what is held

    def _handover_(self) -> Handover:
        assert self._handover is not None, "start comes first"
        return self._handover

    def _hold(self, partition: Partition, held: Held) -> None:
        self.state = replace(self.state, held={**self.state.held, partition: held})

    def _forget(self, partition: Partition) -> None:
        self.streams[self.state.held[partition].thread].forget(partition)
        self._handover_().forget(partition)
        self._stopped_at.pop(partition, None)
        left = {each: held for each, held in self.state.held.items() if each != partition}
        self.state = replace(self.state, held=left)

    def _drop(self, partitions: Iterable[Partition]) -> None:
        """Without a commit: they are, or will be, somebody else's, who may have gone on."""
        for each in list(partitions):
            self.streams[self.state.held[each].thread].stop(each)
            self._forget(each)

    def end(self) -> None:
        """Give up all that is held, then the registration, then the place in Kafka's group. A part that fails keeps no
        other one from its end, ZooKeeper's session least of all: with it goes what is locked.
        """
        self._closing.set()
        self._ending = True
        attempt(self._give_up_all, "what was not committed at the end is read again")
        close_each(self.streams, self.failure, self.embedded, self._handover, self.zookeeper)
        self.looked.set()

    def _give_up_all(self) -> None:
        """Without ZooKeeper Kafka alone hears how far it is, and the locks go with the session."""
        if not self._may_commit():
            self._drop(self.state.held)
        self._stop([Stop(each) for each, held in self.state.held.items() if held.phase is Phase.RUNNING])
        deadline = time.monotonic() + self.settings.release_seconds
        while time.monotonic() < deadline and not all(
            self.streams[held.thread].quiet(each) for each, held in self.state.held.items()
        ):
            time.sleep(0.005)
        self._abandon(self.state.held)
        if not self._may_commit():
            self._drop(self.state.held)
        if self.state.held:
            self._release([Release(each, linger=self.sight.view.old_beside) for each in self.state.held])
        if self.zookeeper.connected and not self.zookeeper.lost.is_set():
            self.zookeeper.unregister(self.state.member)
