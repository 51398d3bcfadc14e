# SPDX-License-Identifier: Apache-2.0
"""Services without a replica: a burst of 10,000 requests wakes one; room, image and folder that are
missing are problems in words, for owners and for clients, until they are back."""

import collections
import concurrent.futures
import contextlib
import json
import pathlib
import re
import socket
import uuid

import pytest

import model_server
from client import USER
from cluster import interactive, wait_for, wait_status
from images import Layout
from link_manager import read_all
from model_service import PATH, SETTINGS, Serving
from mounts import HOST, Mounted
from open_files import many_files
from python_image import python_layer
from runtimes import settings_of
from test_proxy import Proxied

BURST, THREADS, QUEUE, CAP = 10_000, 20, 1000, 16
PADDING = "x " * 2000
SLEEPY = {"replicas": "0-1", "count": 1, "scaling": {"window": 2, "idle": 3}}
HEALTH = {"path": "/health", "interval": 1}
CPUS = 32


class ServingCluster(Serving, Proxied, Mounted):
    pass


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    with ServingCluster(**{**settings_of("crun"), **SETTINGS,
                           "ALIQUOT_RESOURCE_CPUS": str(CPUS)}) as cluster:
        Mounted.start(cluster)
        cluster.port = None  # that of the storage host: the proxy has its own
        cluster.image = model_server.image(cluster)
        cluster.start_proxy(ALIQUOT_PROXY_MAX_CONNECTIONS="40000")
        yield cluster
        cluster.check_audits()
        cluster.stop()


def model(cluster, name, **more):
    return cluster.service(name, **{"image": cluster.image, "command": model_server.command(),
                                    "health": HEALTH, **more})


def wait_asleep(cluster, name):
    wait_for(lambda: cluster.shown(name)["status"] == "sleeping"
             and not cluster.shown(name)["replica_list"], 120, lambda: f"sleep: {cluster.shown(name)}")


def ask(cluster, service, name):
    return cluster.request("POST", f"/serve/{name}/v1/completions", {"prompt": "x", "max_tokens": 2},
                           service["token"])


def wait_answer(cluster, service, name):
    def is_answered():
        status, _, body = ask(cluster, service, name)
        return status == 200 and json.loads(body)["choices"][0]["text"] == "t0 t1"
    wait_for(is_answered, 180, lambda: f"an answer: {cluster.shown(name)}")


def wait_refused(cluster, service, name, words, detail=None):
    """Clients read the reason, and the owner its detail."""
    def is_said():
        status, headers, body = ask(cluster, service, name)
        assert status == 503 and int(headers["Retry-After"]) >= 1, (status, body)
        error = json.loads(body)["error"]
        assert error["code"] == "service_unavailable", error
        return re.search(words, error["message"])
    wait_for(is_said, 120, lambda: f"{words}: {ask(cluster, service, name)} {cluster.shown(name)}")
    assert re.search(detail or words, cluster.shown(name)["problem"]), cluster.shown(name)


# ---- a burst ----

def peak_memory(cluster):
    """Bytes that the proxy had at most."""
    text = pathlib.Path(f"/proc/{cluster.programs['proxy'].pid}/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+)", text)[1]) << 10


def ask_at_once(port, token, count):
    """So many requests, each on a connection of its own: [(status, Retry-After, body)]."""
    body = json.dumps({"prompt": PADDING, "max_tokens": 1}).encode()
    request = (f"POST /serve/sleepy/v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
               f"Authorization: Bearer {token}\r\nContent-Length: {len(body)}\r\n\r\n").encode() + body
    peers, answers = [], []
    for _ in range(count):
        peers.append(socket.create_connection(("127.0.0.1", port), 400))
        with contextlib.suppress(OSError):
            peers[-1].sendall(request)
    for peer in peers:
        with peer:
            head, _, text = read_all(peer).partition(b"\r\n\r\n")
        wait = re.search(rb"\r\nRetry-After: (\d+)", head)
        answers.append((int(head.split()[1]) if head else 0, int(wait[1]) if wait else 0, text))
    return answers


