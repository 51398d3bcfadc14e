# SPDX-License-Identifier: Apache-2.0
"""The manager dies at each of the fault points of bookings: what was acknowledged is kept, made once,
and every booking and session of it comes to the end that it would have come to without."""

import contextlib
import subprocess

import pytest

from cluster import GONE, Cluster, batch, wait_for, wait_status
from test_fault import POINTS as OTHERS
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith(("core.booking.", "booking."))]
PATH = "/aliquot/v1/reservations"


def ask(client, method, path, body=None):
    """Until there is an answer."""
    def attempt():
        with contextlib.suppress(*GONE):
            reply = client.send(method, path, body, timeout=20)
            return reply if reply.status != 503 else None
    return wait_for(attempt, 60, f"an answer to {method} {path}")


def reserve(client, name, **more):
    """409: it was made before the manager died, or its agents have not come back yet."""
    def attempt():
        reply = ask(client, "POST", PATH, {"name": name, "for": ["project:default"], **more})
        if reply.status == 409 and "have room" in str(reply.json):
            return None
        return reply
    reply = wait_for(attempt, 60, f"room for {name}")
    assert reply.status == 201 or (reply.status == 409 and "already called" in str(reply.json)), reply


def show(client, name):
    reply = ask(client, "GET", f"{PATH}/{name}")
    assert reply.status == 200, reply
    return reply.json


def wait_state(client, name, state):
    wait_for(lambda: show(client, name)["state"] == state, 90,
             lambda: f"{name} to become {state}: {show(client, name)}")


def submit(client, name, command, **more):
    reply = ask(client, "POST", "/session", batch(name, command, reuse=True, **more))
    assert reply.status in (200, 201), reply


def test_all_points_are_tried_somewhere():
    assert POINTS and not {*POINTS} & {*OTHERS}


@pytest.mark.parametrize("point, passage", [
    *((point, 1) for point in POINTS), ("core.booking.proposed", 2), ("core.booking.proposed", 4),
    ("core.booking.finish.proposed", 2), ("booking.saved", 2), ("booking.saved", 3),
])
def test_killed(point, passage):
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_SESSIONS_KILL_GRACE="0.3s",
                 ALIQUOT_AGENTS_HEARTBEAT="1s", ALIQUOT_AGENTS_TIMEOUT="3s") as cluster:
        mark, ran = cluster.folder / "died", cluster.folder / "ran"
        ran.touch()
        cluster.env.update(ALIQUOT_FAULT=f"{point}:{passage}", ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        cluster.start_agent("other")
        cluster.supervise()
        client = cluster.client()
        reserve(client, "exam", start="40s", duration="60s", resources={"cpu": "1"}, agents=["agent"])
        reserve(client, "quiet", duration="1h", release_unused="60s", resources={"cpu": "1"})
        reserve(client, "moved", start="1h", duration="1h", resources={"cpu": "3"})
        submit(client, "inside", f"echo inside >> {ran}; sleep 1000", reservation="exam")
        submit(client, "never", f"echo never >> {ran}", reservation="moved")
        taken = show(client, "moved")["agents"]
        ask(client, "POST", f"/aliquot/v1/agents/{taken[0]}/drain", {"reason": "disks"})
        wait_for(lambda: show(client, "moved")["agents"] != taken, 60, "another agent")
        ask(client, "POST", f"/aliquot/v1/agents/{taken[0]}/undrain")
        cluster.jump(wall=45)
        wait_status(client, "inside", "RUNNING")
        assert ask(client, "POST", f"{PATH}/moved/cancel").status in (204, 404)
        wait_state(client, "moved", "canceled")
        assert wait_status(client, "never", "CANCELLED")["reason"] == "reservation-canceled"
        cluster.jump(wall=110)
        wait_state(client, "exam", "ended")
        wait_state(client, "quiet", "released")
        wait_status(client, "inside", "TERMINATED")
        assert mark.exists(), f"the manager has not passed {point}"
        assert ran.read_text().split() == ["inside"]
        names = [r["name"] for r in client.get(PATH + "?all=true").json["items"]]
        assert sorted(names) == ["exam", "moved", "quiet"], names
        cluster.check_audits()
        cluster.stop()
