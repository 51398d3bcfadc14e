# SPDX-License-Identifier: Apache-2.0
"""No key fills the memory of accepted requests for all."""

import pytest

from client import ADMIN, DOMAIN_ADMIN, USER, Client
from cluster import Cluster

REMEMBERED = 3000
V1 = "/aliquot/v1"


@pytest.fixture(scope="module")
def cluster():
    with Cluster(ALIQUOT_API_REMEMBERED_REQUESTS=str(REMEMBERED)) as cluster:
        cluster.start_manager()
        for key in (ADMIN, DOMAIN_ADMIN, USER):  # the rate limit would refuse them before
            assert cluster.client().send("PATCH", f"{V1}/keypairs/{key[0]}",
                                         {"rate_limit": 0}).status == 200
        yield cluster
        cluster.stop()


def change(client):
    """A request that is accepted once; what it asks for does not matter."""
    return client.post("/auth", {"echo": "x"})


def change_until_refused(client, most):
    for n in range(most):
        reply = change(client)
        if reply.status != 200:
            assert reply.status == 429 and reply.slug == "rate-limit-exceeded", reply
            return n
    raise AssertionError(f"{most} requests, and none was refused")


def test_one_key_has_a_part_of_it(cluster):
    greedy, other, third = (cluster.client(key) for key in (USER, DOMAIN_ADMIN, ADMIN))
    count = change_until_refused(greedy, REMEMBERED)
    assert REMEMBERED // 4 < count < REMEMBERED // 2
    assert greedy.get("/auth?echo=x").status == 200, "reading is not affected"
    assert all(change(other).status == 200 for _ in range(100))
    assert change(greedy).status == 429
    assert change_until_refused(other, REMEMBERED) > 100
    assert all(change(third).status == 200 for _ in range(100)), "two who are greedy are not all"


def test_a_key_that_is_not_known_takes_no_part(cluster):
    """Before the signature was checked nothing is remembered."""
    forger = Client(cluster.address, (DOMAIN_ADMIN[0], "not-its-secret"))
    unknown = Client(cluster.address, ("AKIAUNKNOWNUNKNOWNXX", "no-secret"))
    for client in (forger, unknown):
        assert {change(client).status for _ in range(REMEMBERED // 2)} == {401}
    assert change(cluster.client(ADMIN)).status == 200
