# SPDX-License-Identifier: Apache-2.0
"""Managers that join, leave, and come back with what they knew long ago."""

import shutil

from cluster import wait_for
from manager_lab import Doomed, Manager, Managers


def test_one_manager_leads_an_empty_database(switch, pair):
    """Two that were never joined: the second does not become another cluster."""
    with Managers(switch, pair.uri("cluster"), 1) as cluster:
        cluster.start()
        other = Manager(cluster, switch.add(), "stranger")
        other.start()
        assert other.program.process.wait(60) != 0, other.log()
        assert cluster.leader() is cluster.all[0]


def test_third_manager_joins(cluster, load):
    """While the others are at work; then it takes over."""
    third = Manager(cluster, cluster.switch.add(), "manager-3")
    cluster.join(third)
    third.start()
    cluster.all.append(third)
    wait_for(lambda: third.health().get("role") == "standby", 60, "it to stand by")
    first, second = cluster.leader(), next(
        m for m in cluster.all if not m.is_leader() and m is not third)
    second.kill()
    first.kill()
    assert cluster.wait_leader() is third
    load.wait_created(30)


def test_old_state(cluster, load):
    """A manager whose state folder is of last month: agents that were removed since stay out when
    it leads."""
    leader, standby = cluster.leader(), next(m for m in cluster.all if not m.is_leader())
    doomed = Doomed(cluster)
    assert doomed.is_let_in(leader)
    old = cluster.folder / "old"
    shutil.copytree(standby.state, old)
    doomed.revoke()
    assert not doomed.is_let_in(leader)
    standby.kill()
    shutil.rmtree(standby.state)
    old.rename(standby.state)
    standby.start()
    wait_for(lambda: standby.health().get("role") == "standby", 60, "it to stand by")
    leader.kill()
    assert cluster.wait_leader(but=leader) is standby
    assert not doomed.is_let_in(standby)
    load.wait_created(30)
    leader.start()