def test_a_burst_at_a_service_that_sleeps(cluster):
    with model(cluster, "sleepy", **SLEEPY, limits={"cap": CAP, "queue": QUEUE, "queue_timeout": 300}) \
            as service, many_files(BURST + 1000):
        tokens = service["token"], cluster.token_of("sleepy")
        wait_asleep(cluster, "sleepy")
        before = len(cluster.sessions())
        memory = peak_memory(cluster)
        with concurrent.futures.ThreadPoolExecutor(THREADS) as pool:
            done = [pool.submit(ask_at_once, cluster.port, tokens[i % 2], BURST // THREADS)
                    for i in range(THREADS)]
            answers = [answer for one in done for answer in one.result()]
        statuses = collections.Counter(status for status, _, _ in answers)
        assert set(statuses) <= {200, 429, 503}, (statuses, [a for a in answers if not a[0]][:3])
        assert statuses[200] >= QUEUE, statuses
        for status, wait, text in answers:
            if status == 200:
                assert json.loads(text)["choices"][0]["text"] == "t0"
            else:
                assert wait >= 1 and json.loads(text)["error"]["code"] in (
                    "queue_full", "rate_limit_exceeded"), text
        assert peak_memory(cluster) - memory < 150 << 20, (memory, peak_memory(cluster))
        assert len(cluster.sessions()) == before + 1  # one replica for all of them
        figures = wait_for(lambda: cluster.shown("sleepy")["figures"]["refused"] == BURST - statuses[200]
                           and cluster.shown("sleepy")["figures"])
        assert figures["queued"] == figures["in_flight"] == 0
        wait_asleep(cluster, "sleepy")
        wait_answer(cluster, service, "sleepy")


# ---- what a replica needs is missing ----

def test_no_room(cluster):
    with model(cluster, "roomy", **SLEEPY, limits={"queue_timeout": 3}) as service:
        wait_asleep(cluster, "roomy")
        taken = cluster.client().post("/session", interactive(
            "taker", image=cluster.image, config={"resources": {"cpu": str(CPUS), "mem": "64m"}}))
        assert taken.status == 201, taken
        wait_status(cluster.client(), "taker", "RUNNING")
        wait_refused(cluster, service, "roomy", "waits for resources", "cpu: 1 missing")
        assert cluster.shown("roomy")["status"] in ("scaling", "failing"), cluster.shown("roomy")
        cluster.client().send("DELETE", "/session/taker?forced=true")
        wait_answer(cluster, service, "roomy")


def test_an_image_that_is_gone(cluster):
    layout = Layout(cluster.folder / "gone")
    with model(cluster, "pictured", image=layout.reference("serve"), replicas=0,
               limits={"queue_timeout": 3}) as service:
        cluster.change("pictured", replicas=1)
        wait_refused(cluster, service, "pictured", "image|layout|gone")
        layout.image("serve", [python_layer(), model_server.program_layer()])
        wait_answer(cluster, service, "pictured")
        wait_for(lambda: cluster.shown("pictured")["status"] == "ready", 60, "ready")
        assert not cluster.shown("pictured")["problem"], cluster.shown("pictured")


@pytest.fixture(name="files")
def files_fixture(cluster):
    """Where the files of the folder 'model' lie."""
    reply = cluster.client(USER).post("/folders", {"name": "model", "host": HOST})
    assert reply.status == 201, reply
    place = cluster.place(uuid.UUID(hex=reply.json["id"]))
    (place / "serve.py").write_bytes((model_server.PROGRAMS / "openai_server.py").read_bytes())
    yield place
    cluster.client(USER).delete("/folders/model")


def test_a_folder_that_is_gone(cluster, files):
    with model(cluster, "filed", **SLEEPY, model="model", command="exec python3 /models/serve.py",
               limits={"queue_timeout": 3}) as service:
        wait_answer(cluster, service, "filed")
        wait_asleep(cluster, "filed")
        refused = cluster.user.delete("/folders/model")
        assert refused.status == 400 and "filed" in str(refused.json), refused
        away = files.with_name("away")
        files.rename(away)
        wait_refused(cluster, service, "filed", "folder|model")
        away.rename(files)
        wait_answer(cluster, service, "filed")


def test_a_model_that_is_broken(cluster, files):
    (files / "serve.py").write_text("import sys; sys.exit('weights are truncated')")
    with model(cluster, "broken", model="model", command="exec python3 /models/serve.py", replicas=0,
               limits={"queue_timeout": 3}) as service:
        cluster.change("broken", replicas=1)
        wait_refused(cluster, service, "broken", "ended|exit|status 1")
        wait_for(lambda: cluster.shown("broken")["status"] == "failing", 60,
                 lambda: f"failing: {cluster.shown('broken')}")
        (files / "serve.py").write_bytes((model_server.PROGRAMS / "openai_server.py").read_bytes())
        wait_answer(cluster, service, "broken")
        assert cluster.user.get(f"{PATH}/broken").json["status"] in ("ready", "scaling")
