# SPDX-License-Identifier: Apache-2.0
"""Other parts of GPUs for sessions that run: of one device or several, in one kernel or several."""

import contextlib
import json
import pathlib
import re

import pytest

import containers
from cluster import GONE, wait_for
from gpu_cluster import DEVICE, GpuCluster, body_of, started_cluster
from runtimes import Session

pytestmark = pytest.mark.gate

WATCH = """
say("had", alloc(1000))
while True:
    say(info()[1], alloc(100), info()[0] < 1024)
    time.sleep(0.1)
"""


@pytest.fixture(scope="module")
def cluster():
    if why := containers.why_not("crun"):
        pytest.skip(why)
    with started_cluster(devices=2) as made:
        yield made


STARTED = []


@pytest.fixture(autouse=True)
def sessions_end():
    yield
    with contextlib.suppress(*GONE, AssertionError):  # of a cluster that is gone already
        end(*STARTED)
    STARTED.clear()


def begin(cluster, amount, program, **more):
    STARTED.append(Session(cluster, 'exec python3 -c "$MAIN"', **body_of(amount, program, **more)))
    return STARTED[-1]


def resized(session, **resources):
    return session.client.send("PATCH", f"/aliquot/v1/sessions/{session.id}",
                               {"resources": {name.replace("_", "."): amount
                                              for name, amount in resources.items()}})


def resource_txt(cluster, kernel):
    texts = [path.read_text() for path in pathlib.Path(cluster.folder).rglob("resource.txt")
             if kernel in str(path)]
    assert len(texts) == 1
    return texts[0]


def held(cluster, session):
    """The parts of each kernel by the manager, and by the devices of its own resource.txt."""
    shown = session.client.get(f"/aliquot/v1/sessions/{session.id}").json
    return [(kernel["requested_slots"]["cuda.shares"],
             re.findall(r"[:,]([\d.]+)", re.search("CUDA.SHARES_SHARES=.*",
                                                   resource_txt(cluster, kernel["id"]))[0]))
            for kernel in shown["kernels"]]


def last_line(session, kernel="main1"):
    reply = session.client.get(f"/aliquot/v1/sessions/{session.id}/logs?kernel={kernel}", timeout=20)
    return (reply.body.decode().splitlines() or [""])[-1] if reply.status == 200 else ""


def shows(session, words, kernel="main1"):
    wait_for(lambda: last_line(session, kernel).startswith(words), 60,
             lambda: f"{words!r}, not {last_line(session, kernel)!r}")


def both_show(session, words):
    for kernel in ("main1", "sub1"):
        shows(session, words, kernel)


def end(*sessions):
    for session in list(sessions):
        session.end(forced=True)
        session.wait()
        if session in STARTED:
            STARTED.remove(session)


def alloc_map(cluster, agent="agent"):
    reply = cluster.client().post("/admin/gql", {
        "query": "query ($id: String!) { agent(agent_id: $id) { gpu_alloc_map } }",
        "variables": {"id": agent}})
    return json.loads(reply.json["data"]["agent"]["gpu_alloc_map"])


def occupied(cluster, agent="agent"):
    return cluster.agent(agent)["occupied_slots"]["cuda.shares"]


def test_a_part_of_one_device(cluster):
    """More at once, less without taking anything away; kept by both sides; refused by name."""
    session = begin(cluster, "0.5", WATCH)
    other = begin(cluster, "1", "say(info()[1])\ntime.sleep(600)")
    shows(session, "2048 0 ")
    shows(other, "4096")
    assert resized(session, cuda_shares="1").status == 204
    shows(session, "4096 ")
    assert held(cluster, session) == [("1", ["1.00"])]
    assert resized(session, cuda_shares="0.2").status == 204
    shows(session, "818 2 True")
    assert held(cluster, session) == [("0.2", ["0.20"])]
    for name in ("agent", "manager"):
        cluster.programs[name].kill()
        getattr(cluster, f"start_{name}")()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent to be back")
    wait_for(lambda: resized(session, cuda_shares="0.4").status == 204, 60, "another part")
    shows(session, "1638 ")
    for wrong, words in ({"cuda_shares": "5"}, "cuda.shares"), ({"cuda_shares": "2.1"}, "at most"), \
            ({"cuda_shares": "0.4001"}, "cuda.shares"), ({"cuda_shares": "0"}, "cuda.shares"), \
            ({"cuda_shares": "-1"}, "cuda.shares"), ({"cuda_shares": "x"}, "cuda.shares"), \
            ({"mem": "512m"}, "mem"), ({"tpu_device": "1"}, "tpu"), ({}, "resources"):
        reply = resized(session, **wrong)
        assert reply.status == 400 and words in reply.body.decode(), (wrong, reply.body)
    assert resized(session, cuda_shares="1").status == 204
    assert session.log.splitlines()[0] == "had 0"
    end(session, other)
    cluster.check_audits()


