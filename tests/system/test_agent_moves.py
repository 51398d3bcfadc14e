# SPDX-License-Identifier: Apache-2.0
"""An agent whose manager goes comes to the one that leads then, with its containers and open streams,
and follows none that was replaced, also after it was killed."""

import json
import os

import pytest

from cluster import Cluster, wait_for
from link_manager import lead, played_managers
from runtimes import Session, settings_of
from world import BUILD

COUNTS = "i=0; while true; do i=$((i + 1)); echo $i; sleep 0.1; done"


@pytest.fixture(params=["crun"])
def cluster(request):
    with Cluster(**settings_of(request.param)) as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


@pytest.fixture
def managers(cluster):
    with played_managers(cluster) as played:
        yield played


def state_of(cluster, name):
    return (cluster.folder / "agent" / name).read_text()


def counts(manager, stream):
    """All lines so far, which have no gap."""
    lines = [int(line) for line in manager.lines(stream)]
    assert lines == list(range(1, len(lines) + 1)), lines
    return len(lines)


def wait_counted(manager, stream):
    before = counts(manager, stream)
    wait_for(lambda: counts(manager, stream) > before + 3, 30, "the program's lines")


def start_joined(cluster):
    cluster.start_program("agent", BUILD / "aliquot-agent", "--state", cluster.folder / "agent",
                          ALIQUOT_ID="agent")


@pytest.mark.gate
def test_an_agent_moves_with_its_containers(cluster, managers):
    first, second = managers
    cluster.start_agent(ALIQUOT_MANAGER_ADDRESS=",".join(
        [cluster.link, first.address, second.address]))
    kernel = Session(cluster, COUNTS).kernel["id"]

    cluster.programs["manager"].may_end = True
    cluster.programs["manager"].kill()
    lead(first, [second], 1000)
    wait_for(lambda: first.kernels().get(kernel) == "RUNNING", 60, "the agent at the first")
    assert state_of(cluster, "epoch") == "1000\n"
    log = first.follow(kernel)
    wait_counted(first, log)

    lead(second, [first], 1001)
    wait_for(lambda: second.kernels().get(kernel) == "RUNNING", 60, "the agent at the second")
    assert state_of(cluster, "epoch") == "1001\n"
    wait_counted(first, log)  # a stream that was open stays

    # The first one does not know that it was replaced, and the agent begins again.
    first.leader = None
    second.stop()
    cluster.programs["agent"].kill()
    heard = len(first.said)
    cluster.programs["agent"].start()
    wait_for(lambda: len(first.said) > heard + 2, 30, "it to ask the first")
    assert {message["type"] for message in first.said[heard:]} == {"hello"}
    assert all(message["epoch"] == 1001 for message in first.said[heard:])
    assert "leads epoch 1000, and epoch 1001 has begun" in cluster.log_of("agent")
    second.said.clear()
    second.start()
    wait_for(lambda: second.kernels().get(kernel) == "RUNNING", 60, "the agent at the second again")
    log = second.follow(kernel)
    wait_counted(second, log)

    # An order of the epoch before ends nothing; one of its own does.
    second.order("kernel.destroy", kernel_id=kernel, attempt=1, epoch=1000, reason="stale")
    wait_for(lambda: "refused 'kernel.destroy' of epoch 1000" in cluster.log_of("agent"), 30, "it")
    wait_counted(second, log)
    second.order("kernel.destroy", kernel_id=kernel, attempt=1, reason="user-requested")
    wait_for(lambda: second.kernels().get(kernel) == "TERMINATED", 60, "its end")
    second.order("kernel.forget", kernel_id=kernel, attempt=1)
    wait_for(lambda: kernel not in second.kernels(), 30, "it to be forgotten")


def test_managers_that_are_named_are_kept(cluster, managers):
    """Of the agent's two addresses none is left, and it was started again."""
    first, second = managers
    cluster.join()
    (cluster.folder / "agent" / "manager").write_text(first.address + "\n")
    first.managers = [{"name": name, "link": manager.address} for name, manager
                      in (("one", first), ("two", second))]
    lead(first, [second], 7)
    start_joined(cluster)
    wait_for(lambda: first.last("heartbeat"), 60, "the agent at the first")
    named = json.loads(state_of(cluster, "managers"))["managers"]
    assert {manager["link"] for manager in named} == {first.address, second.address}
    cluster.programs["agent"].kill()
    first.stop()
    second.epoch, second.leader = 8, None
    cluster.programs["agent"].start()
    wait_for(lambda: second.last("heartbeat"), 60, "the agent at the second")
    assert state_of(cluster, "epoch") == "8\n"
    assert not [name for name in os.listdir(cluster.folder / "agent") if ".tmp." in name]


def test_joining_at_a_manager_that_does_not_lead(cluster, managers):
    """Its token is of the cluster's authority, which each manager proves to have."""
    first, _ = managers
    first.leader = cluster.link
    token = cluster.client().post("/aliquot/v1/join-tokens", {}).json["token"]
    done = cluster.run("aliquot-agent", "--state", cluster.folder / "agent", "join", first.address,
                       token, ALIQUOT_ID="agent")
    assert done.returncode == 0, done.stderr
    assert first.refused == 1 and state_of(cluster, "manager") == cluster.link + "\n"
    start_joined(cluster)
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
