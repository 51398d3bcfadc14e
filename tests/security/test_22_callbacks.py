# SPDX-License-Identifier: Apache-2.0
"""Who makes a session names a URL that the manager connects to: it reaches public addresses, and
networks that an administrator lists, and nothing else of the machine or its neighbours."""

import json
import socket

import pytest

from client import ADMIN, USER
from cluster import WAITS, Cluster, batch, wait_for
from receivers import ADDRESS as LISTED, Listener


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Cluster(ALIQUOT_API_CALLBACK_NETWORKS=LISTED + "/32") as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


def make(client, name, url):
    return client.post("/session", batch(name, "true", callback_url=url, **WAITS))


def end(client, made):
    assert client.delete("/session/" + made.json["sessionId"]).status == 200


def test_the_session_of_a_listed_address_is_told(cluster):
    user = cluster.client(USER)
    with Listener(LISTED) as listener:
        made = make(user, "told", listener.url())
        assert made.status == 201, made
        wait_for(lambda: listener.told, what="the first event")
        end(user, made)
        wait_for(lambda: len(listener.told) == 2, what="the second event")
        for (path, kind, body), event in zip(listener.told, ("enqueued", "cancelled")):
            assert (path, kind) == ("/hook?a=b", "application/json")
            body = json.loads(body)
            when = body.pop("when")
            assert when.endswith("+00:00") and "T" in when
            assert body == {"type": "session_lifecycle", "event": event,
                            "session_id": made.json["sessionId"]}


@pytest.mark.parametrize("url", [
    "http://127.0.0.1:8081/", "http://localhost/", "http://[::1]:1/", "http://10.0.0.1/",
    "http://169.254.169.254/latest/meta-data", "http://192.168.1.1", "http://172.16.0.1",
    "http://[fd00::1]/", "http://[fe80::1]/", "http://[::ffff:127.0.0.1]/", "http://0.0.0.0/",
    "http://[64:ff9b::7f00:1]/", "http://127.0.0.3/", "http://100.64.0.1/",
    "ftp://example.org/", "ws://example.org/", "http://", "http://me@example.org/", "example.org",
    "unix:/run/x", "http://unix:/run/x", "x" * 1025])
def test_what_is_private_or_no_url_is_refused(cluster, url):
    reply = make(cluster.client(USER), "refused", url)
    assert (reply.status, reply.slug) == (400, "invalid-api-params"), reply
    assert list(reply.json["data"]) == ["callback_url"]


def test_a_name_of_a_private_address_is_not_connected_to(cluster):
    """127.1 is no literal to us, but a name that stands for 127.0.0.1. Messages of a user are
    sent one after another: when the second has come, the first was tried."""
    user = cluster.client(USER)
    with Listener("127.0.0.1") as private, Listener(LISTED) as listed:
        first = make(user, "by-name", private.url("127.1"))
        assert first.status == 201, first
        second = make(user, "after-it", listed.url())
        wait_for(lambda: listed.told, what="the listed one")
        assert private.connections == 0
        end(user, first)
        end(user, second)


def test_redirects_are_not_followed(cluster):
    user = cluster.client(USER)
    with Listener("127.0.0.1") as private, Listener(LISTED, 302) as listed:
        listed.location = private.url()
        made = make(user, "redirected", listed.url())
        wait_for(lambda: listed.told, what="the event")
        end(user, made)
        wait_for(lambda: len(listed.told) == 2, what="the next one, and so no other try of the first")
        assert private.connections == 0


def test_one_that_fails_is_tried_again(cluster):
    user = cluster.client(USER)
    with Listener(LISTED, 503, 200) as listener:
        made = make(user, "again", listener.url())
        wait_for(lambda: len(listener.told) == 2, 60, "another try")
        assert listener.told[0] == listener.told[1]
        end(user, made)


def test_a_user_whose_server_hangs_holds_up_nobody_else(cluster):

    user, admin = cluster.client(USER), cluster.client(ADMIN)
    with socket.socket() as silent, Listener(LISTED) as listener:
        silent.bind((LISTED, 0))
        silent.listen(1)
        hung = [make(user, f"hung-{n}", "http://%s:%d/" % silent.getsockname()) for n in range(120)]
        assert {reply.status for reply in hung} == {201}, "what is beyond is left out silently"
        made = make(admin, "not-hung", listener.url())
        wait_for(lambda: listener.told, what="the other user's")
        end(admin, made)


def test_a_network_that_is_none_is_refused():
    with Cluster(ALIQUOT_API_CALLBACK_NETWORKS="10.0.0.0/33") as cluster:
        with pytest.raises(AssertionError):
            cluster.start_manager()
        assert "'10.0.0.0/33' is no network" in cluster.programs["manager"].log.read_text()
