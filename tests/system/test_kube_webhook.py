# SPDX-License-Identifier: Apache-2.0
"""The webhook, between an API server that keeps its Secret and the requests of another."""

import base64
import contextlib
import http.client
import http.server
import json
import re
import signal
import socket
import ssl
import subprocess
import threading
import time

import pytest

from world import BUILD, World

HOST = "aliquot-webhook.aliquot-system.svc"
SECRET = "/api/v1/namespaces/aliquot-system/secrets/aliquot-webhook-certificate"
CONFIGURATION = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/aliquot"
WAIT = 30


def wait_for(get, said):
    end = time.monotonic() + WAIT
    while not (value := get()):
        assert time.monotonic() < end, said()
        time.sleep(0.02)
    return value


class Conflict(Exception):
    pass


class ApiServer(http.server.ThreadingHTTPServer):
    """Two objects, their versions, and the two kinds of patches that are sent for them."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.version = 1
        self.objects = {
            SECRET: {"metadata": {"name": "aliquot-webhook-certificate", "resourceVersion": "1"}},
            CONFIGURATION: {"metadata": {"name": "aliquot", "resourceVersion": "1"},
                            "webhooks": [{"name": "a", "clientConfig": {}},
                                         {"name": "b", "clientConfig": {"caBundle": "eA=="}}]}}
        self.writes = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def change(self, path, change):
        with self.lock:
            change(self.objects[path])
            self.version += 1
            self.objects[path]["metadata"]["resourceVersion"] = str(self.version)

    def data(self, name):
        with self.lock:
            return base64.b64decode(self.objects[SECRET].get("data", {}).get(name, "")).decode()

    def bundles(self):
        with self.lock:
            return [base64.b64decode(hook["clientConfig"].get("caBundle", "")).decode()
                    for hook in self.objects[CONFIGURATION]["webhooks"]]

    def are_told(self):
        authority = self.data("ca.crt")
        return authority and self.bundles() == [authority] * 2


def apply_json_patch(target, patch):
    for step in patch:
        *parents, last = step["path"].split("/")[1:]
        at = target
        for name in parents:
            name = name.replace("~1", "/").replace("~0", "~")
            at = at[int(name)] if isinstance(at, list) else at[name]
        last = last.replace("~1", "/").replace("~0", "~")
        if step["op"] == "test":
            if at.get(last) != step["value"]:
                raise Conflict
        elif step["op"] == "add":
            at[last] = step["value"]
        else:
            assert step["op"] == "remove"
            del at[last]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status, value):
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with self.server.lock:
            found = self.server.objects.get(self.path)
        self.answer(200 if found else 404, found or {"kind": "Status", "message": "not found"})

    def do_PATCH(self):
        patch = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_merge = self.headers["Content-Type"] == "application/merge-patch+json"
        wanted = patch["metadata"]["resourceVersion"] if is_merge else None
        with self.server.lock:
            target = self.server.objects[self.path]
            if is_merge and wanted != target["metadata"]["resourceVersion"]:
                self.answer(409, {"kind": "Status", "reason": "Conflict", "message": "changed"})
                return
        try:
            self.server.change(self.path, lambda target: target.update(data=patch["data"])
                               if is_merge else apply_json_patch(target, patch))
        except Conflict:
            self.answer(422, {"kind": "Status", "message": "changed"})
            return
        self.server.writes.append(self.path)
        self.answer(200, self.server.objects[self.path])


class Webhook:
    """One replica."""

    def __init__(self, world, api, name="", **settings):
        self.log = world.folder / f"log{name}"
        config = world.folder / f"k8s{name}.toml"
        settings = {"listen": "127.0.0.1:0", "check": "0.1s", **settings}
        config.write_text(f'[kubernetes]\nurl = "http://127.0.0.1:{api.server_port}"\ntoken = ""\n'
                          f'namespace = "aliquot-system"\n[scheduler]\nlisten = "unix:{world.folder}/{name}.sock"'
                          '\nmetrics = "off"\n[webhook]\n'
                          + "".join(f"{key.replace('_', '-')} = {json.dumps(value)}\n"
                                    for key, value in settings.items()))
        with self.log.open("w") as log:
            self.process = subprocess.Popen([BUILD / "aliquot-k8s", "--config", config, "scheduler"],
                                            env=world.env, stdin=subprocess.DEVNULL, stderr=log)

    def said(self):
        return self.log.read_text()

    def port(self):
        return int(wait_for(lambda: re.search(r"listens on port (\d+)", self.said()),
                            self.said)[1])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(30) == 0, self.said()
        assert "Sanitizer" not in self.said(), self.said()


@contextlib.contextmanager
def running(**settings):
    with World() as world, contextlib.closing(ApiServer()) as api:
        api.close = lambda: (api.shutdown(), api.server_close())
        webhook = Webhook(world, api, **settings)
        try:
            yield world, api, webhook
            webhook.stop()
        finally:
            webhook.process.kill()


def connect(webhook, authority):
    """As an API server does: by the Service's name, believing the authority alone."""
    context = ssl.create_default_context(cadata=authority)
    return context.wrap_socket(socket.create_connection(("127.0.0.1", webhook.port()), 30),
                               server_hostname=HOST)


