# SPDX-License-Identifier: Apache-2.0
"""A session that agreed is moved, so that another one can start where it was, on a running cluster
whose manager is killed while that is half done."""

import signal

import pytest

from client import USER
from cluster import Cluster, wait_for
from test_scheduling import end, kill_manager, set_group, show, states, submit, wait


@pytest.fixture
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_SESSIONS_KILL_GRACE="3s",
                 ALIQUOT_AGENTS_TIMEOUT="120s") as cluster:
        cluster.start_manager()
        for agent in "one", "two":
            cluster.start_agent(agent)
        set_group(cluster, preemption={"moving": True})
        yield cluster
        for session in cluster.live_sessions():
            end(cluster, session["id"])
        wait_for(lambda: not cluster.live_sessions(), 60, "all sessions to end")
        cluster.check_audits()
        cluster.stop()


def agent_of(cluster, session):
    return show(cluster, session)["kernels"][0]["agent"]


def begin_move(cluster, command):
    """On "one" 1 + 2 cores, on "two" 3: a session that wants 2 gets those of "one" if the first leaves."""
    moves = submit(cluster, "moves", 1, command, is_movable=True)
    wait(cluster, moves, "RUNNING")
    stays = submit(cluster, "stays", 2)
    wait(cluster, stays, "RUNNING")
    other = submit(cluster, "other", 3)
    wait(cluster, other, "RUNNING")
    first, second = agent_of(cluster, moves), agent_of(cluster, other)
    assert agent_of(cluster, stays) == first != second
    wants = submit(cluster, "wants", 2)
    late = submit(cluster, "late", 1)
    return moves, wants, late, first, second


def check_moved(cluster, moves, wants, late, first, second):
    wait(cluster, wants, "RUNNING")
    assert agent_of(cluster, wants) == first
    wait_for(lambda: agent_of(cluster, moves) == second, 30, "the other agent")
    wait(cluster, moves, "RUNNING")
    seen = states(cluster, moves)
    assert seen.count("PREEMPTED") == 1 and seen.count("SCHEDULED") == 2, seen
    assert show(cluster, late)["status"] == "PENDING", "it has not taken the place that was held"
    history = cluster.client(USER).get(f"/aliquot/v1/sessions/{moves}/history").json
    assert "moved" in [item["reason"] for item in history["items"]], history


@pytest.mark.gate
def test_a_session_is_moved(cluster):
    check_moved(cluster, *begin_move(cluster, "sleep 600"))


def test_a_move_half_done_outlives_the_manager(cluster):
    """The program does not want to go, and the manager dies while it is waited for."""
    made = begin_move(cluster, "trap '' TERM; while :; do sleep 1; done")
    wait_for(lambda: "PREEMPTED" in states(cluster, made[0]), 30, "the decision")
    kill_manager(cluster)
    check_moved(cluster, *made)


def test_a_promise_outlives_the_manager(cluster):
    """The next manager looks first at one of higher priority: it gets nothing of what others have
    gone for, whatever is free of it already."""
    made = begin_move(cluster, "trap '' TERM; while :; do sleep 1; done")
    wait_for(lambda: "PREEMPTED" in states(cluster, made[0]), 30, "the decision")
    first = submit(cluster, "first", 1, priority=20)
    assert cluster.client(USER).get("/aliquot/v1/sessions/" + first).json["priority"] == 20
    kill_manager(cluster)
    check_moved(cluster, *made)
    assert show(cluster, first)["status"] == "PENDING"


def agents_of(cluster, session):
    return {kernel["agent"] for kernel in show(cluster, session)["kernels"]}


def test_a_cluster_is_moved(cluster):
    """Both containers leave their agent, each for another one; the manager is killed meanwhile."""
    cluster.start_agent("three")
    moves = submit(cluster, "moves", 1, "trap '' TERM; while :; do sleep 1; done",
                   is_movable=True, clusterSize=2, clusterMode="multi-node")
    wait(cluster, moves, "RUNNING")
    first = agent_of(cluster, moves)
    others = set()
    for name, cores in ("fills", 2), ("stays", 3), ("other", 3):
        session = submit(cluster, name, cores)
        wait(cluster, session, "RUNNING")
        others |= agents_of(cluster, session)
    assert agents_of(cluster, moves) == {first} and len(others) == 3
    wants = submit(cluster, "wants", 2)
    wait_for(lambda: "PREEMPTED" in states(cluster, moves), 30, "the decision")
    kill_manager(cluster)
    wait(cluster, wants, "RUNNING")
    assert agents_of(cluster, wants) == {first}
    wait_for(lambda: agents_of(cluster, moves) == others - {first}, 30, "the other agents")
    wait(cluster, moves, "RUNNING")


def test_a_move_waits_for_its_agent(cluster):
    """When the manager is back, the agent that it goes to is not, and there is room elsewhere."""
    moves, wants, late, first, second = begin_move(
        cluster, "trap '' TERM; while :; do sleep 1; done")
    wait_for(lambda: "PREEMPTED" in states(cluster, moves), 30, "the decision")
    cluster.programs["manager"].kill()
    cluster.programs[second].signal(signal.SIGSTOP)
    try:
        cluster.start_manager()
        wait(cluster, wants, "RUNNING")
        assert agent_of(cluster, wants) == first
        cluster.start_agent("three")
        wait(cluster, late, "RUNNING")
        assert agent_of(cluster, late) == "three"
        assert show(cluster, moves)["status"] == "PENDING"
    finally:
        cluster.programs[second].signal(signal.SIGCONT)
    wait(cluster, moves, "RUNNING")
    assert agent_of(cluster, moves) == second


def test_who_did_not_agree_stays(cluster):
    blocker = submit(cluster, "blocker", 3)
    wait(cluster, blocker, "RUNNING")
    other = submit(cluster, "other", 3)
    wait(cluster, other, "RUNNING")
    wants = submit(cluster, "wants", 2)
    wait_for(lambda: show(cluster, wants)["reason"], 30, "a reason")
    assert show(cluster, wants)["status"] == "PENDING"
    assert [show(cluster, one)["status"] for one in (blocker, other)] == ["RUNNING"] * 2
