# SPDX-License-Identifier: Apache-2.0
"""Manager or agent die while metrics of replicas are watched: they are read again, and the service is
scaled by them."""

import json
import socket
import subprocess
import sys

import pytest

from cluster import Cluster, wait_for
from test_fault import POINTS as OTHERS
from test_serving_fault import PATH, ask, show
from world import ROOT

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith(("agent.metrics.", "serving.metrics."))]
# Its page has what a file has; replicas of a node without networks share a port.
SERVER = """import http.server, socket, sys
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"app_waiting " + open(sys.argv[2], "rb").read() + b"\\n")
    def log_message(self, *_):
        pass
class Server(http.server.ThreadingHTTPServer):
    def server_bind(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        super().server_bind()
Server(("127.0.0.1", int(sys.argv[1])), Page).serve_forever()
"""


def test_all_points_are_tried():
    assert len(POINTS) == 4 and not {*POINTS} & {*OTHERS}


@pytest.mark.parametrize("point, passage", [(point, passage) for point in POINTS for passage in (1, 3)])
def test_killed(point, passage):
    with Cluster(ALIQUOT_RESOURCE_CPUS="4", ALIQUOT_SESSIONS_KILL_GRACE="0.3s",
                 ALIQUOT_AGENTS_HEARTBEAT="1s", ALIQUOT_AGENTS_TIMEOUT="3s") as cluster:
        mark, value, server = (cluster.folder / name for name in ("died", "value", "server.py"))
        value.write_text("1")
        server.write_text(SERVER)
        cluster.env.update(ALIQUOT_FAULT=f"{point}:{passage}", ALIQUOT_FAULT_ONCE=str(mark))
        cluster.start_manager()
        cluster.start_agent()
        cluster.supervise()
        client = cluster.client()
        with socket.socket() as probe:  # a port that is free
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        reply = ask(client, "POST", PATH, {
            "name": "digits", "image": "sh", "runtime": "custom", "port": port,
            "command": f"exec {sys.executable} {server} {port} {value}", "health": {"interval": 1},
            "replicas": "1-3", "resources": {"cpu": "1", "mem": "64m"}, "limits": {"drain_timeout": 1},
            "scaling": {"window": 1, "rules": [{"signal": "metric", "source": "inference_framework",
                                                "name": "app_waiting", "target": 2}]}})
        assert reply.status == 201, reply
        for waiting, wanted in (("4", 2), ("0.1", 1)):
            value.write_text(waiting)
            wait_for(lambda wanted=wanted: show(client)["replicas"]["wanted"] >= wanted
                     if wanted > 1 else show(client)["replicas"]["wanted"] == 1, 90,
                     lambda wanted=wanted: f"{wanted} replicas: {json.dumps(show(client))}")
        wait_for(mark.exists, 30, f"a process to pass {point}")
        value.write_text("4")  # also after the death, whenever it was
        wait_for(lambda: show(client)["replicas"]["wanted"] > 1, 90,
                 lambda: f"more replicas: {json.dumps(show(client))}")
        assert show(client)["scaling_problem"] is None
        assert ask(client, "DELETE", f"{PATH}/digits", {"force": True}).status in (204, 404)
        wait_for(lambda: show(client)["status"] == "ended", 90, lambda: f"the end: {show(client)}")
        cluster.check_audits()
        cluster.stop()
