# SPDX-License-Identifier: Apache-2.0
"""What was changed, by whom, is told to nobody whom it does not concern, and no secret is in it."""

import json

import pytest

from client import ADMIN, DOMAIN_ADMIN, USER, Client
from cluster import Cluster, batch

pytestmark = pytest.mark.gate

V1 = "/aliquot/v1"
LOG = V1 + "/audit-log"
HUSH = "Hush-0123456789"


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def other(cluster):
    """The administrator of another domain, to whose users and sessions things happen."""
    admin = cluster.client(ADMIN)
    made = [admin.post(V1 + "/domains", {"name": "other"}),
            admin.post(V1 + "/resource-groups/default/allow", {"domain": "other"}),
            admin.post(V1 + "/groups", {"name": "default", "domain": "other"}),
            admin.post(V1 + "/users", {"email": "chief@other.com", "domain": "other",
                                       "role": "admin", "password": HUSH})]
    key = admin.post(V1 + "/keypairs", {"user": "chief@other.com"}).json
    client = Client(cluster.address, (key["access_key"], key["secret_key"]))
    made += [client.post("/session", batch("others-work", f"echo {HUSH}", starts_at="1d",
                                           domain="other", group="default")),
             client.send("PATCH", V1 + "/sessions/others-work", {"priority": 11}),
             client.delete("/session/others-work"),
             client.post("/user-config/bootstrap-script", {"script": HUSH}),
             client.send("PATCH", "/auth/ssh-keypair")]
    assert all(reply.status < 300 for reply in made), made
    return client


@pytest.fixture(scope="module", autouse=True)
def cluster_wide(cluster, other):
    """What is of no domain, and of the other one."""
    admin = cluster.client(ADMIN)
    made = [admin.post(V1 + "/keypair-policies", {"name": "wide"}),
            admin.post(V1 + "/resource-groups", {"name": "wide"}),
            admin.post(V1 + "/join-tokens", {}),
            admin.send("PUT", V1 + "/resource-presets/wide", {"resource_slots": {"cpu": "1"}}),
            admin.send("PUT", "/manager/status", {"status": "running"}),
            cluster.client(USER).post("/session", batch("mine", f"echo {HUSH}", starts_at="1d"))]
    assert all(reply.status < 300 for reply in made), made


def rows(client, query=""):
    reply = client.get(f"{LOG}?limit=1000{query}")
    assert reply.status == 200, reply
    return reply.json["items"]


def test_each_administrator_sees_the_own_domain(cluster, other):
    everything = rows(cluster.client(ADMIN))
    assert {row["object_domain"] for row in everything} == {None, "default", "other"}
    for client, domain in ((other, "other"), (cluster.client(DOMAIN_ADMIN), "default")):
        mine = rows(client)
        assert mine and mine == [row for row in everything if row["object_domain"] == domain]


def test_no_filter_and_no_parameter_leads_out_of_it(cluster, other):
    mine = rows(other)
    for query in ("&filter=object_domain==%22default%22", "&user=user@lablup.com", "&object=mine",
                  "&object=join-token", "&action=create-join-token", "&object=wide",
                  "&filter=seq%3E0%20%7C%20object_domain==%22default%22"):
        assert all(row in mine for row in rows(other, query)), query
    refused = other.get(LOG + "?domain=default")
    assert (refused.status, refused.slug) == (403, "generic-forbidden")
    assert cluster.client(USER).get(LOG).status == 401


def test_there_are_no_secrets_in_it(cluster, other):
    text = json.dumps(rows(cluster.client(ADMIN)))
    for secret in (HUSH, other.keypair[1], ADMIN[1], "PRIVATE KEY", "ssh-ed25519 AAAA", "$argon2"):
        assert secret not in text, secret


def test_who_asks_is_whose_signature_it_is(cluster, other):
    """Not what a header or the body says."""
    client = cluster.client(USER)
    path = V1 + "/sessions/mine"
    headers = {**client.headers("PATCH", path, "application/json"),
               "X-Forwarded-For": "203.0.113.9", "X-Request-ID": "\"; DROP" + "x" * 100}
    assert client.raw("PATCH", path, b'{"priority": 12}', headers).status == 204
    [row] = rows(cluster.client(ADMIN), "&action=set-session-priority&user=user@lablup.com")
    assert (row["access_key"], row["address"]) == (USER[0], "127.0.0.1")
    assert len(row["request_id"]) == 36
    refused = client.send("PATCH", path, {"priority": 13, "owner_access_key": other.keypair[0]})
    assert refused.status in (400, 403)
    assert len(rows(cluster.client(ADMIN), "&action=set-session-priority&user=user@lablup.com")) == 1
