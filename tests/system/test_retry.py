# SPDX-License-Identifier: Apache-2.0
"""Starts that fail again and again, and images that never come: tried again, counted across a kill
of the manager, and given up in the end."""

import socket
import threading

import pytest

from cluster import Cluster, batch, wait_for, wait_status
from ports import free_port
from test_refusal import Relay
from test_scheduling import kill_manager, set_group


@pytest.fixture
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="4") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


def results(client, session):
    """What became of each try: the scheduler's attempts, and what they say of the step."""
    history = client.get(f"/aliquot/v1/sessions/{session}/history").json
    return [(item["kind"], item["detail"]["attempts"], item["detail"]["step"])
            for item in history["scheduling"]
            if item["kind"] in ("need-retry", "expired", "give-up")]


def test_an_agent_refuses_again_and_again(cluster):
    """Killed when two tries have failed: the next manager goes on with the third."""
    cluster.join()
    relay = Relay(cluster, "agent", "cuda.shares", "2")
    cluster.start_agent()
    client = cluster.client()
    set_group(cluster, handler_options={"start-sessions.max_retry_count": 4})
    config = {"resources": {"cpu": "1", "mem": "64m", "cuda.shares": "0.5"}}
    made = client.post("/session", batch("unlucky", "echo never", config=config)).json["sessionId"]
    wait_for(lambda: len(results(client, made)) >= 2, 30, "two failures")
    kill_manager(cluster)
    wait_status(client, made, "ERROR")
    step = "start-sessions"
    assert results(client, made) == [("need-retry", n, step) for n in (1, 2, 3, 4)] + [
        ("give-up", 5, step)]
    shown = client.get(f"/aliquot/v1/sessions/{made}").json
    assert shown["reason"] == "failed-to-create"
    done = cluster.cli("session", "history", made)
    assert done.returncode == 0 and "give-up" in done.stdout, done
    relay.close()


class DeafRegistry:
    """Takes connections and never says a word."""

    def __init__(self):
        self.port = free_port()
        self.listener = socket.create_server(("127.0.0.1", self.port))
        self.taken = []
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                self.taken.append(self.listener.accept()[0])
            except OSError:
                return

    def close(self):
        self.listener.close()
        for one in self.taken:
            one.close()


def test_an_image_that_never_comes(cluster):
    """Each try takes as long as it may; killed during the second, which the next manager ends."""
    registry = DeafRegistry()
    cluster.start_agent(ALIQUOT_RUNTIME_DRIVER="auto",
                        ALIQUOT_IMAGE_INSECURE=f"127.0.0.1:{registry.port}")
    client = cluster.client()
    set_group(cluster, handler_options={
        "check-precondition.max_retry_count": 1, "check-precondition.timeout": 3,
        "start-sessions.max_retry_count": 1, "start-sessions.timeout": 3})
    made = client.post("/session", batch("patient", "echo never", image=(
        f"127.0.0.1:{registry.port}/deaf/image:1"))).json["sessionId"]
    wait_for(lambda: results(client, made), 60,
             lambda: client.get(f"/aliquot/v1/sessions/{made}").json)
    wait_status(client, made, "SCHEDULED", "PREPARING")
    kill_manager(cluster)
    wait_status(client, made, "TERMINATED", seconds=150)
    shown = client.get(f"/aliquot/v1/sessions/{made}").json
    assert shown["reason"] == "hang-timeout", shown
    kinds = [(kind, count) for kind, count, _ in results(client, made)]
    assert kinds == [("expired", 1), ("give-up", 2)], kinds
    registry.close()