def send(connection, body, path="/mutate?timeout=5s"):
    connection.sendall(f"POST {path} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
    answer = http.client.HTTPResponse(connection)
    answer.begin()
    return answer.status, answer.read()


def review(connection, pod):
    status, answer = send(connection, json.dumps({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "1-2", "kind": {"group": "", "version": "v1", "kind": "Pod"},
                    "operation": "CREATE", "namespace": "default", "object": pod}}).encode())
    response = json.loads(answer)["response"]
    assert status == 200 and response["uid"] == "1-2"
    if "patch" in response:
        apply_json_patch(pod, json.loads(base64.b64decode(response["patch"])))
    return response


def pod(limits, **spec):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "a-"},
            "spec": {"schedulerName": "default-scheduler",
                     "containers": [{"name": "c", "resources": {"limits": limits}}], **spec}}


@pytest.mark.gate
def test_pods_are_changed_or_refused():
    with running(hami=True) as (_, api, webhook):
        wait_for(api.are_told, webhook.said)
        with connect(webhook, api.data("ca.crt")) as api_server:
            ours = pod({"alnair/vgpu-memory": "8", "alnair/vgpu-compute": "50"})
            assert review(api_server, ours)["allowed"]
            resources = ours["spec"]["containers"][0]["resources"]
            assert resources["limits"] == resources["requests"] == {"alnair/vgpu-memory": "8",
                                                                    "alnair/vgpu-compute": "50"}
            assert ours["spec"]["schedulerName"] == "aliquot"
            hami = pod({"cpu": "1", "nvidia.com/gpumem": "3k"})
            assert "became alnair/vgpu-memory 3" in review(api_server, hami)["warnings"][0]
            assert hami["spec"]["containers"][0]["resources"]["limits"] == {
                "cpu": "1", "alnair/vgpu-memory": "3"}
            refused = review(api_server, pod({"alnair/vgpu-memory": "8"}, hostPID=True))
            assert not refused["allowed"] and "hostPID" in refused["status"]["message"]
            other = pod({"cpu": "1"}, hostPID=True)
            assert review(api_server, other) == {"uid": "1-2", "allowed": True}


def test_certificate_is_kept_renewed_and_believed():
    with running(days=1) as (world, api, webhook):
        wait_for(api.are_told, webhook.said)
        first = api.data("ca.crt"), api.data("tls.crt")
        with connect(webhook, first[0]) as before:
            # somebody takes away whom the API server believes
            api.change(CONFIGURATION, lambda target: target["webhooks"][0]["clientConfig"].clear())
            wait_for(api.are_told, webhook.said)
            assert api.data("ca.crt") == first[0]
            # another replica takes what is there, and with a longer life it is near its end
            second = Webhook(world, api, "2", days=90)
            try:
                wait_for(lambda: api.data("tls.crt") != first[1], second.said)
                assert api.data("ca.crt") == first[0], "the authority lives on"
                serial = ssl.PEM_cert_to_DER_cert(api.data("tls.crt"))
                for replica in (webhook, second):
                    wait_for(lambda: shown(replica, first[0]) == serial, replica.said)
                second.stop()
            finally:
                second.process.kill()
            assert review(before, pod({"alnair/vgpu-memory": "8"}))["allowed"]
        # what is no certificate is another's mistake
        api.change(SECRET, lambda target: target.update(data={"tls.crt": "eA==", "ca.crt": "!"}))
        wait_for(lambda: api.are_told() and api.data("ca.crt") != first[0], webhook.said)
        wait_for(lambda: is_believed(webhook, api.data("ca.crt")), webhook.said)


def shown(webhook, authority):
    with connect(webhook, authority) as connection:
        return connection.getpeercert(True)


def is_believed(webhook, authority):
    try:
        return shown(webhook, authority)
    except ssl.SSLCertVerificationError:
        return None


def test_replicas_agree():
    with running() as (world, api, webhook):
        others = [Webhook(world, api, str(i)) for i in range(3)]
        try:
            wait_for(api.are_told, webhook.said)
            serial = ssl.PEM_cert_to_DER_cert(api.data("tls.crt"))
            assert [shown(replica, api.data("ca.crt")) for replica in (webhook, *others)] == [
                serial] * 4
            assert api.writes.count(SECRET) == 1
            for other in others:
                other.stop()
        finally:
            for other in others:
                other.process.kill()


def test_what_is_no_review():
    with running() as (_, api, webhook):
        wait_for(api.are_told, webhook.said)
        for body, path, wanted in ((b"{", "/mutate", 400), (b"[" * 100000, "/mutate", 400),
                                   (b"{}", "/mutate?timeout=1s", 400), (b"{}", "/other", 404),
                                   (b" " * (3 << 20) + b"{}", "/mutate", 413)):
            with connect(webhook, api.data("ca.crt")) as connection:
                assert send(connection, body, path)[0] == wanted, path
        with socket.create_connection(("127.0.0.1", webhook.port()), 30) as plain:
            plain.sendall(b"POST /mutate HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
            with contextlib.suppress(ConnectionResetError):
                assert not plain.recv(100).startswith(b"HTTP")


def test_objects_that_are_missing_are_named():
    with running() as (_, api, webhook):
        secret = api.objects.pop(SECRET)
        wait_for(lambda: "no Secret aliquot-webhook-certificate: apply the manifests"
                 in webhook.said(), webhook.said)
        api.objects[SECRET] = secret
        wait_for(api.are_told, webhook.said)
