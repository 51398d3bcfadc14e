# SPDX-License-Identifier: Apache-2.0
"""The leader dies, sleeps, or is cut off: another takes over, and nothing that clients were told
is lost or done twice."""

import signal

import pytest

from cluster import wait_for
from manager_lab import Load

ROUNDS = 3


def hold_commits(cluster, mark):
    """Settings by which a manager stops itself at a commit once 'mark' is removed."""
    mark.touch()
    return {"ALIQUOT_FAULT_ONCE": str(mark), "ALIQUOT_FAULT_SIGNAL": "STOP"}


def state_of(manager):
    """The letter of ps(1): T = stopped."""
    with open(f"/proc/{manager.program.pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0]


def test_leader_is_killed(cluster, load):
    """Again and again, each time with a standby that has just been started."""
    for _ in range(ROUNDS):
        former = cluster.leader()
        epoch = former.health()["epoch"]
        former.kill()
        assert cluster.wait_leader(but=former).health()["epoch"] > epoch
        load.wait_created(30)
        former.start()
        wait_for(lambda: former.health().get("role") == "standby", 60, "the former as standby")


def test_all_managers_are_killed(cluster, load):
    """Nobody is left who remembers anything."""
    for manager in cluster.all:
        manager.kill()
    for manager in reversed(cluster.all):
        manager.start()
    cluster.wait_settled()
    load.wait_created(30)


def test_standby_is_killed(cluster, load):
    """The leader goes on; nobody else takes its place."""
    leader, standby = cluster.leader(), next(m for m in cluster.all if not m.is_leader())
    epoch = leader.health()["epoch"]
    standby.kill()
    load.wait_created(30)
    standby.start()
    wait_for(lambda: standby.health().get("role") == "standby", 60, "it to stand by again")
    assert (cluster.leader(), leader.health()["epoch"]) == (leader, epoch)


@pytest.mark.parametrize("point", ["store.commit.before", "store.commit.after"])
def test_leader_sleeps_at_a_commit(cluster, load, point):
    """Stopped before, or after, a commit, and awake again when another leads: its process ends,
    and what it had not acknowledged was done by the other, or not at all."""
    mark = cluster.folder / "mark"
    former = cluster.leader()
    standby = next(manager for manager in cluster.all if manager is not former)
    standby.kill()
    standby.start(ALIQUOT_FAULT=f"{point}:any", **hold_commits(cluster, mark))
    wait_for(lambda: standby.health().get("role") == "standby", 60, "it to stand by again")
    former.kill()
    assert cluster.wait_leader(but=former) is standby
    former.start()
    wait_for(lambda: former.health().get("role") == "standby", 60, "the first as standby")
    load.wait_created(30)
    mark.unlink()
    wait_for(lambda: state_of(standby) == "T", 60, "the leader to stop at a commit")
    assert cluster.wait_leader(but=standby) is former
    load.wait_created(30)
    standby.signal(signal.SIGCONT)
    assert standby.program.process.wait(60) != 0
    assert cluster.leader() is former


def test_leader_sleeps_at_any_moment(cluster, load):
    """For longer than the lease, under load; what it answers afterwards is nothing."""
    for _ in range(ROUNDS):
        former = cluster.leader()
        former.signal(signal.SIGSTOP)
        taken = cluster.wait_leader(but=former)
        load.wait_created(30)
        former.signal(signal.SIGCONT)
        assert former.program.process.wait(60) != 0
        assert cluster.leader() is taken
        cluster.wait_settled()


def test_leader_naps(cluster, load):
    """A leader that sleeps for less than the lease goes on leading, and nothing happened."""
    leader = cluster.leader()
    epoch = leader.health()["epoch"]
    for _ in range(ROUNDS):
        leader.signal(signal.SIGSTOP)
        with pytest.raises(AssertionError, match="waited 1 s for a leader"):
            cluster.wait_leader(but=leader, seconds=1)
        leader.signal(signal.SIGCONT)
        load.wait_created(20)
    assert (cluster.leader(), leader.health()["epoch"]) == (leader, epoch)


def test_leader_yields(cluster, load):
    """On request another takes over, and clients with keys hear of no failure."""
    for _ in range(ROUNDS):
        former = cluster.leader()
        reply = former.client().post("/aliquot/v1/managers/yield", {})
        assert reply.status == 202, reply
        cluster.wait_leader(but=former)
        load.wait_created(30)
        cluster.wait_settled()


def test_clients_without_keys(cluster):
    """What was not acknowledged may be there or not; nothing is there twice."""
    load = Load(cluster, with_keys=False)
    load.wait_created(50)
    former = cluster.leader()
    former.kill()
    cluster.wait_leader(but=former)
    load.wait_created(50)
    load.stop()
    cluster.wait_settled()
    cluster.swarm.wait_connected(120)
    load.check()


# ---- cables ----

def test_leader_is_cut_off_from_everything(cluster, load):
    former = cluster.leader()
    former.host.pull()
    cluster.wait_leader(but=former)
    load.wait_created(30)
    former.host.plug()
    cluster.wait_settled()


def test_leader_is_cut_off_from_the_database(cluster, pair, load):
    """Agents and clients reach it still; it must not act for the cluster any more."""
    former = cluster.leader()
    cluster.switch.cut(former.host, *pair.hosts)
    cluster.wait_leader(but=former)
    load.wait_created(30)
    cluster.switch.mend()
    cluster.wait_settled()


def test_leader_is_cut_off_from_standbys(cluster, load):
    """It has the database, the agents and the clients: it leads on, and requests that come to a
    standby wait, or fail; what is done is done once."""
    leader, standby = cluster.leader(), next(m for m in cluster.all if not m.is_leader())
    epoch = leader.health()["epoch"]
    cluster.switch.cut(leader.host, standby.host)
    load.wait_created(30)
    cluster.switch.mend()
    cluster.wait_settled()
    assert (cluster.leader(), leader.health()["epoch"]) == (leader, epoch)


def test_leader_is_cut_off_from_agents(cluster, load):
    """Sessions wait for their agents, and run once these are back. Nobody takes over."""
    leader = cluster.leader()
    epoch = leader.health()["epoch"]
    cluster.switch.cut(cluster.farm, leader.host)
    wait_for(lambda: cluster.swarm.status()["connected"] == 0, 60, "agents to notice")
    load.wait_created(10)
    cluster.switch.mend()
    cluster.swarm.wait_connected(120)
    assert (cluster.leader(), leader.health()["epoch"]) == (leader, epoch)
