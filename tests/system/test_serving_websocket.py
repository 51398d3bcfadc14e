# SPDX-License-Identifier: Apache-2.0
"""FastAPI and uvicorn in a container behind aliquot-proxy: events, WebSockets by the websockets package,
and connections that uvicorn closes after five idle seconds."""

import concurrent.futures
import contextlib
import http.client
import json
import random
import sys
import time

import pytest

import fetched
import model_server
from cluster import wait_for
from images import Layout, folder
from model_service import SETTINGS, Serving
from python_image import pip_layer, python_layer
from runtimes import settings_of
from test_proxy import Proxied

PACKAGES = ("fastapi==0.165.0", "uvicorn==0.54.0", "websockets==17.4")


class ServingCluster(Serving, Proxied):
    pass


@pytest.fixture(name="cluster", scope="module")
def cluster_fixture():
    with ServingCluster(**{**settings_of("crun"), **SETTINGS}) as cluster:
        layout = Layout(cluster.folder / "layout")
        layout.image("fastapi", [python_layer(), pip_layer(*PACKAGES),
                                 model_server.program_layer(folder("tmp", mode=0o1777))])
        cluster.start_manager()
        cluster.start_agent()
        cluster.start_proxy()
        with cluster.service("talker", 2, image=layout.reference("fastapi"),
                             command="exec python3 /app/fastapi_server.py 8000",
                             health={"path": "/health", "interval": 1}) as cluster.talker:
            yield cluster
        cluster.check_audits()
        cluster.stop()


def connect(cluster, token=None, **more):
    site = str(fetched.python_packages(*PACKAGES))
    if site not in sys.path:
        sys.path.insert(0, site)
    from websockets.sync.client import connect as open_socket
    return open_socket(f"ws://127.0.0.1:{cluster.port}/serve/talker/talk", max_size=1 << 24, proxy=None,
                       additional_headers={"Authorization": f"Bearer {token or cluster.talker['token']}"},
                       **more)


def test_messages_go_both_ways(cluster):
    with connect(cluster, subprotocols=["chat.v1"]) as talk:
        assert talk.subprotocol == "chat.v1"
        for message in "hello", "", "\N{SNOWMAN}" * 1000, b"\0\1\2", b"x" * 5_000_000:
            talk.send(message)
            assert talk.recv(60) == message
        talk.send("count 1000")
        assert [talk.recv(60) for _ in range(1000)] == [str(number) for number in range(1000)]
        assert talk.ping().wait(60)
        talk.send("end")
        with pytest.raises(Exception, match="as you said"):
            talk.recv(60)
        assert talk.close_code == 4001


def test_a_socket_needs_a_token(cluster):
    with pytest.raises(Exception, match="401"):
        connect(cluster, "aqs-" + "x" * 43)


def test_many_sockets_are_on_both_replicas(cluster):
    with contextlib.ExitStack() as stack:
        talks = [stack.enter_context(connect(cluster)) for _ in range(40)]
        for number, talk in enumerate(talks):
            talk.send(str(number))
        assert [talk.recv(60) for talk in talks] == [str(number) for number in range(40)]
        wait_for(lambda: cluster.shown("talker")["figures"]["in_flight"] == 40, 30, "the figures")
    wait_for(lambda: cluster.shown("talker")["figures"]["in_flight"] == 0, 30, "their end in the figures")


def test_a_socket_outlives_the_request_timeout(cluster):
    cluster.change("talker", limits={"request_timeout": 1})
    with connect(cluster) as talk:
        time.sleep(2.5)
        talk.send("still there")
        assert talk.recv(60) == "still there"
    cluster.change("talker", limits={"request_timeout": 600})


def test_events_come_as_they_are_sent(cluster):
    connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", "/serve/talker/events?count=100000&pause=0.05",
                           headers={"Authorization": f"Bearer {cluster.talker['token']}"})
        answer = connection.getresponse()
        assert answer.headers["Content-Type"].startswith("text/event-stream")
        for number in range(10):  # a hundred thousand would take more than an hour
            assert answer.readline() == b"id: %d\n" % number
            assert json.loads(answer.readline()[6:]) == {"number": number}
            answer.readline()
    whole = cluster.request("GET", "/serve/talker/events?count=2000", token=cluster.talker["token"])[2]
    assert whole.count(b"\n\n") == 2000 and whole.endswith(b"{\"number\": 1999}\n\n")
    wait_for(lambda: cluster.shown("talker")["figures"]["in_flight"] == 0, 30, "the first one to end")


def test_no_request_meets_a_connection_that_is_being_closed(cluster):
    """uvicorn closes idle connections after 5 s, the proxy after 1.5 s; each client waits about as long
    before its next request."""
    headers = {"Authorization": f"Bearer {cluster.talker['token']}"}

    def ask(number):
        chance, failed = random.Random(number), []
        connection = http.client.HTTPConnection("127.0.0.1", cluster.port, timeout=60)
        with contextlib.closing(connection):
            for turn in range(10):
                try:
                    connection.request("POST", "/serve/talker/echo", b"%d" % turn, headers)
                    answer = connection.getresponse()
                    text = answer.read()
                    if answer.status != 200 or json.loads(text) != {"body": str(turn)}:
                        failed.append((answer.status, text))
                except (OSError, http.client.HTTPException) as error:
                    failed.append(repr(error))
                time.sleep((1.5 if turn % 2 else 5) + chance.uniform(-0.05, 0.05))
        return failed
    with concurrent.futures.ThreadPoolExecutor(100) as pool:
        assert not [one for failed in pool.map(ask, range(100)) for one in failed]
