# SPDX-License-Identifier: Apache-2.0
"""Sessions with a minimum of kernels: they grow into what is free, give way to sessions that wait
and survive the loss of a kernel, on a running cluster."""

import signal

import pytest

from client import USER
from cluster import Cluster, batch, wait_for, wait_status

pytestmark = pytest.mark.engines

GROUP = "/aliquot/v1/resource-groups/default"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="3", ALIQUOT_SESSIONS_KILL_GRACE="3s",
                 ALIQUOT_AGENTS_HEARTBEAT="1s", ALIQUOT_AGENTS_TIMEOUT="4s",
                 ALIQUOT_MANAGER_HEARTBEAT="0.2s") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


@pytest.fixture(autouse=True)
def clean(cluster):
    yield
    for session in cluster.live_sessions():
        cluster.client().delete(f"/session/{session['id']}?forced=true&owner_access_key="
                                + session["access_key"])
    wait_for(lambda: not cluster.live_sessions(), 60, "all sessions to end")
    cluster.check_audits()


def submit(cluster, name, command="sleep 600", cpu=1, **more):
    config = {"resources": {"cpu": str(cpu), "mem": "64m"}}
    reply = cluster.client(USER).post("/session", batch(name, command, config=config, **more))
    assert reply.status == 201, reply
    return reply.json["sessionId"]


def kernels(cluster, session):
    """The statuses of its kernels."""
    shown = cluster.client(USER).get("/aliquot/v1/sessions/" + session).json
    return [kernel["status"] for kernel in shown["kernels"]]


def wait_kernels(cluster, session, *wanted):
    wait_for(lambda: kernels(cluster, session) == list(wanted), 60,
             lambda: f"{wanted}, not {kernels(cluster, session)}")


def grown(cluster, name, command="sleep 600", **more):
    """One of 2 to 4 kernels that has grown to three."""
    session = submit(cluster, name, command, clusterSize=4, clusterSizeMin=2, **more)
    wait_kernels(cluster, session, "RUNNING", "RUNNING", "RUNNING", "PENDING")
    return session


def kill_manager(cluster):
    cluster.programs["manager"].kill()
    cluster.start_manager()


@pytest.mark.gate
@pytest.mark.parametrize("mode", ["single-node", "multi-node"])
def test_it_grows_gives_way_and_grows_again(cluster, mode):
    log = cluster.folder / f"signals-{mode}"
    program = (f"trap 'echo $RANK >> {log}; exit 1' TERM; while :; do sleep 0.1; done")
    session = grown(cluster, "grows-" + mode, program, clusterMode=mode)
    assert wait_status(cluster.client(USER), session, "RUNNING")
    other = submit(cluster, "other-" + mode, "sleep 1")
    wait_status(cluster.client(USER), other, "TERMINATED")
    assert log.read_text() == "2\n", "the last kernel had time to save its work"
    wait_kernels(cluster, session, "RUNNING", "RUNNING", "RUNNING", "PENDING")
    shown = cluster.client(USER).get("/aliquot/v1/sessions/" + session).json
    assert shown["status"] == "RUNNING", shown


def test_the_manager_dies_while_it_gives_way(cluster):
    session = grown(cluster, "torn", "trap '' TERM; while :; do sleep 1; done")
    other = submit(cluster, "waits")
    wait_status(cluster.client(USER), other, "PENDING")
    kill_manager(cluster)
    wait_status(cluster.client(USER), other, "RUNNING")
    wait_kernels(cluster, session, "RUNNING", "RUNNING", "PENDING", "PENDING")


def test_an_end_of_the_first_kernel_ends_all(cluster):
    go = cluster.folder / "go"
    session = grown(cluster, "ends", f"if [ $RANK != 0 ]; then exec sleep 600; fi; "
                    f"while ! [ -e {go} ]; do sleep 0.1; done")
    go.touch()
    shown = wait_status(cluster.client(USER), session, "TERMINATED")
    assert shown["result"] == "SUCCESS"
    wait_kernels(cluster, session, "TERMINATED", "TERMINATED", "TERMINATED", "CANCELLED")


def test_a_lost_kernel_starts_again(cluster):
    """Two agents for one kernel each, one of which is silent for too long."""
    reply = cluster.client().send("PATCH", GROUP, {"agent_loss_policy": "terminate",
                                                   "agent_loss_grace_sec": 0})
    assert reply.status == 200, reply
    session = submit(cluster, "loses", clusterSize=2, clusterSizeMin=1, clusterMode="multi-node",
                     cpu=3, image="process")
    wait_kernels(cluster, session, "RUNNING", "PENDING")
    cluster.start_agent("silent")
    wait_kernels(cluster, session, "RUNNING", "RUNNING")
    cluster.programs["silent"].signal(signal.SIGSTOP)
    wait_kernels(cluster, session, "RUNNING", "PENDING")
    cluster.programs["silent"].signal(signal.SIGCONT)
    wait_kernels(cluster, session, "RUNNING", "RUNNING")
    shown = cluster.client(USER).get("/aliquot/v1/sessions/" + session).json
    assert shown["status"] == "RUNNING", shown
