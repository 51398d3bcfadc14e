# SPDX-License-Identifier: Apache-2.0
"""Clocks of the leader, the standby and the database's machine that are hours apart, and jump: no
session ends for that, and who leads is decided as ever."""

import contextlib
from datetime import datetime, timezone

import pytest

from client import iso_now
from cluster import interactive, wait_for
from conftest import SPEC
from faketime import WallClock
from manager_lab import Doomed, Load, Managers
from pgha import Pair

HOUR = 3600
LIFETIME = 90 * 60  # of sessions: less than the clocks are apart


def own_shared_memory(host):
    """What libfaketime leaves there when its program is killed goes with the host."""
    host.space.run("mount", "-t", "tmpfs", "-o", "size=64m,mode=1777", "aliquot", "/dev/shm")


@contextlib.contextmanager
def clocked(switch):
    """Two managers and the database's servers, each with a clock of its own, which are right; and
    the clock of the servers."""
    clocks = []

    def prepare(server, host):
        own_shared_memory(host)
        server.clock = WallClock(server.folder / "clock")
        clocks.append(server.clock)

    with Pair(switch, prepare=prepare) as pair:
        pair.primary.run("CREATE DATABASE cluster")
        with Managers(switch, pair.uri("cluster"), mounts=True) as cluster:
            for manager in cluster.all:
                own_shared_memory(manager.host)
                manager.clock = WallClock(cluster.folder / f"{manager.name}.clock")
            cluster.start()
            cluster.start_swarm(nodes=20, cores=64, gpus=4)
            yield cluster, clocks


def client_of(manager):
    client = manager.client()
    client.shift = manager.clock.ahead
    return client


def limit_lifetimes(cluster):
    policies = client_of(cluster.leader()).gql(
        "{ keypair_resource_policies { name } }").json["data"]["keypair_resource_policies"]
    for policy in policies:
        reply = client_of(cluster.leader()).gql(
            "mutation($n: String!, $p: ModifyKeyPairResourcePolicyInput!)"
            "{ modify_keypair_resource_policy(name: $n, props: $p) { ok msg } }",
            {"n": policy["name"], "p": {"max_session_lifetime": LIFETIME}})
        assert reply.json["data"]["modify_keypair_resource_policy"]["ok"], reply


def left(leader, session):
    """Seconds until a session's lifetime ends, by the leader."""
    shown = client_of(leader).get(f"/aliquot/v1/sessions/{session}").json
    assert shown["status"] == "RUNNING", shown
    assert shown["idle"]["reason"] == "idle-session-lifetime", shown
    end = datetime.fromisoformat(shown["idle"]["ends_at"])
    return (end - datetime.now(timezone.utc)).total_seconds() - leader.clock.ahead


def start_session(leader, name):
    body = interactive(name, image="host", config={"resources": SPEC})
    reply = client_of(leader).post("/session", body)
    assert reply.status == 201, reply
    session = reply.json["sessionId"]
    wait_for(lambda: client_of(leader).get(f"/aliquot/v1/sessions/{session}").json["status"]
             == "RUNNING", 60, f"{name} to run")
    return session


def stands_by(manager, leader):
    """Its link to the leader is there, too."""
    listed = client_of(leader).get("/aliquot/v1/managers").json["items"]
    return (manager.health().get("role") == "standby"
            and {one["name"]: one["connected"] for one in listed}[manager.name])


def check_signatures(manager):
    """Requests are good for 15 minutes around the clock of the leader."""
    client = client_of(manager)
    for ahead, is_good in ((0, True), (-14 * 60, True), (14 * 60, True), (-16 * 60, False),
                           (16 * 60, False)):
        reply = client.get("/aliquot/v1/agents", date=iso_now(client.shift + ahead))
        assert (reply.status == 200) == is_good, (ahead, reply)
        assert is_good or b"Date/time sync error" in reply.body, reply


def check_sessions(leader, sessions):
    """Their lifetime is not shorter for it, nor longer than all of it."""
    for name, session in sessions.items():
        assert LIFETIME - 10 * 60 < left(leader, session) <= LIFETIME + 1, name


@pytest.mark.parametrize("ahead", [HOUR, -HOUR])
def test_clocks_two_hours_apart(switch, ahead):
    """The leader's and the standby's, and the database's like the standby's. They jump while all of
    them run."""
    with clocked(switch) as (cluster, database):
        limit_lifetimes(cluster)
        load = Load(cluster, spec=SPEC)
        load.wait_created(20)
        first = cluster.leader()
        second = next(manager for manager in cluster.all if manager is not first)
        epoch = first.health()["epoch"]
        sessions = {"before": start_session(first, "before")}
        for clock in database:
            clock.set(-ahead)
        first.clock.set(ahead)
        second.clock.set(-ahead)
        load.wait_created(20)
        assert (cluster.leader(), first.health()["epoch"]) == (first, epoch)
        sessions["jumped"] = start_session(first, "jumped")
        check_sessions(first, sessions)
        check_signatures(first)
        for former, leader in ((first, second), (second, first)):
            former.kill()
            assert cluster.wait_leader(but=former) is leader
            load.wait_created(20)
            sessions[leader.name] = start_session(leader, leader.name)
            check_sessions(leader, sessions)
            check_signatures(leader)
            former.start()
            wait_for(lambda a=former, b=leader: stands_by(a, b), 60, cluster.logs)
        load.created.update(sessions)
        load.stop()
        cluster.wait_settled()
        cluster.swarm.wait_connected(120)
        load.check()
