# SPDX-License-Identifier: Apache-2.0
"""The manager dies while it removes old sessions, at each of the fault points: what is left is
removed by the next run, no session is there in part, and what they held is counted once."""

import contextlib
import subprocess

import pytest

from cluster import ENDED, GONE, Cluster, batch, wait_for, wait_status
from test_fault import POINTS as OTHERS
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith(("core.retention.", "store.retention."))]
RETENTION = "/aliquot/v1/retention"
LATER = 40 * 86400


def ask(client, method, path, body=None):
    """Until there is an answer."""
    def attempt():
        with contextlib.suppress(*GONE):
            return client.send(method, path, body, timeout=20)
    return wait_for(attempt, 60, f"an answer to {method} {path}")


def run(client, what):
    assert ask(client, "POST", RETENTION + "/run", {"entities": ["sessions"]}).status == 202

    def is_over():
        reply = ask(client, "GET", RETENTION)
        shown = {item["entity"]: item for item in reply.json["items"]}
        return shown if not shown["sessions"]["running"] else None
    return wait_for(is_over, 60, what)


def test_all_points_are_tried_somewhere():
    assert POINTS and not {*POINTS} & {*OTHERS}


@pytest.mark.parametrize("point", POINTS)
def test_point(point):
    with Cluster(ALIQUOT_RETENTION_SESSIONS="30d") as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        for name in ("first", "second", "third", "latest"):
            session = client.post("/session", batch(name, "true")).json["sessionId"]
            wait_status(client, session, *ENDED)
        cluster.programs["agent"].stop()
        cluster.supervise()
        cluster.jump(wall=LATER)
        client.shift = LATER
        run(client, "the manager's death, or the end")
        wait_for(mark.exists, 60, f"the manager to pass {point}")
        shown = run(client, "the end of the second run")
        assert shown["sessions"]["rows"] == 1 and shown["sessions"]["last_run_ended_at"], shown
        assert shown["usage"]["rows"] == 3 * 2, shown  # cpu and mem of each that is gone
        sessions = ask(client, "GET", "/aliquot/v1/sessions?all=true").json
        assert [session["name"] for session in sessions["items"]] == ["latest"], sessions
        assert ask(client, "GET", "/aliquot/v1/audit").json == {"clean": True, "findings": []}
        cluster.stop()
        checked = cluster.run("aliquot-manager", "db", "check", "--state",
                              cluster.folder / "manager")
        assert checked.stdout == "nothing found\n", checked
