# SPDX-License-Identifier: Apache-2.0
"""A user leaves many lists that wait for their turn, and the manager is stopped."""

import json
import socket

from client import USER
from cluster import WAITS, Cluster

LIST = "/aliquot/v1/sessions?limit=1000"


def test_a_manager_ends_while_lists_wait():
    with Cluster() as cluster:
        cluster.start_manager()
        user = cluster.client(USER)
        cluster.client().send("PATCH", f"/aliquot/v1/keypairs/{USER[0]}", {"rate_limit": 0})
        for i in range(100):
            body = {**json.loads(json.dumps(WAITS)), "name": f"waits{i}", "image": "sh",
                    "type": "batch", "startupCommand": "x" * 20000, "enqueueOnly": True}
            assert user.post("/session", body).status == 201
        for _ in range(40):  # all are read before the connection is found to be closed
            with socket.create_connection(cluster.address, timeout=10) as sock:
                sock.sendall(b"".join(user.request("GET", LIST) for _ in range(20)))
        cluster.stop()
