# SPDX-License-Identifier: Apache-2.0
"""Managers that join, leave, and come back with what they knew long ago."""

import contextlib
import shutil

from cluster import wait_for
from link_agent import ENDS, LinkAgent
from manager_lab import Manager, Managers
from world import BUILD


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


class Doomed:
    """An agent that is removed; where a LinkAgent finds its files, and whom it asks."""

    def __init__(self, cluster):
        self.folder, self.desk = cluster.folder, cluster.desk
        token = cluster.leader().client().post("/aliquot/v1/join-tokens", {}).json["token"]
        self.link = cluster.leader().link
        done = cluster.run_words(cluster.desk.words(
            "env", "ALIQUOT_ID=doomed", BUILD / "aliquot-agent", "--state",
            cluster.folder / "doomed", "join", self.link, token))
        assert done.returncode == 0, done.stderr

    def is_let_in(self, manager):
        self.link = manager.link
        agent = LinkAgent(self, "doomed")
        with self.desk.entered(), contextlib.suppress(*ENDS):
            try:
                return agent.connect()
            finally:
                agent.close()
        return False


def test_old_state(cluster, load):
    """A manager whose state folder is of last month: agents that were removed since stay out when
    it leads."""
    leader, standby = cluster.leader(), next(m for m in cluster.all if not m.is_leader())
    doomed = Doomed(cluster)
    assert doomed.is_let_in(leader)
    old = cluster.folder / "old"
    shutil.copytree(standby.state, old)
    reply = leader.client().post("/aliquot/v1/agents/doomed/revoke", {})
    assert reply.status in (200, 204), reply
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
