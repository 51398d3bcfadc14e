# SPDX-License-Identifier: Apache-2.0
"""A real etcd, API server and kube-schedulers, with nodes that are written by hand: no kubelet, so
pods that are bound stay as they are."""

import concurrent.futures
import json
import ssl
import time

from kube_api import Connection, Refused
from kubernetes import BRIDGE, PORT, Kubernetes

MEMORY, COMPUTE = "alnair/vgpu-memory", "alnair/vgpu-compute"
PODS = "/api/v1/namespaces/default/pods"
EXTENDER = {"urlPrefix": "http://127.0.0.1:9090", "filterVerb": "filter", "bindVerb": "bind",
            "preemptVerb": "preempt", "nodeCacheCapable": True, "ignorable": False, "weight": 1,
            "httpTimeout": "5s", "managedResources": [
                {"name": name, "ignoredByScheduler": False} for name in (MEMORY, COMPUTE)]}


def node(name, cards=8, memory=80, compute=100):
    text = json.dumps({"cards": [
        {"id": f"GPU-{name}-{card}", "model": "GPU", "memory": memory, "compute": compute,
         "numa": 0, "healthy": True} for card in range(cards)], "containers": []})
    has = {"cpu": "256", "memory": "1Ti", "pods": "500", MEMORY: str(memory * cards),
           COMPUTE: str(compute * cards)}
    return {"apiVersion": "v1", "kind": "Node",
            "metadata": {"name": name, "annotations": {"aliquot/cards": text},
                         "labels": {"kubernetes.io/hostname": name}},
            "status": {"capacity": has, "allocatable": has, "conditions": [
                {"type": "Ready", "status": "True", "reason": "KubeletReady"}]}}


def pod(name, scheduler, *amounts, **spec):
    """'amounts': (memory, compute) of each container."""
    containers = [{"name": f"c{number}", "image": "none", "resources": {"limits": {
        "cpu": "1", "memory": "1Gi", MEMORY: str(memory), COMPUTE: str(compute)}}}
        for number, (memory, compute) in enumerate(amounts)]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulerName": scheduler, "automountServiceAccountToken": False,
                     "tolerations": [{"operator": "Exists"}], "containers": containers, **spec}}


class ByHand(Kubernetes):
    """'extender': the program aliquot-k8s."""

    def start(self, nodes, extender):
        self.context = ssl.create_default_context(cafile=self.keys / "ca.crt")
        self.start_etcd()
        self.start_api_server()
        self.each("POST", "/api/v1/nodes", nodes)
        self.send("POST", "/api/v1/namespaces/default/serviceaccounts", {
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}})
        config = self.folder / "k8s.toml"
        config.write_text(f'[kubernetes]\nurl = "https://{BRIDGE}:{PORT}"\n'
                          f'token = "{self.keys}/admin.token"\nca = "{self.keys}/ca.crt"\n'
                          f'[scheduler]\nmetrics = "off"\n[webhook]\nlisten = "off"\n')
        self.add("extender", extender, "--config", config, "scheduler")
        self.wait(lambda: "all is known" in self.components["extender"].said())

    def add_scheduler(self, name, **more):
        """A kube-scheduler that serves this name alone."""
        self.add(name, self.kube, "scheduler", "--secure-port=0", "--config", self.write(
            f"{name}.yaml", {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration", "percentageOfNodesToScore": 100,
                "profiles": [{"schedulerName": name}], "leaderElection": {"leaderElect": False},
                "clientConnection": {"kubeconfig": str(self.kubeconfig()), "qps": 5000,
                                     "burst": 5000}, **more}))

    def wait(self, is_good, seconds=60):
        end = time.monotonic() + seconds
        while not is_good():
            assert time.monotonic() < end, {
                name: each.said()[-2000:] for name, each in self.components.items()
                if name not in ("etcd", "apiserver")}
            time.sleep(0.1)

    def ask(self, connection, method, path, body=None):
        connection.request(method, path, None if body is None else json.dumps(body), {
            "Authorization": f"Bearer {self.tokens['admin']}", "Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        if answer.status >= 300:
            raise Refused(answer.status, data.decode(errors="replace"))
        return json.loads(data)

    def send(self, *words):
        connection = Connection(self.space, (BRIDGE, PORT), self.context)
        try:
            return self.ask(connection, *words)
        finally:
            connection.close()

    def each(self, method, path, bodies, threads=4):
        """Each of them, by connections that are kept."""
        def some(first):
            connection = Connection(self.space, (BRIDGE, PORT), self.context)
            for body in bodies[first::threads]:
                self.ask(connection, method, path, body)
            connection.close()
        with concurrent.futures.ThreadPoolExecutor(threads) as pool:
            list(pool.map(some, range(threads)))

    def touch(self, node):
        """It changes, as when its plugin sees a container go. Then kube-scheduler asks again for who
        waits: it may have seen the pod go, and asked, before the extender saw it."""
        found = self.send("GET", f"/api/v1/nodes/{node}")
        found["metadata"]["annotations"]["touched"] = str(time.time())
        self.send("PUT", f"/api/v1/nodes/{node}", found)

    def bound(self):
        """{pod: (node, cards)} of those that have a node."""
        listed = self.send("GET", f"{PODS}?fieldSelector=spec.nodeName!=&resourceVersion=0")
        return {each["metadata"]["name"]: (each["spec"]["nodeName"], json.loads(
            each["metadata"].get("annotations", {}).get("aliquot/placement", "{}")))
            for each in listed["items"]}

    def why(self, name):
        """What kube-scheduler says of a pod that waits."""
        status = self.send("GET", f"{PODS}/{name}")["status"]
        return next((each["message"] for each in status.get("conditions", [])
                     if each["type"] == "PodScheduled" and "message" in each), "")
