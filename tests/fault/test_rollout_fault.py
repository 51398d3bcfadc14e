# SPDX-License-Identifier: Apache-2.0
"""The manager dies at each of the fault points of rollouts: each ends as it would have ended without,
with as many replicas as are wanted, none of them started twice."""

import socket
import subprocess
import sys

import pytest

from cluster import Cluster, wait_for
from test_serving_fault import PATH, SERVER, ask, ready, show
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith("core.serving.rollout.")]
STRATEGIES = {
    "rolling": {"max_surge": 2},
    "blue-green": {"strategy": "blue-green", "keep": 1},
    "canary": {"strategy": "canary", "steps": [50], "step_interval": 1},
    "aborted": {"abort": {"failures": 2}},
}
# At which of them a rollout of the strategy passes.
PASSED = {
    "rolling": ("begins", "noted", "ended"),
    "blue-green": ("begins", "noted", "ready", "asked", "ended"),
    "canary": ("begins", "noted", "stepped", "ended"),
    "aborted": ("begins", "noted", "failed", "aborts", "ended"),
}
CASES = [(strategy, "core.serving.rollout." + point) for strategy, points in PASSED.items()
         for point in points]


def phase(client):
    return (show(client)["rollout"].get("state") or {}).get("phase")


def promote(client):
    """Until it is: a manager that dies meanwhile may have done it, or not."""
    def attempt():
        reply = ask(client, "POST", f"{PATH}/digits/rollout/promote")
        assert reply.status in (200, 409), reply
        return phase(client) in ("running", "done")
    wait_for(attempt, 60, lambda: f"the promotion: {show(client)}")


def test_all_points_are_tried():
    assert {*POINTS} - {point for _, point in CASES} == {"core.serving.rollout.promoted"}


@pytest.mark.parametrize("strategy, point, passage", [
    *((strategy, point, 1) for strategy, point in CASES),
    ("auto", "core.serving.rollout.promoted", 1),
    ("rolling", "core.serving.rollout.noted", 3), ("canary", "core.serving.rollout.noted", 3),
])
def test_killed(strategy, point, passage):
    settings = {"strategy": "blue-green", "auto_promote": True} if strategy == "auto" \
        else STRATEGIES[strategy]
    with Cluster(ALIQUOT_RESOURCE_CPUS="6", ALIQUOT_SESSIONS_KILL_GRACE="0.3s",
                 ALIQUOT_AGENTS_HEARTBEAT="1s", ALIQUOT_AGENTS_TIMEOUT="3s") as cluster:
        mark, ran, server = (cluster.folder / name for name in ("died", "ran", "server.py"))
        ran.touch()
        server.write_text(SERVER)
        cluster.env.update(ALIQUOT_FAULT=f"{point}:{passage}", ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        cluster.supervise()
        client = cluster.client()
        with socket.socket() as probe: # a port that is free
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = f"exec {sys.executable} {server} {port} {ran}"
        reply = ask(client, "POST", PATH, {
            "name": "digits", "image": "sh", "runtime": "custom", "command": command, "port": port,
            "health": {"interval": 1}, "replicas": 2, "resources": {"cpu": "1", "mem": "64m"},
            "limits": {"drain_timeout": 1}, "rollout": settings})
        assert reply.status == 201, reply
        wait_for(lambda: ready(client, 1, 2), 90, lambda: f"two replicas: {show(client)}")
        change = {"command": f"echo $ALIQUOT_REPLICA >>{ran}; exit 3"} if strategy == "aborted" \
            else {"note": "second"}
        if show(client)["revision"]["number"] == 1:
            reply = ask(client, "POST", f"{PATH}/digits/revisions", change)
            assert reply.status in (201, 409), reply
        if strategy == "blue-green":
            wait_for(lambda: phase(client) == "ready", 90, lambda: f"the group: {show(client)}")
            promote(client)
        # A request that a dying manager did not answer was repeated, and may have made two.
        goal, end = (1, "aborted") if strategy == "aborted" \
            else (show(client)["revision"]["number"], "done")
        assert goal > 1 or strategy == "aborted"
        wait_for(lambda: phase(client) == end and ready(client, goal, 2), 120,
                 lambda: f"the rollout: {show(client)}")
        wait_for(lambda: mark.exists(), 10, f"the manager has not passed {point}")
        assert show(client)["revision"]["number"] == goal
        numbers = ran.read_text().split()
        assert len(numbers) == len({*numbers}) >= 4, numbers # none was started twice
        if point == "core.serving.rollout.failed":  # each failure counts, once
            assert len(numbers) - 2 == 2, numbers
        cluster.check_audits()
        assert ask(client, "DELETE", f"{PATH}/digits").status in (204, 404)
        wait_for(lambda: show(client)["status"] == "ended", 90, lambda: f"the end: {show(client)}")
        cluster.check_audits()
        cluster.stop()
