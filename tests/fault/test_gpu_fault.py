# SPDX-License-Identifier: Apache-2.0
"""The process that hands out a slice of a GPU dies in the middle of it: the program gets
no memory without it, the card is free again, and the next slice is whole."""

import contextlib
import pathlib
import re
import subprocess
import time

import pytest

import containers
from cluster import ENDED, GONE, batch, wait_for, wait_status
from gpu import BUILD, Card
from gpu_cluster import GpuCluster, body_of, cheat_body_of
from world import ROOT

CLIENTS = BUILD / "tests" / "gpu"
ALL = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                     check=True).stdout.split()
POINTS = [point for point in ALL if point.startswith("gpuhost.")]
CHEAT_POINT = "agent.gpu.misused"
RESIZE_POINTS = [point for point in ALL if ".gpu.resize." in point]
AGENT_POINTS = [point for point in ALL if point.startswith("agent.gpu.")
                and point not in (CHEAT_POINT, *RESIZE_POINTS)]


def is_free(card, seconds=60):
    deadline = time.monotonic() + seconds
    while card.show()[0]["used"] and time.monotonic() < deadline:
        time.sleep(0.02)
    return card.show()[0]["used"] == 0


@pytest.mark.parametrize("point", POINTS)
def test_point(point, tmp_path):
    faults = {"ALIQUOT_FAULT": point, "ALIQUOT_FAULT_ONCE": str(tmp_path / "died")}
    with Card() as card:
        first = card.run(CLIENTS / "gpu-entries", options=["--memory", "320m"], env=faults)
        assert (tmp_path / "died").exists(), f"no process has passed {point}"
        assert first.returncode
        assert is_free(card)
        again = card.run(CLIENTS / "gpu-entries", options=["--memory", "320m"], env=faults)
        assert again.returncode == 0, again.stdout + again.stderr
        assert is_free(card)


PROGRAM = """
say("total", info()[1], alloc(1000))
for _ in range(30):
    say("over", alloc(2000))
    time.sleep(0.1)
say("end", info()[1], alloc(500))
"""


def log_of(client, session):
    """"" while its agent is away."""
    with contextlib.suppress(*GONE):
        reply = client.get(f"/aliquot/v1/sessions/{session}/logs", timeout=20)
        return reply.body.decode() if reply.status == 200 else ""
    return ""


@contextlib.contextmanager
def half_a_share(point, program):
    """Somebody dies once at 'point', and a session with half of a GPU runs 'program':
    (cluster, client, session, the file that says who has died)."""
    if why := containers.why_not("crun"):
        pytest.skip(why)
    with GpuCluster() as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.supervise()
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        body = {**batch("sliced", 'exec python3 -c "$MAIN"'), "image": "host",
                **body_of("0.5", program)}
        yield cluster, client, client.post("/session", body).json["sessionId"], mark
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.mark.parametrize("point", AGENT_POINTS)
def test_agent_point(point):
    """The agent dies where it makes, finds again or takes down the slice of a container."""
    with half_a_share(point, PROGRAM) as (cluster, client, session, mark):
        wait_for(lambda: "over" in log_of(client, session), 30, "its output")
        cluster.programs["agent"].kill()  # while it runs: the next one finds it again
        shown = wait_status(client, session, *ENDED)
        assert shown["result"] == "SUCCESS", shown
        wait_for(mark.exists, 30, f"a process to pass {point}")
        assert is_free(cluster.card)
        wait_for(lambda: "end" in log_of(client, session), 30, "the log")
        log = log_of(client, session)
        assert set(log.splitlines()) == {"total 2048 0", "over 2", "end 2048 0"}, log


WATCH = """
pointer = ctypes.c_uint64()
while True:
    if cuda.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(4 << 20)) == 0:
        must(cuda.cuMemFree_v2(pointer))
    say(info()[1])
    time.sleep(0.1)
"""


