# SPDX-License-Identifier: Apache-2.0
"""The manager dies at each of the fault points of idle checks: the session is warned of and ended
all the same, and what was extended before the death is extended after it."""

import contextlib
import subprocess

import pytest

from cluster import GONE, Cluster, interactive, wait_for, wait_status
from test_fault import POINTS as OTHERS
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith("core.idle.")]
POLICY = "/aliquot/v1/keypair-policies/default"


def ask(client, method, path, body=None):
    """Until there is an answer."""
    def attempt():
        with contextlib.suppress(*GONE):
            return client.send(method, path, body, timeout=20)
    return wait_for(attempt, 60, f"an answer to {method} {path}")


def test_all_points_are_tried_somewhere():
    assert POINTS and not {*POINTS} & {*OTHERS}


@pytest.mark.parametrize("point", POINTS)
def test_point(point):
    with Cluster() as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        cluster.supervise()
        client = cluster.client()
        assert client.post("/config/set", {"key": "config/idle/warnings",
                                           "value": "6s,3s"}).status == 200
        assert client.send("PATCH", POLICY, {"idle_timeout_sec": 12}).status in (200, 204)
        session = client.post("/session", interactive("left")).json["sessionId"]
        wait_status(client, session, "RUNNING")
        ask(client, "POST", "/aliquot/v1/sessions/left/extend", {"duration": "15s"})
        with contextlib.suppress(*GONE):
            cluster.cli("exec", "left", "true")  # it is in use
        wait_for(mark.exists, 90, f"the manager to pass {point}")
        wait_for(cluster.is_serving, 60, "the manager")
        ended = wait_status(client, session, "TERMINATED", seconds=90)
        assert ended["reason"] == "idle-timeout", ended
        assert ask(client, "GET", "/aliquot/v1/audit").json == {"clean": True, "findings": []}
        cluster.stop()
