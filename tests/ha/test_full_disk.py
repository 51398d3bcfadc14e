# SPDX-License-Identifier: Apache-2.0
"""The disk of a database's machine, or of the leader's, takes no more: clients are asked to wait,
nothing that they were told is lost, and it goes on once there is room."""

import contextlib
import signal

import pytest

from cluster import wait_for
from conftest import SPEC
from manager_lab import Doomed, Load, Managers
from pgha import Pair
from postgres import USER
from small_disk import HiddenDisk, fill, small_disk

BALLAST = 25_000  # so that a load needs room all the time


@contextlib.contextmanager
def small_pair(switch, place):
    """Two servers, of which one has a small disk: at "tables" and "log" the primary for these, at
    "standby" the standby for all it has; and the disk."""
    disks = []

    def prepare(server, host):
        is_primary = host is switch.hosts[0]
        if place == "standby" and not is_primary:
            disks.append(HiddenDisk(host.space, server.data, "120m", USER))
        elif place != "standby" and is_primary:
            disks.append(HiddenDisk(host.space, server.folder / "small", "24m", USER))
        if place == "log" and is_primary:
            server.init_words = ["-X", server.folder / "small" / "log", "--wal-segsize=1"]
            server.settings["wal_keep_size"] = "8MB"  # for the standby, as long as this one is down

    with Pair(switch, prepare=prepare) as pair:
        if place == "tables":
            pair.primary.run(f"CREATE TABLESPACE small LOCATION '{pair.primary.folder}/small'")
            pair.primary.run("CREATE DATABASE cluster TABLESPACE small")
        else:
            pair.primary.run("CREATE DATABASE cluster")
        yield pair, disks[0]


@contextlib.contextmanager
def loaded(switch, pair):
    with Managers(switch, pair.uri("cluster")) as cluster:
        cluster.start()
        cluster.start_swarm(nodes=20, cores=64, gpus=4)
        load = Load(cluster, spec=SPEC, ballast=BALLAST)
        load.wait_created(20)
        yield cluster, load
        load.stop()
        cluster.wait_settled()
        cluster.swarm.wait_connected(120)
        load.check()


def check_asked_to_wait(load):
    """Clients that got an answer, and not only a closed connection, were told when to come again."""
    refused = [reply for reply in load.undecided() if reply.status == 503]
    assert all(int(reply.headers["Retry-After"]) > 0 for reply in refused), refused
    return refused


def test_primary_has_no_room_for_tables(switch):
    """What does not fit is refused; the leader still leads."""
    with small_pair(switch, "tables") as (pair, disk), loaded(switch, pair) as (cluster, load):
        leader = cluster.leader()
        epoch = leader.health()["epoch"]
        disk.fill()
        refused = wait_for(lambda: check_asked_to_wait(load), 60, "a refusal")
        assert "free space on the server" in refused[-1].body.decode(), refused[-1]
        disk.empty()
        load.wait_created(20)
        assert (cluster.leader(), leader.health()["epoch"]) == (leader, epoch)
        check_asked_to_wait(load)


def test_primary_has_no_room_for_its_log(switch):
    """It gives up, and comes back when it has room, as systemd would have it."""
    with small_pair(switch, "log") as (pair, disk), loaded(switch, pair) as (cluster, load):
        disk.fill()
        log = pair.primary.folder / "log"
        wait_for(lambda: "No space left" in log.read_text(), 60, "the server's log to end")
        with pytest.raises(AssertionError, match="waited 8 s for 1 more sessions"):
            load.wait_created(1, seconds=8)
        disk.empty()
        pair.primary.stop(signal.SIGKILL)
        pair.primary.start()
        load.wait_created(20)
        cluster.wait_settled()
        check_asked_to_wait(load)


def test_database_standby_has_no_room(switch):
    """The primary waits for it with each commit, and so does everybody, without a change of the
    leader: no other could commit, either."""
    with small_pair(switch, "standby") as (pair, disk), loaded(switch, pair) as (cluster, load):
        leader = cluster.leader()
        epoch = leader.health()["epoch"]
        disk.fill()
        log = pair.standby.folder / "log"
        wait_for(lambda: "No space left" in log.read_text(), 60, "the standby's log to end")
        with pytest.raises(AssertionError, match="waited 8 s for 1 more sessions"):
            load.wait_created(1, seconds=8)
        standby = next(m for m in cluster.all if m is not leader)
        wait_for(lambda: "is silent and is not replaced" in standby.log(), 30, "it to say why")
        disk.empty()
        pair.standby.stop(signal.SIGKILL)
        pair.standby.start()
        load.wait_created(20)
        assert (cluster.leader(), leader.health()["epoch"]) == (leader, epoch)
        assert standby.log().count("is silent") == 1, standby.log()
        check_asked_to_wait(load)


# ---- the leader's own disk ----

@contextlib.contextmanager
def small_state(switch, pair):
    """Two managers; the leader's state folder is a disk of its own. The file that fills it up."""
    with Managers(switch, pair.uri("cluster")) as cluster, \
            small_disk(cluster.all[0].state, "2m", "mode=700") as filler:
        try:
            yield cluster, filler
        finally:
            cluster.kill()


def test_leader_has_no_room_for_its_state(switch, pair):
    """It leads and stands by without a byte more, also after a start, and keeps out agents that
    were removed meanwhile."""
    with small_state(switch, pair) as (cluster, filler):
        cluster.start()
        cluster.start_swarm(nodes=20, cores=64, gpus=4)
        first, second = cluster.all
        assert cluster.leader() is first
        load = Load(cluster, spec=SPEC)
        load.wait_created(20)
        doomed = Doomed(cluster)
        assert doomed.is_let_in(first)
        fill(filler)
        doomed.revoke()
        assert not doomed.is_let_in(first)
        load.wait_created(20)
        first.kill()
        assert cluster.wait_leader(but=first) is second
        assert not doomed.is_let_in(second)
        load.wait_created(20)
        first.start()
        cluster.wait_settled()
        second.kill()
        assert cluster.wait_leader(but=second) is first
        assert not doomed.is_let_in(first)
        assert "free space there" in first.log()
        load.wait_created(20)
        filler.unlink()
        wait_for(lambda: "its file system can be written again" in first.log(), 60,
                 "the clock to be noted")
        load.stop()
        cluster.wait_settled()
        cluster.swarm.wait_connected(120)
        load.check()
