# SPDX-License-Identifier: Apache-2.0
"""Requests of tests to an API server of Kubernetes, in whichever network it is."""

import contextlib
import http.client
import json
import ssl
import urllib.parse

from cluster import GONE, wait_for

JSON = "application/json"
APPLY = "application/apply-patch+yaml"  # of which JSON is a part
MERGE = "application/merge-patch+json"
PODS = "v1/Pod"
BASE = "docker.io/aliquot/base:1"  # an image that all nodes have
ENDED = ("Succeeded", "Failed")


class Refused(Exception):
    """An answer that is no success: its status, and what the API server says."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body}")
        self.status, self.body = status, body


def shown(thing):
    """What a failed test says of it; of containers, whose devices are many, their states."""
    if not isinstance(thing, dict):
        return thing
    status = {**thing.get("status", thing)}
    for key in ("initContainerStatuses", "containerStatuses"):
        if key in status:
            status[key] = {each["name"]: each["state"] for each in status[key]}
    return {key: status[key] for key in status if key != "conditions"}


class Connection(http.client.HTTPSConnection):
    def __init__(self, space, address, context):
        super().__init__(*address, timeout=60, context=context)
        self.space = space

    def connect(self):
        self.sock = self._context.wrap_socket(self.space.connect((self.host, self.port)),
                                              server_hostname=self.host)


class Api:
    """What has this token's rights. Kinds are written VERSION/KIND: v1/Pod, apps/v1/DaemonSet."""

    def __init__(self, space, address, ca, token):
        self.space, self.address, self.token = space, address, token
        self.context = ssl.create_default_context(cafile=ca)
        self.kinds = {}

    def send(self, method, path, body=None, form=JSON):
        """The body of the answer, as bytes."""
        connection = Connection(self.space, self.address, self.context)
        try:
            connection.request(method, path, None if body is None else json.dumps(body), {
                "Authorization": f"Bearer {self.token}", "Content-Type": form})
            answer = connection.getresponse()
            data = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(answer.status, data.decode(errors="replace"))
        return data

    def call(self, *words, **more):
        return json.loads(self.send(*words, **more))

    def path(self, kind, name=None, namespace=None, part=None, **query):
        version, _, singular = kind.rpartition("/")
        top = f"/apis/{version}" if "/" in version else f"/api/{version}"
        if kind not in self.kinds:
            self.kinds[kind] = next(
                each["name"] for each in self.call("GET", top)["resources"]
                if each["kind"] == singular and "/" not in each["name"])
        words = [top, *(["namespaces", namespace] if namespace else []), self.kinds[kind],
                 *filter(None, (name, part))]
        return "/".join(words) + (f"?{urllib.parse.urlencode(query)}" if query else "")

    def get(self, kind, name, namespace=None):
        return self.call("GET", self.path(kind, name, namespace))

    def list(self, kind, namespace=None, **query):
        return self.call("GET", self.path(kind, None, namespace, **query))["items"]

    def create(self, body):
        where = self.path(f"{body['apiVersion']}/{body['kind']}", None,
                          body["metadata"].get("namespace"))
        return self.call("POST", where, body)

    def apply(self, *bodies):
        """As 'kubectl apply --server-side' does; the last one as it is now."""
        for body in bodies:
            meta = body["metadata"]
            where = self.path(f"{body['apiVersion']}/{body['kind']}", meta["name"],
                              meta.get("namespace"), fieldManager="test", force="true")
            now = self.call("PATCH", where, body, form=APPLY)
        return now

    def patch(self, kind, name, body, namespace=None, part=None):
        return self.call("PATCH", self.path(kind, name, namespace, part), body, form=MERGE)

    def delete(self, kind, name, namespace=None, **query):
        return self.call("DELETE", self.path(kind, name, namespace, **query))

    def wait(self, kind, name, is_good, namespace=None, seconds=60):
        """The thing once is_good(thing)."""
        seen = {}

        def look():
            try:
                seen["it"] = self.get(kind, name, namespace)
            except (Refused, *GONE) as error:
                seen["it"] = str(error)
                return None
            return seen["it"] if is_good(seen["it"]) else None
        return wait_for(look, seconds, lambda: f"{kind} {name}, which is {shown(seen['it'])}")

    def wait_gone(self, kind, name, namespace=None, seconds=60):
        def is_gone():
            try:
                self.get(kind, name, namespace)
            except Refused as refusal:
                return refusal.status == 404
        wait_for(is_gone, seconds, f"{kind} {name} to go")


