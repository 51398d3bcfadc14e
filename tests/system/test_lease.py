# SPDX-License-Identifier: Apache-2.0
"""A node that is cut off ends what may be started elsewhere, before it is: there is never an instant
with two programs of one kernel, nor with programs of two attempts of a session."""

import collections
import signal
import sys
import time

import pytest

from cluster import ENDED, batch, wait_for, wait_status
from hosts import MANAGER, Hosts
from test_scheduling import set_group

pytestmark = [pytest.mark.engines]

TIMEOUT, GRACE = 3, 1
HASTY = {"ALIQUOT_AGENTS_HEARTBEAT": "1s", "ALIQUOT_AGENTS_TIMEOUT": f"{TIMEOUT}s",
         "ALIQUOT_MANAGER_HEARTBEAT": "0.2s", "ALIQUOT_SESSIONS_KILL_GRACE": f"{GRACE}s",
         "ALIQUOT_RESOURCE_CPUS": "1"}
LEASE = 2.5 * TIMEOUT  # the least, as the grace of the resource group is 0
BOUND = LEASE + GRACE + 1.5  # after the last contact nothing runs: SIGKILL, and its delay
# Writes when it lives into a file of its own, and does not mind SIGTERM.
ALIVE = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
with open(f"{sys.argv[1]}/{os.environ.get('RANK', 0)}-{time.monotonic()}", "w", buffering=1) as file:
    while True:
        print(time.monotonic(), file=file)
        time.sleep(0.02)
