# SPDX-License-Identifier: Apache-2.0
"""Where people may sign up, a stranger can neither fill the cluster with accounts, nor find out
without end who has one, nor keep the manager busy with its hook."""

import concurrent.futures
import http.client
import json

import pytest

from client import Reply
from cluster import Cluster

FREE = 50  # tries of an address until there is a delay


@pytest.fixture
def cluster(request):
    with Cluster(ALIQUOT_API_TRUSTED_PROXIES="127.0.0.1", ALIQUOT_SIGNUP_ENABLED="true",
                 **getattr(request, "param", {})) as made:
        made.start_manager()
        yield made
        made.stop()


def sign_up(cluster, origin, email, password="long enough"):
    """As the proxy at 127.0.0.1 passes it on for 'origin'."""
    connection = http.client.HTTPConnection(*cluster.address, timeout=120)
    try:
        connection.request("POST", "/auth/signup",
                           json.dumps({"email": email, "password": password}).encode(),
                           {"Content-Type": "application/json", "X-Forwarded-For": origin})
        response = connection.getresponse()
        return Reply(response, response.read())
    finally:
        connection.close()


def test_an_address_makes_few_accounts(cluster):
    replies = [sign_up(cluster, f"2001:db8::{n:x}", f"flood{n}@example.com")
               for n in range(FREE + 20)]
    statuses = [reply.status for reply in replies]
    assert statuses[:FREE] == [201] * FREE, "one network of IPv6 is one address"
    assert 429 in statuses[FREE:] and set(statuses[FREE:]) <= {201, 429}
    refused = next(reply for reply in replies if reply.status == 429)
    assert refused.slug == "rate-limit-exceeded" and int(refused.headers["Retry-After"]) >= 1
    assert sign_up(cluster, "198.51.100.1", "other@example.com").status == 201
    assert cluster.client(None).post("/auth/authorize", {
        "type": "keypair", "domain": "default", "username": "user@lablup.com",
        "password": "C8qnIo29"}).status == 200


def test_who_has_an_account_is_not_told_without_end(cluster):
    statuses = [sign_up(cluster, "198.51.100.2", "admin@lablup.com").status for _ in range(20)]
    assert set(statuses) == {400, 429} and statuses.count(400) < 10


@pytest.mark.parametrize("cluster", [{"ALIQUOT_SIGNUP_HOOK_COMMAND": "/bin/sleep 1000",
                                      "ALIQUOT_SIGNUP_HOOK_TIMEOUT": "3s"}], indirect=True)
def test_a_slow_hook_holds_nobody_else_up(cluster):
    with concurrent.futures.ThreadPoolExecutor(40) as pool:
        asked = [pool.submit(sign_up, cluster, f"198.51.100.{n}", f"slow{n}@example.com")
                 for n in range(40)]
        assert cluster.client(None).get("/aliquot/v1/health", timeout=60).status == 200
        statuses = [reply.result().status for reply in asked]
    assert set(statuses) <= {429, 503} and statuses.count(429) > 0, statuses
    emails = [row["email"] for row in cluster.client().get(
        "/aliquot/v1/users?limit=1000").json["items"]]
    assert not [email for email in emails if email.startswith("slow")]


@pytest.mark.parametrize("cluster", [{"ALIQUOT_SIGNUP_HOOK_COMMAND": "/bin/sleep 1000",
                                      "ALIQUOT_SIGNUP_HOOK_TIMEOUT": "60s"}], indirect=True)
def test_a_manager_stops_with_a_hook_under_way(cluster):
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        asked = pool.submit(sign_up, cluster, "198.51.100.9", "late@example.com")
        cluster.client(None).get("/aliquot/v1/health")
        assert cluster.programs.pop("manager").stop() == 0
        with pytest.raises((OSError, http.client.HTTPException, AssertionError)):
            assert asked.result().status == 201
