# SPDX-License-Identifier: Apache-2.0
"""One manager and one agent for the whole suite, and who asks them."""

import itertools

import pytest

from client import ADMIN, DOMAIN_ADMIN, USER, Client
from cluster import Cluster, wait_for
from openapi import Document

numbers = itertools.count(1)


@pytest.fixture(scope="session")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="session")
def admin(cluster):
    return cluster.client(ADMIN)


@pytest.fixture(scope="session")
def domain_admin(cluster):
    return cluster.client(DOMAIN_ADMIN)


@pytest.fixture(scope="session")
def user(cluster):
    return cluster.client(USER)


@pytest.fixture(scope="session")
def nobody(cluster):
    return cluster.client(None)


@pytest.fixture(scope="session")
def routes(nobody):
    return nobody.get("/aliquot/v1/routes").json["routes"]


@pytest.fixture(scope="session")
def document(nobody):
    return Document(nobody.get("/spec/openapi").json)


@pytest.fixture(scope="session", autouse=True)
def answers_are_as_documented(cluster, document):
    """Every success that a test of this folder gets has a status and a media type that
    GET /spec/openapi names."""
    raw = Client.raw

    def checked(client, method, path, *args, **more):
        reply = raw(client, method, path, *args, **more)
        if client.address == cluster.address and method not in ("HEAD", "OPTIONS") \
                and 200 <= reply.status < 300:
            assert not (why := document.objections(method, path, reply)), (method, path, why)
        return reply

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "raw", checked)
        yield


@pytest.fixture(scope="session", autouse=True)
def no_rate_limit(admin):
    """The suite sends more requests than a user would."""
    for key in (ADMIN, DOMAIN_ADMIN, USER):
        assert admin.send("PATCH", "/aliquot/v1/keypairs/" + key[0],
                          {"rate_limit": 0}).status == 200


@pytest.fixture(scope="module", autouse=True)
def no_sessions_left(cluster, admin):
    """What a module leaves behind would hold the few processors that the next one needs."""
    yield
    for session in cluster.live_sessions():
        admin.delete(f"/session/{session['id']}?forced=true"
                     f"&owner_access_key={session['access_key']}")
    wait_for(lambda: not cluster.live_sessions(), what="all sessions to end")


@pytest.fixture
def name(request):
    """A session name of this test's own."""
    return f"t{next(numbers):04d}-{request.node.name[5:40].split('[')[0]}".rstrip("_-")
