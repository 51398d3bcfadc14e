# SPDX-License-Identifier: Apache-2.0
"""Containers that use a GPU past their part of it: noticed, told everywhere, stopped if so set."""

import os
import signal
import time

import pytest

import containers
from client import sse_events
from cluster import parent_of, wait_for
from gpu_cluster import GpuCluster, body_of, cheat_body_of
from runtimes import Session
from world import processes_of


def made(**settings):
    if why := containers.why_not("crun"):
        pytest.skip(why)
    return GpuCluster(**settings)


@pytest.fixture(scope="module")
def cluster():
    with made() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def begin(cluster, command, amount="0.5", body_of=body_of):
    return Session(cluster, 'exec python3 -c "$MAIN"', **body_of(amount, command))


# Allocates and gives back all the time, which a look at the wrong moment takes for a cheat.
def honest(cluster):
    session = begin(cluster, """
must(alloc(1200))
pointer = ctypes.c_uint64()
say("mine")
while True:
    must(cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(500 << 20)))
    must(cuda.cuMemFree_v2(pointer))
    time.sleep(0.002)
""")
    session.wait_log("mine")
    return session


def bypass(cluster, way="elf-walk"):
    """A program of a container that gets memory past the library."""
    return begin(cluster, f"""
say("begins")
done = cheat("{way}")
say(done.stdout, done.returncode)
time.sleep(600)
""", body_of=cheat_body_of)


def kernel_of(session):
    return session.client.get(f"/aliquot/v1/sessions/{session.id}").json["kernels"][0]


def processes(cluster, name="aliquot-gpu"):
    """Children of the agent that watch."""
    return [pid for pid, command in processes_of(cluster.folder).items()
            if f"{name} watch" in command and parent_of(pid) == cluster.programs["agent"].pid]


@pytest.mark.gate
def test_reported(cluster):
    """Log, session, agent and event stream say so; a neighbour is not meant, nobody is ended."""
    neighbour = honest(cluster)
    sock, file, _ = cluster.client().stream("/events/session?sessionName=*", timeout=60)
    with sock:
        cheat = bypass(cluster)
        shown = wait_for(lambda: kernel_of(cheat)["gpu_misuse"], 60, "the cheat to be noticed")
        assert "uses GPU-513a5f0e past its limits" in shown, shown
        event = next(data for name, data in sse_events(file) if name == "kernel_gpu_misuse")
    assert event["reason"] == "gpu-misuse" and event["misuse"] == shown
    assert shown in cluster.agent()["gpu_misuse"]
    for words in (("session", "info", cheat.id), ("agent", "info", "agent")):
        assert shown in cluster.cli(*words).stdout
    assert kernel_of(neighbour)["gpu_misuse"] is None
    assert cluster.card.show()[0]["limits"] == {}  # this driver is too old
    for session in (neighbour, cheat):
        assert session.wait("RUNNING")["status"] == "RUNNING"
        session.end(forced=True)
        session.wait()
    assert "A GPU was misused" in cheat.client.get(f"/aliquot/v1/sessions/{cheat.id}/why").json["text"]


def test_nobody_looks_without_slices(cluster):
    assert wait_for(lambda: not processes(cluster), 60, "the watching process to end")
    session = begin(cluster, "say(1)\ntime.sleep(600)")
    session.wait_log("1")
    assert len(wait_for(lambda: processes(cluster), 60, "it to watch")) == 1
    session.end(forced=True)
    session.wait()
    assert wait_for(lambda: not processes(cluster), 60, "the watching process to end")


def test_watcher_that_dies_is_started_again(cluster):
    session = honest(cluster)
    [first] = wait_for(lambda: processes(cluster), 60, "it to watch")
    os.kill(first, signal.SIGTERM)
    wait_for(lambda: first not in processes(cluster), 60, "it to be gone")
    cheat = bypass(cluster)
    wait_for(lambda: kernel_of(cheat)["gpu_misuse"], 60, "the cheat to be noticed")
    for one in (session, cheat):
        one.end(forced=True)
        one.wait()


def test_a_new_manager_hears_of_it(cluster):
    cheat = bypass(cluster)
    shown = wait_for(lambda: kernel_of(cheat)["gpu_misuse"], 60, "the cheat to be noticed")
    cluster.programs["manager"].kill()
    cluster.start_manager()
    wait_for(lambda: kernel_of(cheat)["gpu_misuse"] == shown, 30, "the new manager to know")
    cheat.end(forced=True)
    cheat.wait()


def limits_of(cluster):
    """MiB that the driver is told to keep to, by kernel."""
    return {path.split("/")[-1]: amount >> 20
            for path, amount in cluster.card.show()[0]["limits"].items()}


def test_driver_that_limits_memory_is_told():
    """Each container's limit, 64 MiB behind the library's, and what it becomes."""
    with made(version="13.4") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        sessions = [begin(cluster, "say(info()[1])\ntime.sleep(600)", amount)
                    for amount in ("0.5", "1")]
        for session in sessions:
            session.wait_log("0")
        first, second = [kernel_of(session)["id"] for session in sessions]
        wait_for(lambda: limits_of(cluster) == {first: 2048 + 64, second: 4096 + 64}, 60,
                 lambda: limits_of(cluster))
        cluster.write_cards("2G")
        wait_for(lambda: limits_of(cluster) == {first: 1024 + 64, second: 2048 + 64}, 60,
                 lambda: limits_of(cluster))
        for session in sessions:
            session.end(forced=True)
            session.wait()
        cluster.check_nothing_left()
        cluster.stop()


@pytest.mark.gate
def test_stopped():
    with made(ALIQUOT_GPU_MISUSE="stop") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        neighbour, cheat = honest(cluster), bypass(cluster)
        shown = cheat.wait()
        assert (shown["status"], shown["reason"], shown["result"]) == (
            "TERMINATED", "gpu-misuse", "FAILURE")
        text = cheat.client.get(f"/aliquot/v1/sessions/{cheat.id}/why").json["text"]
        assert "A GPU was misused: process" in text, text
        time.sleep(3)
        assert kernel_of(neighbour)["gpu_misuse"] is None
        neighbour.end(forced=True)
        neighbour.wait()
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()
