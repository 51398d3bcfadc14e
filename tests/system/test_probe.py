# SPDX-License-Identifier: Apache-2.0
"""Agents probe servers in sessions, as a manager of model services asks them to, and tell it what they
find: in containers with networks of their own, and in processes of the node."""

import contextlib
import os
import pathlib
import signal

import pytest

import model_server
from cluster import Cluster, batch, wait_for, wait_status
from link_relay import LinkRelay
from ports import free_port
from runtimes import settings_of

WAYS = ("process", "crun", "runc", "host")
PROBE = {"probe_path": "/health", "probe_interval_usec": 200_000, "probe_retries": 3}


class Probed(Cluster):
    """The relay adds the probe to commands for sessions, as core does for replicas of services.
    'way' is "process", "crun", "runc" or "host": containers by crun in the node's network."""

    def __init__(self, way):
        super().__init__(**settings_of("crun" if way == "host" else way),
                         ALIQUOT_NETWORK_ENABLED="false" if way == "process" else "true",
                         ALIQUOT_NETWORK_HOST="true" if way == "host" else "false",
                         ALIQUOT_IMAGE_ALLOW="* sh oci:/", ALIQUOT_IMAGE_KEEP_FREE="0")
        self.way, self.probes = way, {}

    def begin(self):
        self.start_manager()
        self.relay = LinkRelay(self, kinds=("kernel.health", "kernel.status"), change=self.change)
        self.start_agent(ALIQUOT_MANAGER_ADDRESS=self.relay.address)
        self.image = "sh" if self.way == "process" else model_server.image(self)
        for path, change in (("resource-groups", {"networks": ["private", "host"]}),
                             ("keypair-policies", {"host_network": True})):
            reply = self.client().send("PATCH", f"/aliquot/v1/{path}/default", change)
            assert reply.status == 200, reply

    def change(self, message):
        if message["type"] == "kernel.create":
            message.update(self.probes.get(message.get("session_name"), {}))
        return message

    def create(self, name, probe=None, command=None, mem="256m", **options):
        """A session with a server, which is probed; its id. 'options' are openai_server.py's."""
        port = model_server.PORT if self.way in ("crun", "runc") else free_port()
        self.probes[name] = {**PROBE, "probe_port": port, **(probe or {})}
        make = model_server.program_command if self.way == "process" else model_server.command
        body = {**batch(name, command or make(port=port, **options)), "image": self.image,
                "config": {"resources": {"cpu": "1", "mem": mem}},
                **({"network": "host"} if self.way == "host" else {})}
        reply = self.client().post("/session", body)
        assert reply.status == 201, reply
        return reply.json["sessionId"]

    def kernel(self, session):
        return self.client().get(f"/aliquot/v1/sessions/{session}").json["kernels"][0]["id"]

    def health(self, session):
        """[(state, text)] that the manager was sent, in order."""
        kernel = self.kernel(session)
        return [(said["state"], said.get("text")) for said in self.relay.heard
                if said["type"] == "kernel.health" and said["kernel_id"] == kernel]

    def wait_health(self, session, *wanted):
        """All that was sent once the last is one of these states."""
        return wait_for(lambda: (said := self.health(session)) and said[-1][0] in wanted and said, 60,
                        lambda: f"{wanted} after {self.health(session)}")

    def servers(self, session):
        """Its processes, as the node numbers them."""
        kernel, found = self.kernel(session).encode(), []
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if b"openai_server.py" in (process / "cmdline").read_bytes() \
                        and kernel in (process / "environ").read_bytes():
                    found.append(int(process.name))
        return found

    def remove(self, session):
        self.client().send("DELETE", f"/session/{session}?forced=true")
        wait_status(self.client(), session, "TERMINATED", "CANCELLED", "ERROR")


@pytest.fixture(scope="module")
def cluster(request):
    with Probed(request.param) as cluster:
        cluster.begin()
        yield cluster
        cluster.stop()
        cluster.relay.close()


def by_ways(*ways):
    return pytest.mark.parametrize("cluster", ways, indirect=True, scope="module")


@by_ways(pytest.param("crun", marks=pytest.mark.gate), "process", "runc", "host")
def test_ready_once_it_answers(cluster):
    session = cluster.create("loads", listen_after=0.5, ready_after=1.5)
    said = cluster.wait_health(session, "ready")
    port = cluster.probes["loads"]["probe_port"]
    assert said[0] == ("starting", f"nobody listens on port {port}")
    assert ("starting", "GET /health: 503 instead of 200") in said
    assert said[-1] == ("ready", None)
    cluster.remove(session)


@by_ways(*WAYS)
def test_without_a_path_a_connection_will_do(cluster):
    session = cluster.create("listens", {"probe_path": None}, ready_after=1000)
    said = cluster.wait_health(session, "ready")
    assert said[-1] == ("ready", None)
    cluster.remove(session)


@by_ways(*WAYS)
def test_unhealthy_and_back(cluster):
    """The server is stopped, so that it listens and does not answer."""
    session = cluster.create("hangs", {"probe_timeout_usec": 200_000})
    cluster.wait_health(session, "ready")
    servers = cluster.servers(session)
    assert servers
    for pid in servers:
        os.kill(pid, signal.SIGSTOP)
    said = cluster.wait_health(session, "unhealthy")
    assert said[-1][1] == "GET /health: no answer within 0.2 s"
    for pid in servers:
        os.kill(pid, signal.SIGCONT)
    assert cluster.wait_health(session, "ready")[-1] == ("ready", None)
    cluster.remove(session)


@by_ways(*WAYS)
def test_an_agent_and_a_manager_that_restart(cluster):
    session = cluster.create("stays")
    cluster.wait_health(session, "ready")
    for name in ("agent", "manager"):
        count = len(cluster.health(session))
        cluster.programs[name].kill()
        cluster.programs[name].start()
        wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
        wait_for(lambda: len(cluster.health(session)) > count, 30, "a report")
        assert {state for state, _ in cluster.health(session)[count:]} == {"ready"}
    cluster.remove(session)


@by_ways(*WAYS)
def test_the_last_lines_of_one_that_fails(cluster):
    session = cluster.create("fails", fail_after=1, listen_after=100)
    kernel = cluster.kernel(session)
    wait_status(cluster.client(), session, "TERMINATED", "ERROR")
    said = [said for said in cluster.relay.heard
            if said["type"] == "kernel.status" and said["kernel_id"] == kernel]
    lines = said[-1]["last_lines"].split("\n")
    assert lines[0] == "loading tiny"
    assert lines[-1] == "RuntimeError: the weights do not fit into the memory"