class Namespace:
    """A namespace of a test's own, and its pods."""

    def __init__(self, api, name):
        self.api, self.name = api, name
        api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        api.wait("v1/ServiceAccount", "default", bool, name)  # pods cannot be made before

    def apply(self, kind, name, **body):
        version, _, singular = kind.rpartition("/")
        return self.api.apply({"apiVersion": version, "kind": singular, **body, "metadata": {
            "name": name, "namespace": self.name, **body.get("metadata", {})}})

    def pod(self, name, *containers, **spec):
        """Made; each container a dict, with defaults."""
        metadata = spec.pop("metadata", {})
        return self.apply(PODS, name, metadata=metadata, spec={
            "containers": list(containers), "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1, "automountServiceAccountToken": False,
            "enableServiceLinks": False, **spec})

    def get(self, name):
        return self.api.get(PODS, name, self.name)

    def wait(self, name, is_good, seconds=60):
        return self.api.wait(PODS, name, is_good, self.name, seconds)

    def wait_phase(self, name, *phases, seconds=60):
        """Or a failure at once, if it has ended otherwise."""
        reached = self.wait(name, lambda pod: pod["status"].get("phase") in (*phases, *ENDED),
                            seconds)
        assert reached["status"]["phase"] in phases, (shown(reached), self.logs(reached))
        return reached

    def log(self, name, container="main"):
        where = self.api.path(PODS, name, self.name, "log", container=container)
        return self.api.send("GET", where).decode()

    def logs(self, pod):
        """What all of its containers say, as far as it can be had."""
        names = [each["name"] for key in ("initContainers", "containers")
                 for each in pod["spec"].get(key, [])]
        found = {}
        for name in names:
            with contextlib.suppress(Refused):
                found[name] = self.log(pod["metadata"]["name"], name)
        return found

    def run(self, name, *containers, **spec):
        """A pod to its end: what its first container says."""
        self.pod(name, *containers, **spec)
        self.wait_phase(name, "Succeeded")
        return self.log(name, containers[0]["name"])

    def events(self, name):
        """'Reason: message' of each that is about this."""
        return [f"{event['reason']}: {event['message']}"
                for event in self.api.list("v1/Event", self.name,
                                           fieldSelector=f"involvedObject.name={name}")]

    def wait_event(self, name, *texts, seconds=60):
        def look():
            return next((event for event in self.events(name)
                         if all(text in event for text in texts)), None)
        return wait_for(look, seconds, lambda: f"an event with {texts}: {self.events(name)}")

    def remove(self, name):
        self.api.delete(PODS, name, self.name)
        self.api.wait_gone(PODS, name, self.name)

    def end(self):
        """All pods are gone then, also from their nodes; the namespace goes by itself."""
        self.api.call("DELETE", self.api.path(PODS, None, self.name))
        wait_for(lambda: not self.api.list(PODS, self.name), 60, f"the pods of {self.name} to go")
        self.api.delete("v1/Namespace", self.name)


def container(command, name="main", image=BASE, limits=None, **more):
    """A container that runs a command of the shell."""
    return {"name": name, "image": image, "command": ["sh", "-c", command],
            "imagePullPolicy": "IfNotPresent",
            "resources": {"limits": {key: str(value) for key, value in (limits or {}).items()}},
            **more}
