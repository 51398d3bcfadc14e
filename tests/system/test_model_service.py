# SPDX-License-Identifier: Apache-2.0
"""A model service as its users meet it: replicas in real containers, asked through aliquot-proxy while
they come, are replaced and go, and while the manager dies."""

import http.client
import json
import threading

import pytest

from client import USER
from cluster import wait_for
from images import Layout, archive, file, folder
from runtimes import settings_of
from test_apps import python_layer
from test_proxy import Proxied

PATH = "/aliquot/v1/model-services"
# Is ready half a second after its start, and takes a while for each answer.
SERVER = r"""
import http.server, json, os, sys, time
start = time.time()
class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        ready = time.time() - start > 0.5
        self.answer(200 if ready else 503, {"ready": ready})
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        time.sleep(json.loads(body).get("seconds", 0))
        self.answer(200, {"word": os.environ.get("WORD"), "asked": json.loads(body)})
    def answer(self, status, what):
        text = json.dumps(what).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *_):
        pass
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Model).serve_forever()
"""


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    with Proxied(**{**settings_of("crun"), "ALIQUOT_RESOURCE_CPUS": "8",
                    "ALIQUOT_SESSIONS_KILL_GRACE": "5s"}, ALIQUOT_IMAGE_ALLOW="* host oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        layout = Layout(cluster.folder / "layout")
        own = archive([folder("tmp", mode=0o1777), folder("app"),
                       file("app/serve.py", SERVER.encode())])
        layout.image("model", [python_layer(), own], Labels={})
        layout.image("ready-made", [python_layer(), own], Entrypoint=["python3", "-u", "serve.py"],
                     Cmd=["8000"], WorkingDir="/app", Labels={})
        cluster.ready_made = layout.reference("ready-made")
        cluster.image = layout.reference("model")
        cluster.start_proxy()
        cluster.user = cluster.client(USER)
        yield cluster
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(name="service")
def service_fixture(cluster):
    made = cluster.user.post(PATH, {
        "name": "digits", "image": cluster.image, "command": "exec python3 /app/serve.py 8000",
        "port": 8000, "replicas": 2, "resources": {"cpu": "1", "mem": "128m"},
        "environ": {"WORD": "first"}, "health": {"path": "/health", "interval": 1}})
    assert made.status == 201, made
    cluster.key = cluster.user.post(f"{PATH}/digits/tokens", {"label": "test"}).json["token"]
    wait_ready(cluster, 2)
    yield made.json
    cluster.user.delete(f"{PATH}/digits", {"force": True})
    wait_for(lambda: shown(cluster, made.json["id"])["status"] == "ended", 60)


def shown(cluster, name="digits"):
    return cluster.user.get(f"{PATH}/{name}").json


def wait_ready(cluster, count):
    wait_for(lambda: shown(cluster)["status"] == "ready"
             and shown(cluster)["replicas"]["ready"] == count, 120,
             lambda: f"{count} ready replicas: {shown(cluster)}")


def ask(cluster, token=True, **body):
    """Status and answer."""
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = f"Bearer {cluster.key if token is True else token}"
    connection.request("POST", "/serve/digits/v1/predict", json.dumps(body), headers)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    return reply.status, json.loads(text) if reply.status == 200 else text.decode()


class Load:
    """Clients that ask all the time; 'failed' has what was no answer, 'words' what was said."""

    def __init__(self, cluster, clients=4):
        self.cluster, self.failed, self.words, self.is_over = cluster, [], [], threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def run(self):
        while not self.is_over.is_set():
            try:
                status, said = ask(self.cluster, seconds=0.1)
            except (OSError, http.client.HTTPException) as e:
                status, said = 0, repr(e)
            if status == 200:
                self.words.append(said["word"])
            else:
                self.failed.append((status, said))


def test_requests_reach_replicas_by_a_token(cluster, service):
    assert shown(cluster)["url"] == f"http://127.0.0.1:{cluster.port}/serve/digits/"
    status, said = ask(cluster, text="x")
    assert (status, said) == (200, {"word": "first", "asked": {"text": "x"}})
    assert ask(cluster, token=None)[0] == 401 and ask(cluster, token="aqs-wrong")[0] == 401
    other = cluster.user.post(f"{PATH}/digits/tokens", {"label": "second"}).json
    wait_for(lambda: ask(cluster, token=other["token"])[0] == 200)
    cluster.user.delete(f"{PATH}/digits/tokens/second")
    wait_for(lambda: ask(cluster, token=other["token"])[0] == 401)
    figures = wait_for(lambda: shown(cluster)["figures"]["ok"] >= 2 and shown(cluster)["figures"])
    assert figures["in_flight"] == 0 and figures["server_errors"] == 0
    token = cluster.user.get(f"{PATH}/digits/tokens").json["items"][0]
    assert token["label"] == "test"


@pytest.mark.parametrize("bootstrap", (None, "echo WORD=$WORD >/tmp/begun"))
def test_an_image_is_served_by_its_own_program(cluster, bootstrap):
    more = {"bootstrap": bootstrap} if bootstrap else {}
    made = cluster.user.post(PATH, {
        "name": "digits", "image": cluster.ready_made, "port": 8000,
        "resources": {"cpu": "1", "mem": "128m"}, "environ": {"WORD": "own"},
        "health": {"path": "/health", "interval": 1}, **more})
    assert made.status == 201, made
    cluster.key = cluster.user.post(f"{PATH}/digits/tokens", {"label": "test"}).json["token"]
    wait_ready(cluster, 1)
    assert ask(cluster)[1]["word"] == "own"
    cluster.user.delete(f"{PATH}/digits", {"force": True})
    wait_for(lambda: shown(cluster, made.json["id"])["status"] == "ended", 60)


def test_an_image_without_a_program_is_refused_in_words(cluster):
    made = cluster.user.post(PATH, {"name": "digits", "image": cluster.image, "port": 8000,
                                    "resources": {"cpu": "1", "mem": "128m"}})
    assert made.status == 201, made
    wait_for(lambda: "no program of its own" in (shown(cluster)["problem"] or ""), 60,
             lambda: f"the problem: {shown(cluster)}")
    cluster.user.delete(f"{PATH}/digits", {"force": True})
    wait_for(lambda: shown(cluster, made.json["id"])["status"] == "ended", 60)


def test_a_rollout_loses_no_request(cluster, service):
    with Load(cluster) as load:
        wait_for(lambda: len(load.words) > 10)
        made = cluster.user.post(f"{PATH}/digits/revisions", {"environ": {"WORD": "second"}})
        assert made.status == 201, made
        wait_for(lambda: all(one["revision"] == 2 and one["health"] == "ready"
                             for one in shown(cluster)["replica_list"])
                 and len(shown(cluster)["replica_list"]) == 2, 180,
                 lambda: f"the rollout: {shown(cluster)}")
        wait_for(lambda: len(load.words) > 20 and set(load.words[-10:]) == {"second"})
    assert not load.failed, load.failed[:5]
    assert set(load.words) == {"first", "second"}


def test_scaling_down_waits_for_what_is_under_way(cluster, service):
    with Load(cluster, 6) as load:
        wait_for(lambda: len(load.words) > 10)
        assert cluster.user.send("PATCH", f"{PATH}/digits", {"replicas": 1}).status == 200
        wait_for(lambda: len(shown(cluster)["replica_list"]) == 1, 60)
        count = len(load.words)
        wait_for(lambda: len(load.words) > count + 10)
    assert not load.failed, load.failed[:5]


def test_the_manager_may_die(cluster, service):
    with Load(cluster) as load:
        wait_for(lambda: len(load.words) > 10)
        cluster.programs["manager"].kill()
        count = len(load.words)
        wait_for(lambda: len(load.words) > count + 10)
        cluster.programs["manager"].start()
        wait_for(cluster.is_serving, 60)
        wait_ready(cluster, 2)
        count = len(load.words)
        wait_for(lambda: len(load.words) > count + 10)
    assert not load.failed, load.failed[:5]


def test_what_is_under_way_when_a_service_ends_is_answered(cluster, service):
    replies = []
    slow = threading.Thread(target=lambda: replies.append(ask(cluster, seconds=3)))
    slow.start()
    wait_for(lambda: shown(cluster)["figures"]["in_flight"] == 1)
    assert cluster.user.delete(f"{PATH}/digits").status == 204
    wait_for(lambda: ask(cluster)[0] == 410)
    slow.join()
    assert replies[0][0] == 200, replies
