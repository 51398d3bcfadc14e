# SPDX-License-Identifier: Apache-2.0
"""The webhook, between an API server that keeps its Secret and the requests of another."""

import base64
import contextlib
import http.client
import json
import re
import signal
import socket
import ssl
import subprocess
import time

import pytest

from fake_api_server import ApiServer, apply_steps
from world import BUILD, World

HOST = "aliquot-webhook.aliquot-system.svc"
SECRET = "aliquot-system/aliquot-webhook-certificate"
WAIT = 30


def wait_for(get, said):
    end = time.monotonic() + WAIT
    while not (value := get()):
        assert time.monotonic() < end, said()
        time.sleep(0.02)
    return value


class Cluster(ApiServer):
    """An API server with the two objects that come with the webhook."""

    def __init__(self):
        super().__init__()
        self.put_secret()
        self.objects.put("mutatingwebhookconfigurations", {
            "metadata": {"name": "aliquot"},
            "webhooks": [{"name": "a", "clientConfig": {}},
                         {"name": "b", "clientConfig": {"caBundle": "eA=="}}]})

    def put_secret(self, **data):
        space, name = SECRET.split("/")
        self.objects.put("secrets", {"metadata": {"name": name, "namespace": space},
                                     **({"data": data} if data else {})})

    def data(self, name):
        data = self.objects.get("secrets", SECRET).get("data", {})
        return base64.b64decode(data.get(name, "")).decode()

    def are_told(self):
        """Whether both webhooks have the authority."""
        authority = self.data("ca.crt")
        hooks = self.objects.get("mutatingwebhookconfigurations", "aliquot")["webhooks"]
        return authority and [base64.b64decode(hook["clientConfig"].get("caBundle", "")).decode()
                              for hook in hooks] == [authority] * 2


class Webhook:
    """One replica."""

    def __init__(self, world, api, name="", **settings):
        self.log = world.folder / f"log{name}"
        config = world.folder / f"k8s{name}.toml"
        settings = {"listen": "127.0.0.1:0", "check": "0.1s", **settings}
        config.write_text(f'[kubernetes]\nurl = "{api.url}"\ntoken = ""\n'
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
    with World() as world, Cluster() as api:
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


def review(connection, pod, **request):
    status, answer = send(connection, json.dumps({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {"uid": "1-2", "kind": {"group": "", "version": "v1", "kind": "Pod"},
                    "operation": "CREATE", "namespace": "default", "object": pod, **request}}).encode())
    response = json.loads(answer)["response"]
    assert status == 200 and response["uid"] == "1-2"
    if "patch" in response:
        apply_steps(pod, json.loads(base64.b64decode(response["patch"])))
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


def test_rights_of_the_node_are_refused_unless_the_settings_allow_them():
    settings = {"allow-capabilities": ["CAP_SYSLOG"], "allow-host-paths": "/data /mnt/sets"}

    def can(capability):
        return {"securityContext": {"capabilities": {"add": [capability]}}}

    with running(**settings) as (_, api, webhook):
        wait_for(api.are_told, webhook.said)
        with connect(webhook, api.data("ca.crt")) as api_server:
            for container, words in ((can("sys_ptrace"), "webhook.allow-capabilities"),
                                     (can("Cap_Sys_Module"), "'Cap_Sys_Module'"),
                                     (can("syslog"), None), (can("IPC_LOCK"), None)):
                ours = pod({"alnair/vgpu-memory": "8"})
                ours["spec"]["containers"][0].update(container)
                told = review(api_server, ours)
                assert told["allowed"] == (words is None), told
                assert words is None or words in told["status"]["message"]
            for path, allowed in (("/dev", False), ("/mnt", False), ("/mnt/sets/a", True)):
                volumes = [{"name": "v", "hostPath": {"path": path}}]
                told = review(api_server, pod({"alnair/vgpu-memory": "8"}, volumes=volumes))
                assert told["allowed"] == allowed, told
                assert allowed or "webhook.allow-host-paths" in told["status"]["message"]


def test_debug_containers_are_reviewed_when_they_are_added():
    privileged = {"name": "d", "securityContext": {"privileged": True}}
    with running() as (_, api, webhook):
        wait_for(api.are_told, webhook.said)
        with connect(webhook, api.data("ca.crt")) as api_server:
            def add(limits, container):
                return review(api_server, pod(limits, ephemeralContainers=[container]),
                              operation="UPDATE", subResource="ephemeralcontainers",
                              oldObject=pod(limits))

            refused = add({"alnair/vgpu-memory": "8"}, privileged)
            assert not refused["allowed"]
            assert "ephemeralContainers[0] 'd'" in refused["status"]["message"]
            assert add({"alnair/vgpu-memory": "8"}, {"name": "d", "targetContainerName": "c"}) == {
                "uid": "1-2", "allowed": True}
            assert add({"cpu": "1"}, privileged)["allowed"]


def test_certificate_is_kept_renewed_and_believed():
    with running(days=1) as (world, api, webhook):
        wait_for(api.are_told, webhook.said)
        first = api.data("ca.crt"), api.data("tls.crt")
        with connect(webhook, first[0]) as before:
            # somebody takes away whom the API server believes
            api.objects.patch("mutatingwebhookconfigurations", "aliquot", [
                {"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}])
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
        api.put_secret(**{"tls.crt": "eA==", "ca.crt": "!"})
        wait_for(lambda: api.data("ca.crt") not in ("", first[0]) and api.are_told(), webhook.said)
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
            assert [replica.said().count("made a certificate") for replica in
                    (webhook, *others)].count(1) == 1
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
        api.objects.delete("secrets", SECRET)
        wait_for(lambda: "no Secret aliquot-webhook-certificate: apply the manifests"
                 in webhook.said(), webhook.said)
        api.put_secret()
        wait_for(api.are_told, webhook.said)
