# SPDX-License-Identifier: Apache-2.0
"""Requests to each route of the manager: of an object that is there, and of one that is not."""

import json
import pathlib
import re
import uuid

from client import USER
from cluster import WAITS, batch, interactive, wait_status
from pipeline import Step

V1 = "/aliquot/v1"
ROUTES = pathlib.Path(__file__).with_name("routes.txt")


def read_routes():
    """(method, path) of each."""
    rows = [line.split() for line in ROUTES.read_text().splitlines() if not line.startswith("#")]
    return [(method, path) for _, method, path in rows]


class Objects:
    """What the requests are about."""

    def __init__(self, cluster):
        self.admin = cluster.client()
        for keypair in (self.admin.keypair, USER):
            assert self.admin.send("PATCH", f"{V1}/keypairs/{keypair[0]}",
                                   {"rate_limit": 0}).status == 200
        self.make_accounts()
        self.make_session()
        made = self.admin.post("/folders", {"name": "own", "host": "local:volume1"})
        assert made.status in (200, 201), made

    def make_accounts(self):
        post = self.admin.post
        for path, body in (("domains", {"name": "own"}), ("keypair-policies", {"name": "own"}),
                           ("resource-groups", {"name": "own"}),
                           ("users", {"email": "own@lablup.com", "domain": "default"})):
            made = post(f"{V1}/{path}", body)
            assert made.status == 201, made
        self.key = post(V1 + "/keypairs", {"user": "own@lablup.com"}).json["access_key"]
        made = post(V1 + "/groups", {"name": "own", "domain": "default"})
        assert made.status == 201, made
        self.project = made.json["id"]

    def make_session(self):
        made = self.admin.post("/session", interactive("box"))
        assert made.status == 201, made
        self.session = made.json["sessionId"]
        wait_status(self.admin, self.session, "RUNNING")

    def wait(self, client, name):
        made = client.post("/session", batch(name, "true", **WAITS))
        assert made.status == 201, made
        return made.json["sessionId"]

    def value(self, method, path, name):
        """Of the parameter of a route, that of an object which is there, if there may be one."""
        place = path.removeprefix(V1).split("/")[1]
        if place in ("session", "sessions", "stream"):
            is_harmless = method == "GET" or path.endswith("/files")
            return "box" if is_harmless else "waiting"
        known = {"agents": "agent" if method == "GET" else None, "folders": "own",
                 "domains": "own", "keypair-policies": "own", "resource-groups": "own",
                 "users": "own@lablup.com", "groups": self.project, "keypairs": self.key,
                 "image-aliases": "own", "registries": "own", "resource-presets": "own",
                 "export": "sessions", "scaling-groups": "default"}
        shares = {"resource_group": "default", "rg": "default", "domain": "default",
                  "project": self.project, "user": str(uuid.UUID(int=1))}
        return shares.get(name) if place == "fair-share" else known.get(place)


BODIES = {
    "/admin/gql": {"query": "{ keypair { access_key } agents { id } }"},
    "/admin/graphql": {"query": "{ user { email } nothing }"},
    "/session": {**batch("mark", "true", **WAITS), "reuseIfExists": True},
    f"{V1}/sessions/_/dry-run": batch("dry", "true"),
    "/folders": {"name": "own", "host": "local:volume1"},
    "/folders/{name}/mkdir": {"path": "a/b", "parents": True, "exist_ok": True},
    "/folders/{name}/request-upload": {"path": "file", "size": 10},
    "/folders/{name}/request-download": {"file": "file"},
    "/resource/check-presets": {"scaling_group": "default", "group": "default"},
    "/aliquot/v1/templates": {"name": "mark", "template": "x"},
}
QUERIES = {"/folders/{name}/files": "path=.", f"{V1}/sessions/{{name}}/files": "path=.",
           "/session/{name}/files": "path=.", "/auth": "echo=x", "/session/_/match": "id=box",
           "/events/background-task": "task_id=" + str(uuid.UUID(int=1)),
           "/events/session": "sessionId=" + str(uuid.UUID(int=1))}


class Signed:
    """Steps of one client."""

    def __init__(self, client):
        self.client = client

    def step(self, method, path, body=None, is_telling=False, **headers):
        def render(mark):
            return self.client.request(method, path.replace("{mark}", mark), body,
                                       {"Content-Length": "0"} if method != "GET" and body is None
                                       else headers)
        return Step(f"{method} {path} {json.dumps(body)}", render, is_telling)



def filled(path, value):
    """The path with values for its parameters, or None where there is none for one of them."""
    missing = []

    def put(match):
        found = value(match[1])
        missing.extend([match[1]] if found is None else [])
        return found or ""
    text = re.sub(r"\{(\w+)\}", put, path)
    return None if missing else text


def steps_of_all_routes(objects):
    """A request to each, and to those with parameters one that names nothing."""
    signed, steps = Signed(objects.admin), []
    for method, path in read_routes():
        query = "?" + QUERIES[path] if path in QUERIES else ""
        body = None if method in ("GET", "DELETE") else BODIES.get(path, {})
        places = {filled(path, lambda name, m=method, p=path: objects.value(m, p, name)),
                  filled(path, lambda name: "{mark}")} - {None}
        steps += [signed.step(method, place + query, body) for place in sorted(places)]
    return steps