TOTALS = """
def total(ordinal):
    use(ordinal)
    return info()[1]
while True:
    say(total(0), total(1))
    time.sleep(0.1)
"""


def test_parts_of_two_devices(cluster):
    """Shared as evenly as their room allows; neither is given up, no other one taken."""
    session = begin(cluster, "2.4", TOTALS)
    shows(session, "4914 4914")
    assert resized(session, cuda_shares="3.6").status == 204
    shows(session, "7372 7372")
    assert held(cluster, session) == [("3.6", ["1.80", "1.80"])]
    assert alloc_map(cluster) == {DEVICE % 0: "1.80", DEVICE % 1: "1.80"}
    assert occupied(cluster) == "3.6"
    reply = resized(session, cuda_shares="0.1")
    assert reply.status == 400 and "each of which keeps a part" in reply.body.decode(), reply.body
    assert resized(session, cuda_shares="1.2").status == 204
    shows(session, "2456 2456")
    other = begin(cluster, "1.4", "say(info()[1])\ntime.sleep(600)")  # of one: 0.6 is free there
    shows(other, "5734")
    assert resized(session, cuda_shares="2.2").status == 204
    parts = held(cluster, session)[0][1]
    assert sorted(parts) == ["0.60", "1.60"]
    shows(session, " ".join({"0.60": "2456", "1.60": "6552"}[part] for part in parts))
    reply = resized(session, cuda_shares="2.7")
    assert reply.status == 400 and "has 0.4 free" in reply.body.decode(), reply.body
    end(other)
    assert resized(session, cuda_shares="2.4").status == 204
    assert sorted(held(cluster, session)[0][1]) == ["1.20", "1.20"]
    end(session)
    cluster.check_audits()


def test_two_kernels_on_one_node(cluster):
    """Both are on the device with least room, so one may be able to grow where both are not."""
    session = begin(cluster, "0.5", WATCH, clusterSize=2)
    both_show(session, "2048 ")
    assert resized(session, cuda_shares="0.8").status == 204
    both_show(session, "3276 ")
    assert held(cluster, session) == [("0.8", ["0.80"])] * 2
    assert occupied(cluster) == "1.6" and list(alloc_map(cluster).values()) == ["1.60"]
    for wanted in ("1.1", "1.2"):
        reply = resized(session, cuda_shares=wanted)
        assert reply.status == 400 and "at most" in reply.body.decode(), reply.body
    assert held(cluster, session) == [("0.8", ["0.80"])] * 2
    assert occupied(cluster) == "1.6"
    assert resized(session, cuda_shares="1").status == 204  # no room is kept for what was refused
    both_show(session, "4096 ")
    end(session)
    cluster.check_audits()


def test_limits_of_the_project_hold(cluster):
    client = cluster.client()
    group = client.post("/admin/gql", {"query": "{ groups { id name } }"}).json["data"]["groups"]
    group = next(one for one in group if one["name"] == "default")
    session = begin(cluster, "0.5", WATCH)
    shows(session, "2048 ")
    path = f"/aliquot/v1/groups/{group['id']}"
    try:
        reply = client.send("PATCH", path, {"total_slots": {"cuda.shares": "1"}})
        assert reply.status in (200, 204), reply
        reply = resized(session, cuda_shares="1.1")
        assert reply.status == 412 and "its project may hold 1 cuda.shares" in reply.body.decode(), \
            reply.body
        assert resized(session, cuda_shares="1").status == 204
    finally:
        client.send("PATCH", path, {"total_slots": {}})
    end(session)


def test_two_nodes():
    """All kernels or none, wherever they are."""
    if why := containers.why_not("crun"):
        pytest.skip(why)
    with GpuCluster(devices=2, ALIQUOT_NETWORK_ENABLED="true") as cluster:
        cluster.start_manager()
        for number, (name, cores) in enumerate((("agent", "3"), ("other", "1"))):
            cluster.start_gpu_agent(name, number, ALIQUOT_RESOURCE_CPUS=cores)
        body = body_of("1.2", "")
        body["config"]["resources"]["cpu"] = "2"  # so that each agent has a core for one kernel
        filler = Session(cluster, "exec sleep 600", **body)
        filler.wait("RUNNING")
        session = begin(cluster, "0.5", WATCH, clusterSize=2, clusterMode="multi-node")
        session.wait("RUNNING")
        assert sorted(k["agent"] for k in session.wait("RUNNING")["kernels"]) == ["agent", "other"]
        both_show(session, "2048 ")
        assert resized(session, cuda_shares="0.8").status == 204
        both_show(session, "3276 ")
        assert held(cluster, session) == [("0.8", ["0.80"])] * 2
        reply = resized(session, cuda_shares="0.9")  # one agent has 1.2 more, the other nothing
        assert reply.status == 400 and "cuda.shares" in reply.body.decode(), reply.body
        assert held(cluster, session) == [("0.8", ["0.80"])] * 2
        end(session, filler)
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()
