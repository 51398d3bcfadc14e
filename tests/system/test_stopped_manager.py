# SPDX-License-Identifier: Apache-2.0
"""A manager that has stopped (SIGSTOP, a hung machine) closes no connection: who follows it is
told, and when it goes on nobody was lost."""

import contextlib
import datetime
import json
import os
import re
import select
import signal
import subprocess
import time

import pytest

from cluster import Cluster, batch, wait_for, wait_status
from cut_relay import CutRelay
from storage import Stored
from world import BUILD


@pytest.fixture(scope="module")
def cluster():
    with Cluster(LC_ALL="C.UTF-8") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_audits()
        cluster.stop()


@pytest.fixture
def session(cluster):
    """Runs, and prints nothing after its first line."""
    client = cluster.client()
    made = client.post("/session", batch("quiet", "echo begun; exec sleep 1000", image="process"))
    assert made.status == 201, made
    wait_status(client, made.json["sessionId"], "RUNNING")
    yield "quiet"
    client.send("DELETE", "/session/quiet?forced=true")
    wait_status(client, made.json["sessionId"], "TERMINATED")


@contextlib.contextmanager
def stopped(cluster):
    manager = cluster.programs["manager"]
    manager.signal(signal.SIGSTOP)
    try:
        yield
    finally:
        manager.signal(signal.SIGCONT)


def wait_said(process, words, seconds=90):
    """Standard error until it has the words."""
    said, end = "", time.monotonic() + seconds
    while words not in said:
        left = end - time.monotonic()
        assert left > 0 and process.poll() is None, (said, process.poll())
        if select.select([process.stderr], [], [], min(left, 1))[0]:
            said += os.read(process.stderr.fileno(), 4096).decode()
    return said


@contextlib.contextmanager
def following(cluster, *words):
    process = subprocess.Popen([BUILD / "aliquot", *words], stdin=subprocess.DEVNULL,
                               env={**cluster.env, **cluster.cli_env()}, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def test_logs_say_that_they_hear_nothing(cluster, session):
    with following(cluster, "logs", "-f", session) as process:
        assert process.stdout.readline() == b"begun\n"
        with stopped(cluster):
            said = wait_said(process, "the manager does not answer")
            assert said.count("aliquot:") == 1 and "waiting for it" in said, said
        wait_said(process, "the manager answers again")
        cluster.client().send("DELETE", f"/session/{session}")
        process.wait(60)


def test_who_waits_for_an_end_is_told(cluster, session):
    with following(cluster, "session", "wait", session) as process:
        time.sleep(1)
        with stopped(cluster):
            wait_said(process, "the manager does not answer")
        cluster.client().send("DELETE", f"/session/{session}")
        process.wait(60)


def test_no_agent_is_lost_when_it_goes_on(cluster, session):
    """Agents were not silent while the manager did not listen; their sessions run on."""
    before = cluster.agent()
    with stopped(cluster):
        time.sleep(30)
    end = time.monotonic() + 15
    while time.monotonic() < end:
        agent = cluster.client().get("/aliquot/v1/agents/agent").json
        assert agent["status"] == "ALIVE" and agent["lost_at"] is None, agent
        time.sleep(0.2)
    assert cluster.agent()["status_changed"] == before["status_changed"]
    wait_for(lambda: cluster.agent()["connected"], 30, "the agent")
    assert cluster.client().get(f"/aliquot/v1/sessions/{session}").json["status"] == "RUNNING"


def heard_ago(cluster):
    agent = cluster.client().get("/aliquot/v1/agents/agent").json
    heard = datetime.datetime.fromisoformat(agent["last_contact"].replace("Z", "+00:00"))
    return (datetime.datetime.now(datetime.timezone.utc) - heard).total_seconds(), agent


def test_a_cut_cable_is_a_lost_agent():
    """Its bytes stop, nothing is closed: LOST within the default timeout and a heartbeat or two."""
    with Cluster(LC_ALL="C.UTF-8") as cluster, \
            contextlib.closing(CutRelay(int(cluster.link.rsplit(":", 1)[1]))) as relay:
        cluster.start_manager()
        cluster.start_agent(ALIQUOT_MANAGER_ADDRESS=f"127.0.0.1:{relay.port}")
        wait_for(lambda: heard_ago(cluster)[0] < 4, 30, "heartbeats")
        relay.hold = relay.carried
        wait_for(lambda: heard_ago(cluster)[1]["status"] == "LOST", 40, "the loss")
        ago, agent = heard_ago(cluster)
        assert 9 <= ago < 25 and agent["lost_at"], (ago, agent)
        listed = cluster.cli("agent", "ls").stdout
        assert "LOST" in listed and "HEARD" in listed, listed
        relay.hold = None
        wait_for(lambda: heard_ago(cluster)[1]["status"] == "ALIVE", 60, "it to be back")
        cluster.stop()


def test_nothing_is_placed_where_heartbeats_are_missing():
    """Long before an agent is LOST, and while its connection is there."""
    with Cluster(ALIQUOT_AGENTS_HEARTBEAT="1s", ALIQUOT_AGENTS_TIMEOUT="1h") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        cluster.programs["agent"].signal(signal.SIGSTOP)
        wait_for(lambda: heard_ago(cluster)[0] > 4, 30, "silence")
        made = client.post("/session", batch("late", "true", image="process")).json["sessionId"]
        time.sleep(2)
        assert client.get(f"/aliquot/v1/sessions/{made}").json["status"] == "PENDING"
        assert heard_ago(cluster)[1]["status"] == "ALIVE"
        cluster.programs["agent"].signal(signal.SIGCONT)
        wait_status(client, made, "TERMINATED")
        cluster.stop()


def contacts(cluster):
    """Findings of the doctor: of agents, and of storage hosts, proxies and web servers."""
    found = {f["id"]: f for f in json.loads(cluster.cli("doctor", "cluster", "-o", "json").stdout)}
    return found["cluster.agents"], found["cluster.services"]


def test_the_doctor_tells_when_each_was_heard_last():
    with Stored(ALIQUOT_AGENTS_HEARTBEAT="1s") as cluster:
        cluster.start_manager()
        agents, services = contacts(cluster)
        assert "no agent has joined" in agents["text"] and "has connected" in services["text"]
        cluster.start_agent()
        cluster.start_storage()
        agents, services = contacts(cluster)
        assert agents["level"] == "ok" and re.search(r"agent 'agent' heard \d s ago", agents["text"]), agents
        assert services["level"] == "ok", services
        assert re.search(r"storage '\w+' heard \d+ s ago", services["text"]), services
        for name in ("agent", "storage"):
            cluster.programs[name].signal(signal.SIGSTOP)
        wait_for(lambda: {f["level"] for f in contacts(cluster)} == {"warning"}, 60, "both to be away")
        agents, services = contacts(cluster)
        assert re.search(r"1 of 1 agents lost or not connected: agent 'agent' \((LOST|not connected)\) heard \d+ s ago",
                         agents["text"]), agents
        assert re.search(r"storage '\w+' \(not connected\) heard 1\d s ago", services["text"]), services
        assert "systemctl restart" in services["remedy"] and "agent ls" in agents["remedy"]
        for name in ("agent", "storage"):
            cluster.programs[name].signal(signal.SIGCONT)
        wait_for(lambda: {f["level"] for f in contacts(cluster)} == {"ok"}, 60, "both to be back")
        cluster.stop()