"""


@pytest.fixture(params=[3])
def hosts(request):
    """Nodes with room for one kernel each."""
    with Hosts(request.param, **HASTY) as hosts:
        hosts.begin()
        (hosts.folder / "alive").mkdir()
        (hosts.folder / "alive.py").write_text(ALIVE)
        set_group(hosts, agent_loss_policy="wait", agent_loss_grace_sec=0)
        yield hosts
        for session in hosts.live_sessions():
            hosts.client().send("DELETE", f"/session/{session['name']}?forced=true")
            wait_status(hosts.client(), session["id"], *ENDED)
        hosts.check_all_gone()


def submit(hosts, size=2, **more):
    command = f"exec {sys.executable} {hosts.folder}/alive.py {hosts.folder}/alive"
    reply = hosts.client().post("/session", batch("gang", command, clusterSize=size, **{
        "clusterMode": "multi-node" if size > 1 else "single-node", **more}))
    assert reply.status == 201, reply
    wait_for(lambda: len(lives(hosts)) == size, 60, "the programs")
    return reply.json["sessionId"]


def lives(hosts):
    """[(rank, first time, last time)] of all programs that ran, by their first times."""
    found = []
    for path in (hosts.folder / "alive").iterdir():
        times = path.read_text().split()
        if len(times) > 1:
            found.append((int(path.name.split("-")[0]), float(times[0]), float(times[-2])))
    return sorted(found, key=lambda life: life[1])


def node_of(hosts, session, kernel):
    shown = wait_status(hosts.client(), session, "RUNNING", "RUNNING_DEGRADED")
    [agent] = [one["agent"] for one in shown["kernels"] if one["hostname"] == kernel]
    return int(agent.removeprefix("node"))


def cut(hosts, node):
    """When that was."""
    hosts.cut(MANAGER, node)
    return time.monotonic()


def back(hosts, node):
    hosts.heal(MANAGER, node)
    wait_for(lambda: hosts.agent(f"node{node}").get("connected"), 60, f"node{node} to be back")


def check_never_two(hosts):
    """Of one kernel."""
    by_rank = collections.defaultdict(list)
    for rank, first, last in lives(hosts):
        by_rank[rank].append((first, last))
    for rank, spans in by_rank.items():
        for (_, last), (first, _) in zip(spans, spans[1:]):
            assert last < first, f"rank {rank} ran twice: {spans}"
    return by_rank


def check_ended(hosts, rank, since):
    """The first program of the kernel has ended within the bound after 'since'."""
    last = min(life[2] for life in lives(hosts) if life[0] == rank)
    assert since + LEASE - 1.5 < last < since + BOUND, f"{last - since} s after the cut"


@pytest.mark.parametrize("agent", ("lives", "killed"))
def test_one_kernel_starts_elsewhere(hosts, agent):
    session = submit(hosts, on_node_loss="restart-kernel")
    node = node_of(hosts, session, "sub1")
    if agent == "killed":
        hosts.programs[f"node{node}"].kill()
    since = cut(hosts, node)
    wait_for(lambda: len(lives(hosts)) == 3, 60, "another program of sub1")
    spans = check_never_two(hosts)
    assert (len(spans[0]), len(spans[1])) == (1, 2), spans
    check_ended(hosts, 1, since)
    if agent == "killed":
        hosts.programs[f"node{node}"].start()
    back(hosts, node)
    time.sleep(2)  # for its reports
    shown = hosts.client().get(f"/aliquot/v1/sessions/{session}").json
    assert shown["status"] in ("RUNNING", "RUNNING_DEGRADED"), shown
    assert [one["status"] for one in shown["kernels"]] == ["RUNNING", "RUNNING"], shown
    assert len(lives(hosts)) == 3


@pytest.mark.parametrize("hosts", [4], indirect=True)
@pytest.mark.parametrize("lost", (1, 2))
def test_all_start_elsewhere(hosts, lost):
    """With half of the nodes cut off, too: two kernels on four nodes, of which two lost 'sub1'."""
    session = submit(hosts, on_node_loss="restart-all")
    nodes = [node_of(hosts, session, "sub1"), node_of(hosts, session, "main1")][:lost]
    since = [cut(hosts, node) for node in nodes][-1]
    wait_for(lambda: len(lives(hosts)) == 4, 60, "two other programs")
    spans = lives(hosts)
    assert max(life[2] for life in spans[:2]) < min(life[1] for life in spans[2:]), spans
    check_ended(hosts, 1, since)
    wait_status(hosts.client(), session, "RUNNING")
    for node in nodes:
        back(hosts, node)
    time.sleep(2)
    assert len(lives(hosts)) == 4
    assert hosts.client().get(f"/aliquot/v1/sessions/{session}").json["status"] == "RUNNING"


def test_a_node_is_back_before_it_is_given_up(hosts):
    """It has ended the kernel: that counts as the loss of the node, not as a failure."""
    set_group(hosts, agent_loss_policy="requeue")
    session = submit(hosts, size=1)
    node = node_of(hosts, session, "main1")
    since = cut(hosts, node)
    wait_for(lambda: lives(hosts)[0][2] < time.monotonic() - 0.5, 30, "the program to end")
    check_ended(hosts, 0, since)
    hosts.programs["manager"].signal(signal.SIGSTOP)  # it does not find the node lost meanwhile
    hosts.heal(MANAGER, node)
    hosts.programs["manager"].signal(signal.SIGCONT)
    wait_for(lambda: len(lives(hosts)) == 2, 60, "the session to start again")
    check_never_two(hosts)
    shown = wait_status(hosts.client(), session, "RUNNING")
    assert shown["result"] == "UNDEFINED", shown


def test_the_policy_changes(hosts):
    """A kernel that runs gets a lease, and loses it."""
    session = submit(hosts, size=1)
    node = node_of(hosts, session, "main1")
    cut(hosts, node)
    time.sleep(BOUND + 1)
    assert time.monotonic() - lives(hosts)[0][2] < 0.5, "it has ended without a lease"
    back(hosts, node)
    set_group(hosts, agent_loss_policy="requeue")
    time.sleep(1)
    since = cut(hosts, node)
    wait_for(lambda: len(lives(hosts)) == 2, 60, "the session to start again")
    check_never_two(hosts)
    check_ended(hosts, 0, since)
    back(hosts, node)


def test_the_manager_restarts(hosts):
    """In time, nothing ends. Later, the nodes have ended all, and the session starts again."""
    set_group(hosts, agent_loss_grace_sec=60)
    session = submit(hosts, on_node_loss="restart-all")
    hosts.programs["manager"].kill()
    time.sleep(5)
    hosts.start_manager(dev=False)
    for number in range(3):
        wait_for(lambda: hosts.agent(f"node{number}").get("connected"), 60, f"node{number}")
    time.sleep(1)
    assert [time.monotonic() - life[2] < 0.5 for life in lives(hosts)] == [True, True]
    set_group(hosts, agent_loss_grace_sec=0)
    time.sleep(1)  # for the agents to hear of it
    hosts.programs["manager"].kill()
    wait_for(lambda: all(time.monotonic() - life[2] > 0.5 for life in lives(hosts)), 30, "their end")
    hosts.start_manager(dev=False)
    wait_for(lambda: len(lives(hosts)) == 4, 90, "the session to start again")
    shown = wait_status(hosts.client(), session, "RUNNING")
    assert shown["result"] == "UNDEFINED", shown
    check_never_two(hosts)
