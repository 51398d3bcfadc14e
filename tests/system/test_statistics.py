# SPDX-License-Identifier: Apache-2.0
"""What sessions, devices and nodes use: measured, shown, kept."""

import json
import os

import pytest

from client import USER
from cluster import Cluster, wait_for, wait_status
from runtimes import Session, settings_of
from test_accelerators import A, TWO_GPUS

pytestmark = [pytest.mark.engines, pytest.mark.gate]

QUICK = {"ALIQUOT_STATISTICS_INTERVAL": "0.2s"}
BUSY = "i=0; while :; do i=$((i + 1)); done"

KERNEL = """query ($id: UUID!) { compute_session(id: $id) {
    containers { id live_stat last_stat } } }"""
AGENT = """query ($id: String!) { agent(agent_id: $id) {
    live_stat cpu_cur_pct mem_cur_bytes } }"""
FIELDS = {"current", "capacity", "pct", "unit_hint"}


def kernel_stats(client, session):
    shown = client.gql(KERNEL, {"id": session}).json["data"]["compute_session"]["containers"][0]
    return {name: json.loads(shown[name]) if shown[name] else None
            for name in ("live_stat", "last_stat")}


def agent_stats(client, agent="agent"):
    shown = client.gql(AGENT, {"id": agent}).json["data"]["agent"]
    return {**shown, "live_stat": json.loads(shown["live_stat"])}


def measured(client, session, *keys, condition=lambda stats: True):
    """live_stat of the first kernel, once it has these metrics."""
    def look():
        stats = kernel_stats(client, session)["live_stat"]
        return stats if stats and stats.keys() >= set(keys) and condition(stats) else None
    return wait_for(look, 60, lambda: f"{keys}: {kernel_stats(client, session)}")


@pytest.fixture(scope="module")
def gpus():
    """An agent with mock GPUs, whose sessions are processes of the node."""
    with Cluster(ALIQUOT_RESOURCE_CPUS="8", ALIQUOT_SESSIONS_KILL_GRACE="0.3s",
                 **QUICK) as cluster:
        file = cluster.folder / "mock-accelerator.toml"
        file.write_text(TWO_GPUS)
        cluster.start_manager()
        cluster.start_agent(ALIQUOT_ACCELERATORS_MOCK=str(file))
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def begin(cluster, name, command=BUSY, **slots):
    body = {"name": name, "image": "sh", "type": "batch", "startupCommand": command,
            "enqueueOnly": True, "config": {"resources": {"cpu": "1", "mem": "64m", **slots}}}
    reply = cluster.client().post("/session", body)
    assert reply.status == 201, reply
    session = reply.json["sessionId"]
    wait_status(cluster.client(), session, "RUNNING")
    return session


def end(cluster, session):
    cluster.client().delete(f"/session/{session}?forced=true")
    wait_status(cluster.client(), session, "TERMINATED")


def test_kernel(gpus):
    """A busy process has used its core, and what it used is kept when it has ended."""
    client = gpus.client()
    session = begin(gpus, "busy", **{"cuda.shares": "1"})
    stats = measured(client, session, "cpu_util", "cpu_used", "mem", "cuda_mem", "cuda_util",
                     condition=lambda s: float(s["cpu_util"]["stats.max"]) > 100
                     and s["cpu_util"]["current"] != "0")
    assert all(FIELDS <= metric.keys() for metric in stats.values()), stats
    assert stats["cpu_util"]["unit_hint"] == "percent" and stats["cpu_util"]["capacity"] == "1000"
    assert stats["mem"]["capacity"] == str(64 << 20) and stats["mem"]["unit_hint"] == "bytes"
    assert float(stats["cpu_used"]["current"]) > 0 and stats["cpu_used"]["capacity"] is None
    assert stats["cuda_mem"]["capacity"] == str(2 << 30) and "stats.max" in stats["cuda_mem"]
    assert kernel_stats(client, session)["last_stat"] is None
    end(gpus, session)
    after = kernel_stats(client, session)
    assert after["last_stat"] == after["live_stat"]
    assert float(after["last_stat"]["cpu_util"]["stats.max"]) > 100


def test_agent(gpus):
    def look():
        stats = agent_stats(gpus.client())
        return stats if "cuda_mem" in stats["live_stat"]["devices"] and stats["mem_cur_bytes"] else None
    stats = wait_for(look, 60, "statistics of the agent")
    node, devices = stats["live_stat"]["node"], stats["live_stat"]["devices"]
    assert {"cpu_util", "mem", "disk", "net_rx", "cuda_mem", "cuda_util", "cuda_power",
            "cuda_temperature"} <= node.keys() | {"disk", "net_rx"}
    assert devices["cpu_util"].keys() >= {str(core) for core in os.sched_getaffinity(0)}
    assert devices["mem"].keys() == {"root"} and A in devices["cuda_util"]
    assert devices["cuda_util"][A]["capacity"] == "100"
    assert node["cuda_mem"]["capacity"] == str(4 << 30)
    assert float(node["mem"]["current"]) <= float(node["mem"]["capacity"])
    for metric in [*node.values(), *(m for values in devices.values() for m in values.values())]:
        if metric["unit_hint"] == "bytes":  # clients of Backend.AI call int() on these
            assert metric["current"].isdecimal() and metric["capacity"].isdecimal(), metric