@pytest.mark.parametrize("point", RESIZE_POINTS)
def test_resize_point(point):
    """A death during a resize: both sides come to agree, and the device does, too."""
    with half_a_share(point, WATCH) as (cluster, client, session, mark):
        path = f"/aliquot/v1/sessions/{session}"

        def last():
            return (log_of(client, session).split() or [""])[-1]

        def resize(amount):
            with contextlib.suppress(*GONE):
                return client.send("PATCH", path, {"resources": {"cuda.shares": amount}}).status == 204
            return False

        def shown():
            with contextlib.suppress(*GONE):
                return client.get(path).json["kernels"][0]["requested_slots"]["cuda.shares"]
            return None

        wait_for(lambda: last() == "2048", 30, "its output")
        resize("1")
        wait_for(mark.exists, 30, f"a process to pass {point}")
        wait_for(lambda: (shown(), last()) in (("0.5", "2048"), ("1", "4096")), 30,
                 lambda: f"both to agree: {shown()} {last()}")
        wait_for(lambda: resize("0.3"), 30, "another part")
        wait_for(lambda: (shown(), last()) == ("0.3", "1228"), 30, "it to be so")
        client.send("DELETE", f"/session/{session}?forced=true")
        wait_status(client, session, *ENDED)
        assert is_free(cluster.card)


def parts_of(cluster, client, path):
    """What every kernel holds by the manager, and by what its agent has written: a set."""
    found = set()
    with contextlib.suppress(*GONE):
        for kernel in client.get(path).json["kernels"]:
            found.add(kernel["requested_slots"]["cuda.shares"])
            for text in pathlib.Path(cluster.folder).rglob("resource.txt"):
                if kernel["id"] in str(text):
                    line = re.search(r"CUDA.SHARES_SHARES=.*:([\d.]+)", text.read_text())
                    found.add(line[1].rstrip("0").rstrip("."))
    return found


@pytest.mark.parametrize("point", RESIZE_POINTS)
def test_resize_point_of_two_nodes(point):
    """All kernels come to have the same, and it is what it was or what was asked for."""
    if why := containers.why_not("crun"):
        pytest.skip(why)
    with GpuCluster(devices=2, ALIQUOT_RESOURCE_CPUS="1",
                    ALIQUOT_NETWORK_ENABLED="true") as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.supervise()
        cluster.start_manager()
        for number, name in enumerate(("agent", "other")):
            cluster.start_gpu_agent(name, number)
        client = cluster.client()
        body = {**batch("pair", "exec sleep 600"), "image": "host", "clusterSize": 2,
                "clusterMode": "multi-node", **body_of("0.5", "")}
        session = client.post("/session", body).json["sessionId"]
        path = f"/aliquot/v1/sessions/{session}"

        def resize(amount):
            with contextlib.suppress(*GONE):
                return client.send("PATCH", path, {"resources": {"cuda.shares": amount}}).status == 204
            return False

        wait_status(client, session, "RUNNING")
        answered = resize("1")
        wait_for(mark.exists, 30, f"a process to pass {point}")
        wait_for(lambda: parts_of(cluster, client, path) in ({"0.5"}, {"1"}), 60,
                 lambda: f"all to have the same: {parts_of(cluster, client, path)}")
        assert not answered or parts_of(cluster, client, path) == {"1"}
        wait_for(lambda: resize("0.3"), 60, "another part")
        wait_for(lambda: parts_of(cluster, client, path) == {"0.3"}, 30, "it to be so")
        client.send("DELETE", f"/session/{session}?forced=true")
        wait_status(client, session, *ENDED)
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def test_agent_dies_when_it_has_found_a_cheat():
    """The next one finds it, too, and ends it."""
    if why := containers.why_not("crun"):
        pytest.skip(why)
    assert CHEAT_POINT in ALL
    with GpuCluster(ALIQUOT_GPU_MISUSE="stop") as cluster:
        mark = cluster.folder / "died"
        cluster.env.update(ALIQUOT_FAULT=CHEAT_POINT, ALIQUOT_FAULT_ONCE=str(mark))
        cluster.supervise()
        cluster.start_manager()
        cluster.start_agent()
        client = cluster.client()
        body = {**batch("cheat", 'exec python3 -c "$MAIN"'), "image": "host",
                **cheat_body_of("0.5", "while cheat('elf-walk').returncode == 3: pass")}
        session = client.post("/session", body).json["sessionId"]
        shown = wait_status(client, session, *ENDED)
        assert mark.exists() and shown["reason"] == "gpu-misuse", shown
        assert is_free(cluster.card)
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()
