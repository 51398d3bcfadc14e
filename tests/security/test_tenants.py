# SPDX-License-Identifier: Apache-2.0
"""A foreign session is as if it did not exist: every route with its id and name, as another
user of the domain and as the administrator of another one."""

import json
import re
from urllib.parse import urlencode

import pytest

from client import DOMAIN_ADMIN, USER
from cluster import Cluster, wait_status

pytestmark = pytest.mark.gate


def person(admin, domain, project, email):
    """A new user's keypair."""
    made = admin.post("/aliquot/v1/users", {"email": email, "username": email.split("@")[0],
                                            "password": "longpassword", "domain": domain,
                                            "groups": [project]})
    assert made.status == 201, made
    made = admin.post("/aliquot/v1/keypairs", {"user": email, "resource_policy": "default",
                                               "rate_limit": 0})
    assert made.status == 201, made
    return made.json["access_key"], made.json["secret_key"]


class Victim:
    """A user with a session that runs, in all whose texts there is the mark."""

    def __init__(self, cluster, domain, project, mark):
        self.mark = mark
        self.key = person(cluster.client(), domain, project, f"{mark}@example.com")
        self.client = cluster.client(self.key)
        self.name = mark + "-name"
        made = self.client.post("/session", {
            "name": self.name, "image": "sh", "type": "batch", "tag": mark + "-tag",
            "startupCommand": f"echo {mark}-out; exec sleep 600",
            "config": {"resources": {"cpu": "1", "mem": "64m"},
                       "environ": {"TOKEN": mark + "-env"}}})
        assert made.status == 201, made
        self.id = made.json["sessionId"]
        self.shown = wait_status(self.client, self.id, "RUNNING")

    def names(self):
        return [self.id, self.id.replace("-", ""), self.name, self.name[:6],
                *(kernel["id"] for kernel in self.shown["kernels"])]


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.stop()


@pytest.fixture(scope="module")
def victims(cluster):
    """One in the attackers' domain, which the user must not see; one in another."""
    admin = cluster.client()
    assert admin.post("/aliquot/v1/domains", {"name": "other"}).status == 201
    assert admin.post("/aliquot/v1/groups", {"name": "theirs", "domain": "other"}).status == 201
    assert admin.post("/aliquot/v1/resource-groups/default/allow", {"domain": "other"}).status == 204
    for key in (USER, DOMAIN_ADMIN):
        assert admin.send("PATCH", "/aliquot/v1/keypairs/" + key[0],
                          {"rate_limit": 0}).status == 200
    return {"user": Victim(cluster, "default", "default", "zz1secret"),
            "domain-admin": Victim(cluster, "other", "theirs", "zz2secret")}


def needed(route):
    """What the route asks for, so that it is not refused for the want of it."""
    values = {"integer": 80, "texts": ["x"], "text": "x", "boolean": True, "object": {}, "json": {}}
    return {"mode": "query"} if any(param["name"] == "mode" for param in route["params"]) else {
        param["name"]: values[param["type"]] for param in route["params"]
        if param["required"] and param["type"] in values}


def requests(routes, victim):
    """Method, path and body of every route, with all that an attacker may know of the victim."""
    for route in routes:
        if route["access"] not in ("user", "admin"):
            continue
        owners = [None, victim.key[0]]
        for name in victim.names() if "{" in route["path"] else [victim.id]:
            for owner in owners:
                path = re.sub(r"\{\w+\}", name, route["path"])
                query = f"owner_access_key={owner}" if owner else "all=true"
                body = {"owner_access_key": owner} if owner else {"name": "taken-over"}
                more = needed(route)
                asked = "?" + urlencode(more, doseq=True) if more else ""
                if route["method"] == "GET":
                    yield "GET", f"{path}?{query}", None
                    yield "GET", path + asked, None
                    yield "GET", f"{path}?sessionId={victim.id}", None
                else:
                    yield route["method"], path, body
                    yield route["method"], f"{path}?{query}", None
                if more and owner:
                    yield route["method"], f"{path}{asked}&owner_access_key={owner}", None
                if more and route["method"] != "GET":
                    yield route["method"], path + asked, b"bytes"
                    yield route["method"], path, more
                    yield route["method"], path, {**more, "owner_access_key": victim.key[0]}


@pytest.mark.parametrize("who", ["user", "domain-admin"])
def test_no_route_shows_or_changes_what_is_foreign(cluster, victims, who):
    attacker = cluster.client({"user": USER, "domain-admin": DOMAIN_ADMIN}[who])
    victim = victims[who]
    routes = cluster.client(None).get("/aliquot/v1/routes").json["routes"]
    leaks, count = [], 0
    for method, path, body in requests(routes, victim):
        if path.startswith(("/events/", "/stream/")) or path.split("?")[0].endswith(("/exec", "/connect")):
            continue  # streams: below
        reply = attacker.send(method, path, body)
        said = reply.body.decode(errors="replace")
        for given in (*victim.names(), victim.key[0]):  # what it asked for may be named
            if given in path or given in str(body):
                said = said.replace(given, "")
        count += 1
        broken = reply.status >= 500 and reply.slug != "not-implemented"
        if broken or victim.mark in said or victim.id in said:
            leaks.append((method, path, body, reply))
    assert count > 300 and not leaks, leaks
    now = victim.client.get("/aliquot/v1/sessions/" + victim.id).json
    assert now["status"] == "RUNNING" and now["name"] == victim.name
    victim.shown = now


@pytest.mark.parametrize("who", ["user", "domain-admin"])
@pytest.mark.parametrize("path", ["/stream/session/{}/pty", "/stream/session/{}/apps",
                                  "/aliquot/v1/sessions/{}/exec",
                                  "/aliquot/v1/sessions/{}/connect?port=80",
                                  "/stream/session/{}/execute",
                                  "/stream/session/{}/tcpproxy?app=sshd",
                                  "/stream/session/{}/httpproxy?app=sshd",
                                  "/aliquot/v1/sessions/{}/logs?follow=true"])
def test_no_stream_opens_to_what_is_foreign(cluster, victims, who, path):
    attacker = cluster.client({"user": USER, "domain-admin": DOMAIN_ADMIN}[who])
    victim = victims[who]
    upgrade = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Version": "13",
               "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}
    for name in victim.names():
        for owner in ("", f"owner_access_key={victim.key[0]}"):
            full = path.format(name)
            full += ("&" if "?" in full else "?") + owner if owner else ""
            sock, _, head = attacker.stream(full, {} if "logs" in path else upgrade)
            sock.close()
            assert int(head.split()[1]) in (400, 403, 404), (full, head)