def test_restart_of_the_manager(gpus):
    """Sums go on where they were."""
    client = gpus.client()
    session = begin(gpus, "lasting")
    assert gpus.client(USER).get("/aliquot/v1/sessions").status == 200
    before = measured(client, session, "cpu_util",
                      condition=lambda s: float(s["cpu_util"]["stats.max"]) > 100)
    gpus.programs["manager"].stop()
    gpus.programs["manager"].may_end = False
    gpus.start_manager()
    after = measured(client, session, "cpu_util")
    assert float(after["cpu_util"]["stats.max"]) >= float(before["cpu_util"]["stats.max"])
    used = client.gql(f'{{ keypair(access_key: "{USER[0]}") {{ last_used }} }}').json
    assert used["data"]["keypair"]["last_used"], "written before the manager stopped"
    end(gpus, session)


# ---- what people and programs ask for ----

def test_rest(gpus):
    client = gpus.client()
    session = begin(gpus, "shown", **{"cuda.shares": "0.5"})
    measured(client, session, "cpu_util", "cuda_mem")
    shown = client.get(f"/aliquot/v1/sessions/{session}/statistics").json
    kernel = shown["kernels"][0]
    assert shown["id"] == session and kernel["statistics"].keys() >= {"mem", "cuda_mem"}
    assert kernel["statistics"]["cuda_mem"]["capacity"] == str(1 << 30) and kernel["at"]
    agent = client.get("/aliquot/v1/agents/agent/statistics").json
    assert agent.keys() == {"node", "devices"} and A in agent["devices"]["cuda_util"]
    assert client.get("/aliquot/v1/agents/nobody/statistics").status == 404
    assert client.get(f"/aliquot/v1/sessions/{session}/statistics/series?hours=0").status == 400

    top = client.get("/aliquot/v1/top?all=true").json
    assert top["agents"][0]["id"] == "agent" and top["running"] == 1
    assert top["sessions"][0]["id"] == session and top["sessions"][0]["used"]["mem"]["capacity"]
    user = gpus.client(USER)
    assert user.get("/aliquot/v1/top").json["sessions"] == []
    assert "agents" not in user.get("/aliquot/v1/top").json
    assert user.get("/aliquot/v1/top?all=true").status == 403
    assert user.get(f"/aliquot/v1/sessions/{session}/statistics").status == 404
    assert user.get("/aliquot/v1/agents/agent/statistics").status == 401
    end(gpus, session)


def test_command_line(gpus):
    session = begin(gpus, "drawn", **{"cuda.shares": "0.5"})
    measured(gpus.client(), session, "cpu_util", "cuda_util")
    done = gpus.cli("top", "--once", "--all")
    assert done.returncode == 0 and "cores" in done.stdout, done
    assert "[" in done.stdout and "drawn" in done.stdout and "cuda " in done.stdout, done.stdout
    shown = gpus.cli("agent", "info", "agent").stdout.split("\nin use now\n")[1]
    device = next(line for line in shown.splitlines() if line.startswith(f"  ..{A[-12:]} ["))
    assert " % " in device and " of 2 GiB" in device, shown
    agent = json.loads(gpus.cli("agent", "info", "agent", "-o", "json").stdout)
    agent = agent[0] if isinstance(agent, list) else agent
    assert agent["statistics"]["devices"]["cuda_util"][A]["unit_hint"] == "percent", agent
    top = json.loads(gpus.cli("top", "-o", "json").stdout)
    assert top["sessions"][0]["name"] == "drawn" and A in str(top["agents"])
    done = gpus.cli("session", "stats", session)
    assert done.returncode == 0 and "cuda_mem" in done.stdout and "MiB" in done.stdout, done
    rows = json.loads(gpus.cli("session", "stats", session, "-o", "json").stdout)
    assert {row["metric"] for row in rows} >= {"cpu_util", "mem", "cuda_mem"}
    assert gpus.cli("session", "stats", "nothing").returncode == 5
    end(gpus, session)


def test_series(gpus):
    """What was gathered when a kernel ended, or the manager, is a row of a series."""
    client = gpus.client()
    session = begin(gpus, "recorded")
    measured(client, session, "cpu_util", condition=lambda s: s["cpu_util"]["stats.max"] != "0")
    end(gpus, session)

    def rows(path):
        return client.get(path + "/statistics/series?hours=1").json["items"]
    wait_for(lambda: rows("/aliquot/v1/sessions/" + session), 60, "a row of the kernel")
    row = rows("/aliquot/v1/sessions/" + session)[0]
    assert row["metrics"]["cpu_util"]["unit_hint"] == "percent" and row["kernel"]
    assert float(row["metrics"]["cpu_util"]["max"]) >= float(row["metrics"]["cpu_util"]["min"])
    done = gpus.cli("session", "stats", session, "--history", "--back", "2h")
    assert done.returncode == 0 and "cpu_util" in done.stdout, done
    gpus.programs["manager"].stop()
    gpus.programs["manager"].may_end = False
    gpus.start_manager()
    assert rows("/aliquot/v1/agents/agent")[0]["metrics"]["mem"]["samples"] > 0


# ---- containers ----

@pytest.fixture(scope="module")
def boxes():
    with Cluster(**settings_of("crun"), **QUICK) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


def test_container(boxes):
    """Its cgroups say what a container uses."""
    client = boxes.client()
    session = Session(boxes, "python3 -c '\nx = bytearray(30 << 20)\nwhile True: pass'")
    stats = measured(client, session.id, "cpu_util", "cpu_used", "mem",
                     condition=lambda s: float(s["mem"]["current"]) > 20 << 20
                     and float(s["cpu_util"]["current"]) > 100)
    assert stats["mem"]["capacity"] == str(64 << 20), stats
    assert float(stats["mem"]["pct"]) > 30
    assert float(stats["cpu_used"]["current"]) > 0
    session.end(forced=True)
    session.wait()
    assert float(kernel_stats(client, session.id)["last_stat"]["mem"]["stats.max"]) > 20 << 20
