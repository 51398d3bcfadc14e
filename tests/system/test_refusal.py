# SPDX-License-Identifier: Apache-2.0
"""An agent refuses what it cannot give, and the user reads what it said.

The manager never asks an agent for a slot that the agent has not offered, so
somebody between them has to lie: a relay that adds to the agent's offer and to its devices.
"""

import json
import socket
import ssl
import subprocess
import threading

import pytest

from cluster import Cluster, batch, wait_for, wait_status
from ports import free_port
from test_scheduling import set_group

HEAD = 20  # of a frame: length, sequence number, acknowledgement


class Relay:
    """Passes frames between an agent and the manager, and adds a slot to the agent's offer."""

    def __init__(self, cluster, agent, slot, amount):
        self.state, self.manager = cluster.folder / agent, cluster.link.split(":")
        self.slot, self.amount, self.port = slot, amount, free_port()
        authority, own = cluster.folder / "manager" / "ca", cluster.folder / "relay"
        own.mkdir()
        (own / "names").write_text("subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
        for command in ("req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes "
                        "-keyout key -subj /CN=relay -out csr",
                        f"x509 -req -in csr -CA {authority}/ca.crt -CAkey {authority}/ca.key "
                        "-set_serial 77 -days 2 -extfile names -out crt"):
            subprocess.run(["openssl", *command.split()], cwd=own, check=True, capture_output=True)
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(own / "crt", own / "key")
        (self.state / "manager").write_text(f"127.0.0.1:{self.port}\n")
        self.listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                plain, _ = self.listener.accept()
            except OSError:
                return
            try:
                agent = self.context.wrap_socket(plain, server_side=True)
                manager = self.dial()
            except (OSError, ssl.SSLError):
                plain.close()
                continue
            for source, target, change in ((agent, manager, self.lie), (manager, agent, bytes)):
                threading.Thread(target=self.pump, args=(source, target, change),
                                 daemon=True).start()

    def dial(self):
        context = ssl.create_default_context(cafile=self.state / "ca.crt")
        context.load_cert_chain(self.state / "agent.crt", self.state / "agent.key")
        plain = socket.create_connection((self.manager[0], int(self.manager[1])))
        return context.wrap_socket(plain, server_hostname=self.manager[0])

    def pump(self, source, target, change):
        stream = source.makefile("rb")
        try:
            while len(head := stream.read(HEAD)) == HEAD:
                body = change(stream.read(int.from_bytes(head[:4], "big") - HEAD + 4))
                target.sendall((len(body) + HEAD - 4).to_bytes(4, "big") + head[4:] + body)
        except (OSError, ValueError):
            pass
        for end in (source, target):
            end.close()

    def lie(self, body):
        message = json.loads(body) if body else {}
        if "slots" not in message:
            return body
        message["slots"][self.slot] = ["count", self.amount]
        if "devices" in message:  # the heartbeat leaves them out when they are as before
            message["devices"].append({"id": "unreal", "slot": self.slot, "amount": self.amount})
        return json.dumps(message).encode()

    def close(self):
        self.listener.close()


@pytest.fixture
def cluster():
    with Cluster(ALIQUOT_RESOURCE_CPUS="4") as cluster:
        cluster.start_manager()
        cluster.join()
        relay = Relay(cluster, "agent", "cuda.shares", "2")
        cluster.start_agent()
        yield cluster
        relay.close()
        cluster.stop()


def test_unsupported_slot_reaches_the_user(cluster):
    client = cluster.client()
    set_group(cluster, handler_options={"start-sessions.max_retry_count": 1})
    config = {"resources": {"cpu": "1", "mem": "64m", "cuda.shares": "0.5"}}
    reply = client.post("/session", batch("unlucky", "echo never", config=config))
    assert reply.status == 201, reply
    shown = wait_status(client, "unlucky", "ERROR", "TERMINATED", "CANCELLED")
    assert (shown["status"], shown["reason"]) == ("ERROR", "failed-to-create"), shown

    said = ("Agent 'agent' could not start it: "
            "slot 'cuda.shares' is not supported here and 0.5 of it was asked for")
    why = client.get(f"/aliquot/v1/sessions/{shown['id']}/why").json
    assert why["text"] == said
    error = why["explanation"]["error"]
    assert (error["name"], error["field"]) == ("unsupported-resource", "cuda.shares"), error
    info = client.get(f"/session/{shown['id']}").json
    assert info["statusData"]["error"] == error, info  # what Backend.AI's clients read

    done = cluster.cli("session", "why", "unlucky")
    assert done.returncode == 0 and said in done.stdout.splitlines()[-1], done
    done = cluster.cli("session", "why", "unlucky", "-o", "json")
    assert json.loads(done.stdout)["text"] == said
    done = cluster.cli("run", "-r", "cpu=1", "-r", "mem=64m", "-r", "cuda.shares=0.5", "true")
    assert done.returncode != 0 and "aliquot session why" in done.stderr, done


def test_zero_of_an_unknown_slot_runs(cluster):
    client = cluster.client()
    config = {"resources": {"cpu": "1", "mem": "64m", "cuda.shares": "0"}}
    assert client.post("/session", batch("lucky", "true", config=config)).status == 201
    assert wait_status(client, "lucky", "ERROR", "TERMINATED")["result"] == "SUCCESS"
    wait_for(lambda: not cluster.live_sessions(), what="all to end")
