# SPDX-License-Identifier: Apache-2.0
"""Manager, agent, proxy and replicas of model services die by SIGKILL: what is under way and what is
asked meanwhile is answered, and nothing is started twice."""

import concurrent.futures
import http.client
import json
import threading

import pytest

import model_server
from cluster import wait_for
from model_service import PATH, SETTINGS, Serving
from runtimes import settings_of
from test_proxy import Proxied

CHAT = "/serve/chat/v1/chat/completions"
SAID = [{"role": "user", "content": "count"}]


class ServingCluster(Serving, Proxied):
    pass


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    with ServingCluster(**{**settings_of("crun"), **SETTINGS}) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        cluster.image = model_server.image(cluster)
        cluster.start_proxy()
        yield cluster
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(name="chat")
def chat_fixture(cluster):
    with cluster.service("chat", 2, image=cluster.image, command=model_server.command(token_delay=0.05),
                         health={"path": "/health", "interval": 1}) as service:
        yield service


def words(count):
    return " ".join(f"t{number}" for number in range(count))


class Stream:
    """A streamed answer that is read in a thread of its own."""

    def __init__(self, cluster, service, tokens):
        self.text, self.is_whole = "", False
        self.connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=120)
        self.connection.request(
            "POST", CHAT, json.dumps({"messages": SAID, "stream": True, "max_tokens": tokens}),
            {"Authorization": f"Bearer {service['token']}"})
        self.reply = self.connection.getresponse()
        assert self.reply.status == 200, self.reply.read()
        self.thread = threading.Thread(target=self.read)
        self.thread.start()

    def read(self):
        try:
            for line in self.reply:
                if line.startswith(b"data: [DONE]"):
                    self.is_whole = True
                elif line.startswith(b"data: "):
                    self.text += json.loads(line[6:])["choices"][0]["delta"].get("content", "")
        except (OSError, http.client.HTTPException):
            self.is_whole = False

    def end(self):
        self.thread.join()
        self.connection.close()
        return self.is_whole and self.text


def ask(cluster, service, tokens=2):
    status, _, body = cluster.request("POST", CHAT, {"messages": SAID, "max_tokens": tokens},
                                      service["token"])
    return json.loads(body)["choices"][0]["message"]["content"] if status == 200 else (status, body)


def sessions_of(cluster):
    return sorted((one["name"], one["id"], one["status"]) for one in cluster.sessions())


@pytest.mark.gate
def test_streams_go_on_without_the_manager(cluster, chat):
    before = sessions_of(cluster)
    stream = Stream(cluster, chat, 100)
    wait_for(lambda: stream.text, 30, "the stream to begin")
    cluster.programs["manager"].kill()
    for _ in range(4):
        assert ask(cluster, chat) == words(2)
    assert stream.end() == words(100)
    cluster.programs["proxy"].kill()
    cluster.programs["proxy"].start()
    wait_for(lambda: proxy_answers(cluster), 60, "the proxy")
    for _ in range(4):
        assert ask(cluster, chat) == words(2)
    stream = Stream(cluster, chat, 200)
    cluster.programs["manager"].start()
    wait_for(cluster.is_serving, 60, "the manager")
    cluster.wait_ready("chat", 2)
    assert ask(cluster, chat) == words(2) and stream.end() == words(200)
    assert sessions_of(cluster) == before
    wait_for(lambda: cluster.shown("chat")["figures"]["ok"] > 0, 30, "what was done meanwhile")


def proxy_answers(cluster):
    try:
        return cluster.request("GET", "/health")[0] in (200, 503)
    except OSError:
        return False


def test_streams_go_on_without_the_agent(cluster, chat):
    before = sessions_of(cluster)
    stream = Stream(cluster, chat, 200)
    wait_for(lambda: stream.text, 30, "the stream to begin")
    cluster.programs["agent"].kill()
    at = len(stream.text)
    wait_for(lambda: len(stream.text) > at, 30, "the stream to go on")
    cluster.programs["agent"].start()
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    cluster.wait_ready("chat", 2)
    wait_for(lambda: ask(cluster, chat) == words(2), 60, "an answer")
    assert stream.end() == words(200)
    assert sessions_of(cluster) == before


def test_requests_without_the_agent_are_refused_in_words(cluster, chat):
    assert ask(cluster, chat) == words(2)
    cluster.programs["agent"].kill()
    try:
        with concurrent.futures.ThreadPoolExecutor(8) as pool:  # some find a connection that was kept
            said = list(pool.map(lambda _: ask(cluster, chat, 40), range(8)))
    finally:
        cluster.programs["agent"].start()
    refused = [one for one in said if one != words(40)]
    assert refused and {status for status, _ in refused} == {503}, said
    assert all(b"replica_unreachable" in body and b"agent 'agent' is not connected" in body
               for _, body in refused), refused
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")
    cluster.wait_ready("chat", 2)
    wait_for(lambda: ask(cluster, chat) == words(2), 60, "an answer")


def test_other_replicas_answer_for_one_that_was_killed(cluster, chat):
    before = {one["session"] for one in cluster.shown("chat")["replica_list"]}
    status, _, _ = cluster.request("POST", "/serve/chat/control", {"exit": 3}, chat["token"])
    assert status == 200
    said = []

    def is_replaced():
        said.append(ask(cluster, chat))
        there = cluster.shown("chat")["replica_list"]
        return len(there) == 2 and {one["session"] for one in there} != before and all(
            one["health"] == "ready" for one in there)
    wait_for(is_replaced, 120, lambda: f"another replica: {cluster.shown('chat')}")
    assert set(said) == {words(2)}, [one for one in said if one != words(2)]
    assert len(before & {one["session"] for one in cluster.shown("chat")["replica_list"]}) == 1


def test_a_service_that_ends_while_the_manager_dies_stays_ended(cluster):
    with cluster.service("chat", 2, image=cluster.image, command=model_server.command(),
                         health={"path": "/health", "interval": 1}) as service:
        assert cluster.user.delete(f"{PATH}/chat").status == 204
        cluster.programs["manager"].kill()
        cluster.programs["manager"].start()
        wait_for(cluster.is_serving, 60, "the manager")
        wait_for(lambda: cluster.shown(service["id"])["status"] == "ended", 120, "the end")
        assert cluster.request("GET", "/serve/chat/health", token=service["token"])[0] in (404, 410)
        assert not cluster.live_sessions()
