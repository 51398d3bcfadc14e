# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's command line 26: histories of scheduling."""

import json

import pytest

from client import USER
from cluster import WAITS, Cluster, batch, wait_for, wait_status
from real_client import RealClient

VERSIONS = ("26.9.6",)


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        made.start_manager()
        made.start_agent()
        yield made
        made.stop()


def listed(bai, *words):
    """The JSON that it prints after the line that it is older than the manager."""
    text = bai.does(*words, "--json")
    return json.loads(text[min(at for at in map(text.find, ("[\n", "[]")) if at >= 0):])


@pytest.mark.backendai("scheduling-history session list")
def test_histories_of_sessions(cluster, bai):
    user, command = cluster.client(USER), ("scheduling-history", "session", "list")
    assert user.post("/session", batch("soon", "true")).status == 201
    ended = wait_status(user, "soon", "TERMINATED")["id"]
    assert user.post("/session", batch("never", "true", **WAITS)).status == 201
    waiting = user.get("/aliquot/v1/sessions/never").json["id"]
    steps = listed(bai, *command, "--session-id", ended, "--order", "ASC")
    assert (steps[0]["phase"], steps[0]["from_status"], steps[0]["to_status"]) == (
        "schedule-sessions", "PENDING", "SCHEDULED")
    assert steps[-1]["to_status"] == "TERMINATED" and {step["result"] for step in steps} == {"SUCCESS"}
    assert all(before["to_status"] == after["from_status"] for before, after in zip(steps, steps[1:]))
    [failed] = wait_for(lambda: listed(bai, *command, "--session-id", waiting), 30, "an attempt")
    assert (failed["result"], failed["error_code"]) == ("FAILURE", "no-capacity")
    assert failed["message"] and failed["attempts"] >= 1
    assert listed(bai, *command, "--result", "FAILURE", "--error-code", "capac", "--phase", "sched",
                  "--message", "cpu") == [failed]
    last = listed(bai, *command, "--to-status", "TERMINATED", "--from-status", "RUNNING",
                  "--from-status", "TERMINATING", "--limit", "1")
    assert last == steps[-1:]
    assert f"Session: {ended}" in bai.does(*command, "--group", "--order-by", "updated_at")
    assert "no-capacity" in bai.does(*command, "--session-id", waiting, "-v")
    assert "No session history" in bai.does(*command, "--result", "STALE")
    assert user.delete("/session/never").status == 200
    other = RealClient(bai.server, cluster.address, USER)
    assert "Unauthorized access" in other.fails(*command)
