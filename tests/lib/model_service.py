# SPDX-License-Identifier: Apache-2.0
"""Model services for tests with real containers: a cluster that makes them by REST, and a client of
OpenAI's API as pip installs it."""

import contextlib
import http.client
import json
import sys
import urllib.parse

import fetched
from client import USER
from cluster import GONE, wait_for

PATH = "/aliquot/v1/model-services"
OPENAI = "openai==3.57.0"
RESOURCES = {"cpu": "1", "mem": "256m"}
SETTINGS = {"ALIQUOT_RESOURCE_CPUS": "32", "ALIQUOT_IMAGE_ALLOW": "* host oci:/",
            "ALIQUOT_IMAGE_KEEP_FREE": "0", "ALIQUOT_SESSIONS_KILL_GRACE": "5s"}


def openai():
    """The client's package."""
    site = str(fetched.python_packages(OPENAI))
    if site not in sys.path:
        sys.path.insert(0, site)
    import openai as package
    return package


class Serving:
    """Beside Proxied: a cluster with model services of an ordinary user."""

    @property
    def user(self):
        return self.client(USER)

    @contextlib.contextmanager
    def service(self, name, replicas=1, count=None, **more):
        """A service with as many ready replicas; {"id", "url", "token" ...}."""
        reply = self.user.post(PATH, {"name": name, "replicas": replicas, "resources": RESOURCES,
                                      "port": 8000, **more})
        assert reply.status == 201, reply
        made = reply.json
        try:
            self.wait_ready(name, replicas if count is None else count)
            yield {**made, **self.shown(name), "token": self.token_of(name)}
        finally:
            self.remove(name, made["id"])

    def token_of(self, name, **more):
        """A token that every proxy knows."""
        reply = self.user.post(f"{PATH}/{name}/tokens", more)
        assert reply.status == 201, reply
        token = reply.json["token"]
        path = (more.get("paths") or ["/"])[0]
        wait_for(lambda: self.request("OPTIONS", f"/serve/{name}{path}", token=token)[0] != 401, 60,
                 "the token to be known")
        return token

    def shown(self, name):
        return self.user.get(f"{PATH}/{name}").json

    def change(self, name, **more):
        reply = self.user.send("PATCH", f"{PATH}/{name}", more)
        assert reply.status == 200, reply

    def deploy(self, name, **more):
        """The number of a new revision."""
        reply = self.user.post(f"{PATH}/{name}/revisions", more)
        assert reply.status == 201, reply
        return self.shown(name)["revision"]["number"]

    def wait_ready(self, name, count, revision=None, seconds=240):
        """Until so many replicas are ready, and no other is there."""
        def is_ready():
            with contextlib.suppress(*GONE):
                there = self.shown(name)["replica_list"]
                return len(there) == count and all(
                    one["health"] == "ready" and revision in (None, one["revision"]) for one in there)
            return False
        wait_for(is_ready, seconds, lambda: f"{count} ready replicas: {self.shown(name)}")

    def remove(self, name, service):
        self.user.delete(f"{PATH}/{name}", {"force": True})
        wait_for(lambda: self.shown(service)["status"] == "ended", 60, f"the end of {name}")

    def request(self, method, path, body=None, token=None, timeout=120, **headers):
        """Status, headers and body of the proxy's answer."""
        if token:
            headers["Authorization"] = f"Bearer {token}"
        if isinstance(body, dict):
            body = json.dumps(body)
            headers["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()

    def llama_figure(self, service, name):
        """Of the metrics of the only replica, which is llama.cpp."""
        path = urllib.parse.urlsplit(service["url"]).path + "metrics"
        text = self.request("GET", path, token=service["token"])[2].decode()
        return next(float(line.split()[1]) for line in text.splitlines()
                    if line.startswith(f"llamacpp:{name} "))
