# SPDX-License-Identifier: Apache-2.0
"""The manager or an agent dies while kernels of one session on two nodes are told of each other:
they reach each other by name all the same, and nothing is left."""

import contextlib
import subprocess

import pytest

from cluster import ENDED, GONE, Cluster, batch, wait_for, wait_status
from runtimes import settings_of
from world import ROOT

ALL = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                     check=True).stdout.split()
POINTS = [point for point in ALL
          if point.startswith(("agent.session-network.", "core.network.", "core.session.network."))]

# 'sub1' joins later, on another node; 'main1' has its name by then
TALK = """
if [ $RANK != 0 ]; then
  exec python3 -c '
import socket
s = socket.create_server(("", 2222))
while True: s.accept()[0].close()'
fi
until python3 -c 'import socket; socket.create_connection(("sub1", 2222), 5)' 2>/dev/null; do
  sleep 0.2
done
echo reached
exec sleep 600
"""


def log_of(client, session):
    """"" while its agent is away."""
    with contextlib.suppress(*GONE):
        return client.get(f"/session/{session}/logs").json.get("result", {}).get("logs", "")
    return ""


@pytest.mark.parametrize("point", POINTS)
def test_point(point):
    with Cluster(**{**settings_of("crun"), "ALIQUOT_RESOURCE_CPUS": "1",
                    "ALIQUOT_AGENTS_HEARTBEAT": "1s", "ALIQUOT_NETWORK_ENABLED": "true"}) as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.supervise()
        cluster.start_manager()
        cluster.start_agent("agent")
        client = cluster.client()
        session = client.post("/session", {
            **batch("pair", TALK), "image": "host", "clusterSize": 2, "clusterSizeMin": 1,
            "clusterMode": "multi-node"}).json["sessionId"]
        wait_status(client, session, "RUNNING")
        cluster.start_agent("other", wait=False)
        wait_for(mark.exists, 60, f"a process to pass {point}")
        wait_for(lambda: "reached" in log_of(client, session), 90,
                 lambda: f"sub1 to be reached: {client.get('/aliquot/v1/sessions/' + session)}")
        client.send("DELETE", f"/session/{session}?forced=true")
        wait_status(client, session, *ENDED)
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()
