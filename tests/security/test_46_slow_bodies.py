# SPDX-License-Identifier: Apache-2.0
"""Who loses a key, a role or an account loses it for requests, too, whose bodies are still on the way."""

import itertools
import json
import socket

import pytest

from client import Client
from cluster import Cluster

V1 = "/aliquot/v1"
numbers = itertools.count(1)


@pytest.fixture(name="boss", scope="module")
def boss_fixture():
    with Cluster() as cluster:
        cluster.start_manager()
        yield cluster.client()
        cluster.stop()


def ok(reply):
    assert 200 <= reply.status < 300, reply
    return reply.json if reply.body else None


class Slow:
    """A second superadmin's request, but for the end of its body; 'body' None: an empty one, in chunks."""

    def __init__(self, boss, method, path, body):
        email = f"second{next(numbers)}@lablup.com"
        self.user = ok(boss.post(V1 + "/users", {"email": email, "domain": "default",
                                                 "role": "superadmin", "password": "S0me-words-long"}))["id"]
        key = ok(boss.post(V1 + "/keypairs", {"user": email}))
        self.key = key["access_key"]
        client = Client(boss.address, (self.key, key["secret_key"]))
        data = json.dumps(body).encode() if body else b"0\r\n\r\n"
        lines = [f"{method} {path} HTTP/1.1", f"Host: {client.host}",
                 f"Content-Length: {len(data)}" if body else "Transfer-Encoding: chunked"]
        lines += [": ".join(each) for each in client.headers(method, path, "application/json").items()]
        self.sock, self.rest = socket.create_connection(client.address, timeout=60), data[-1:]
        self.sock.sendall("\r\n".join([*lines, "", ""]).encode() + data[:-1])
        assert client.get(V1 + "/agents").status == 200

    def finish(self):
        """The status."""
        with self.sock:
            self.sock.sendall(self.rest)
            return int(self.sock.makefile("rb").readline().split()[1])


def lose_nothing(_boss, _slow):
    pass


def lose_role(boss, slow):
    ok(boss.send("PATCH", f"{V1}/users/{slow.user}", {"role": "user"}))


def lose_key(boss, slow):
    ok(boss.send("PATCH", f"{V1}/keypairs/{slow.key}", {"is_active": False}))


def lose_account(boss, slow):
    ok(boss.delete(f"{V1}/users/{slow.user}"))


@pytest.mark.parametrize("lose", [lose_nothing, lose_role, lose_key, lose_account])
@pytest.mark.parametrize("form", ["rest", "gql", "empty"])
def test_what_is_lost_while_a_body_arrives(boss, form, lose):
    name = f"made{next(numbers)}"
    if form == "empty":
        ok(boss.post(V1 + "/domains", {"name": name}))
    method, path, body = {
        "rest": ("POST", V1 + "/domains", {"name": name}),
        "gql": ("POST", "/admin/gql", {"query": f'mutation {{create_domain(name: "{name}",'
                                                ' props: {description: "d"}) {ok msg}}'}),
        "empty": ("DELETE", f"{V1}/domains/{name}", None)}[form]
    slow = Slow(boss, method, path, body)
    lose(boss, slow)
    status = slow.finish()
    there = {row["name"]: row["is_active"]
             for row in ok(boss.get(V1 + "/domains?all=true"))["items"]}.get(name, False)
    assert there == ((form == "empty") != (lose is lose_nothing)), (status, there)
    assert status in ((200, 201, 204) if lose is lose_nothing else (409,)), status
