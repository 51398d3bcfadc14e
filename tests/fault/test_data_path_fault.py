# SPDX-License-Identifier: Apache-2.0
"""Manager, agent or proxy is killed at each step of a connection to an app: the next one finds its way,
and no connection is left when all have ended."""

import contextlib
import http.client
import subprocess
import sys

import pytest

from cluster import running, wait_for
from world import ROOT

sys.path.insert(0, str(ROOT / "tests" / "system"))
from test_data_path import Direct  # noqa: E402
from test_proxy import place  # noqa: E402

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith(("agent.data.", "data."))]


def asks(cluster, box, cookie):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return cluster.ask("GET", place(box) + "/", cookie)[0] == 200
    return False


@pytest.mark.parametrize("point", POINTS)
def test_a_connection(point):
    with Direct("tls" if point == "agent.data.streamed" else "socket") as cluster:
        mark = cluster.folder / "killed"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.begin()
        with running(cluster.client(), "apps", image=cluster.image) as box:
            cookie = cluster.cookie("apps", "web")
            cluster.supervise()
            wait_for(lambda: asks(cluster, box, cookie), 90, "an answer")
            wait_for(mark.exists, 30, "the kill")
            wait_for(lambda: asks(cluster, box, cookie), 90, "another")
        cluster.stop()
