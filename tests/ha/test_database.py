# SPDX-License-Identifier: Apache-2.0
"""The database fails over below the managers."""

import pytest

from manager_lab import Load, Managers
from pgha import Patroni, pooler
from conftest import SPEC


def test_primary_is_killed(pair, cluster, load):
    """A synchronous standby takes its place: nothing is lost."""
    pair.fail_over()
    load.wait_created(30)
    cluster.wait_settled()


def test_primary_and_leader_are_killed(pair, cluster, load):
    """At the same time, as with a room that has no power any more."""
    former = cluster.leader()
    former.kill()
    pair.fail_over()
    cluster.wait_leader(but=former)
    load.wait_created(30)


def test_database_is_away(pair, cluster, load):
    """Nobody leads without it; when it is back, it goes on."""
    for host in pair.hosts:
        host.pull()
    with pytest.raises(AssertionError, match="waited 8 s for 1 more sessions"):
        load.wait_created(1, seconds=8)
    for host in pair.hosts:
        host.plug()
    load.wait_created(30)
    cluster.wait_settled()


def test_standby_lacks_commits(switch, lagging):
    """What an asynchronous standby lacks is gone, and said: the leader reports it, and loads
    again what is there."""
    with Managers(switch, lagging.uri("cluster")) as cluster:
        cluster.start()
        cluster.start_swarm(nodes=20, cores=64, gpus=4)
        load = Load(cluster, spec=SPEC, may_lose=True)
        load.wait_created(30)
        lagging.wait_streaming()
        before = set(load.created)
        lagging.hold_back()
        load.wait_created(30)
        lagging.fail_over()
        load.wait_created(30)
        load.stop()
        cluster.wait_settled()
        cluster.swarm.wait_connected(120)
        there = {session["name"] for session in cluster.sessions()}
        lost = set(load.created) - there
        assert lost and before - there <= lost
        assert any("acknowledged commits" in manager.log() for manager in cluster.all)
        load.check(may_lack=lost)


def test_through_a_pooler(switch, pair):
    """pgbouncer in session mode between the managers and the database."""
    desk = switch.add()
    with pooler(pair.primary, "session", desk) as uri, Managers(switch, uri) as cluster:
        cluster.start()
        cluster.start_swarm(nodes=20, cores=64, gpus=4)
        load = Load(cluster, spec=SPEC)
        load.wait_created(30)
        former = cluster.leader()
        former.kill()
        cluster.wait_leader(but=former)
        load.wait_created(30)
        load.stop()
        cluster.wait_settled()
        cluster.swarm.wait_connected(120)
        load.check()


@pytest.mark.parametrize("failure", ["switch_over", "kill_primary"])
def test_patroni(switch, failure):
    """It makes the other server the primary, in good order and after a failure."""
    with Patroni(switch) as servers:
        servers.run("CREATE DATABASE cluster")
        with Managers(switch, servers.uri("cluster")) as cluster:
            cluster.start()
            cluster.start_swarm(nodes=20, cores=64, gpus=4)
            load = Load(cluster, spec=SPEC)
            load.wait_created(30)
            getattr(servers, failure)()
            load.wait_created(30)
            load.stop()
            cluster.wait_settled()
            cluster.swarm.wait_connected(120)
            load.check()
