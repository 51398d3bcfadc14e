# SPDX-License-Identifier: Apache-2.0
"""The agent is killed when it finds that a probed kernel is ready, before and after it has recorded
that: the manager hears of it from the next one, and the kernel runs on."""

import subprocess
import sys

import pytest

from cluster import wait_for
from world import ROOT

sys.path.insert(0, str(ROOT / "tests" / "system"))
from test_probe import Probed  # noqa: E402

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith("agent.health.")]


@pytest.mark.parametrize("point", POINTS)
def test_a_replica_becomes_ready(point):
    with Probed("process") as cluster:
        mark = cluster.folder / "killed"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.begin()
        cluster.supervise()
        session = cluster.create("replica", ready_after=0.5)
        wait_for(mark.exists, 60, "the kill")
        cluster.wait_health(session, "ready")
        marks = list((cluster.folder / "agent" / "kernels").glob("*/run/1/ready"))
        assert len(marks) == 1
        assert cluster.servers(session), "it was not restarted"
        assert cluster.client().get(f"/aliquot/v1/sessions/{session}").json["status"] == "RUNNING"
        cluster.remove(session)
        cluster.stop()
        cluster.relay.close()
