# SPDX-License-Identifier: Apache-2.0
"""The manager dies at each of the fault points of model services: a service has as many replicas as
are wanted, none of them twice, and none when it has ended."""

import contextlib
import socket
import subprocess
import sys

import pytest

from cluster import GONE, Cluster, wait_for
from test_fault import POINTS as OTHERS
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith("core.serving.")
          # those of test_rollout_fault.py and test_serving_share_fault.py
          and not point.startswith(("core.serving.rollout.", "core.serving.share."))]
PATH = "/aliquot/v1/model-services"
# Two replicas of a node without networks share a port.
SERVER = """import os, socket, sys
with open(sys.argv[2], "a") as ran:
    ran.write(os.environ["ALIQUOT_REPLICA"] + "\\n")
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("127.0.0.1", int(sys.argv[1])))
server.listen()
open_ones = []
while True:  # a probe takes a connection that is closed at once for a failure
    open_ones = [*open_ones[-20:], server.accept()[0]]
"""


def ask(client, method, path, body=None):
    """Until there is an answer."""
    def attempt():
        with contextlib.suppress(*GONE):
            reply = client.send(method, path, body, timeout=20)
            return reply if reply.status != 503 else None
    return wait_for(attempt, 60, f"an answer to {method} {path}")


def show(client, name="digits"):
    reply = ask(client, "GET", f"{PATH}/{name}")
    assert reply.status == 200, reply
    return reply.json


def ready(client, revision, count):
    """So many replicas are ready, all of one revision, and there are no others."""
    shown = show(client)
    replicas = shown["replica_list"]
    return len(replicas) == count and all(
        replica["revision"] == revision and replica["health"] == "ready" and not replica["draining"]
        for replica in replicas)


def test_all_points_are_tried_somewhere():
    assert POINTS and not {*POINTS} & {*OTHERS}


@pytest.mark.parametrize("point, passage", [
    *((point, 1) for point in POINTS), ("core.serving.proposed", 2), ("core.serving.proposed", 3),
    ("core.serving.replica.asked", 2), ("core.serving.replica.asked", 3),
    ("core.serving.ready.proposed", 2), ("core.serving.ready.proposed", 3),
    ("core.serving.drain.proposed", 2), ("core.serving.replica.ending", 2),
])
def test_killed(point, passage):
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_SESSIONS_KILL_GRACE="0.3s",
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
            "limits": {"drain_timeout": 1}})
        assert reply.status == 201 or (reply.status == 409 and "already" in str(reply.json)), reply
        wait_for(lambda: ready(client, 1, 2), 90, lambda: f"two replicas: {show(client)}")
        reply = ask(client, "POST", f"{PATH}/digits/tokens", {"label": "ann"})
        assert reply.status == 201, reply
        replica = show(client)["replica_list"][0]["session"]
        assert ask(client, "PATCH", f"{PATH}/digits/replicas/{replica}", {"ratio": 0.5}).status == 200
        assert show(client)["replica_list"][0]["ratio"] == 0.5
        if show(client)["revision"]["number"] == 1:
            reply = ask(client, "POST", f"{PATH}/digits/revisions", {"note": "second"})
            assert reply.status in (201, 409), reply
        goal = show(client)["revision"]["number"]
        wait_for(lambda: ready(client, goal, 2), 120, lambda: f"the rollout: {show(client)}")
        if point == "core.serving.remove.proposed":  # a given one, as Backend.AI's clients end it
            shown = show(client)
            route = f"/services/{shown['id']}/routings/{shown['replica_list'][0]['session']}"
            assert ask(client, "DELETE", route).status in (200, 404)
        else:
            assert ask(client, "PATCH", f"{PATH}/digits", {"replicas": 1}).status in (200, 409)
        wait_for(lambda: ready(client, goal, 1), 90, lambda: f"one replica: {show(client)}")
        cluster.check_audits()
        assert ask(client, "DELETE", f"{PATH}/digits").status in (204, 404)
        wait_for(lambda: show(client)["status"] == "ended", 90, lambda: f"the end: {show(client)}")
        wait_for(lambda: mark.exists(), 10, f"the manager has not passed {point}")
        numbers = ran.read_text().split()
        # None was started twice. One may have ended before it began to run: they share a port, so
        # that another replica may have answered its probe.
        assert len(numbers) == len({*numbers}) >= 3, numbers
        live = [session["name"] for session in client.get("/aliquot/v1/sessions").json["items"]
                if session["status"] not in ("TERMINATED", "ERROR", "CANCELLED")]
        assert not live, live
        cluster.check_audits()
        cluster.stop()
