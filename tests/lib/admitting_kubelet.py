# SPDX-License-Identifier: Apache-2.0
"""A kubelet that admits pods of an API server as a real one does: it keeps the ids of each resource,
asks plugins for one resource after the other in any order, and rejects a pod at the first error.

A pod's ids are free for the next admission once its containers have ended, or it has gone from the
API server. Containers run no program.
"""

import random
import threading
import time

import grpc

from fake_kubelet import CLASSES, Kubelet

RUNNING_ID = "containerd://%032x"


class AdmittingKubelet(Kubelet):
    """'seed' decides orders and delays."""

    def __init__(self, folder, api, node="n1", seed=1):
        super().__init__(folder)
        self.objects, self.node = api.objects, node
        self.random = random.Random(seed)
        self.known, self.given = {}, {}   # uid: pod; (uid, container): {resource: ids}
        self.ended = set()                # uids of pods whose containers have ended, or were rejected
        self.stopping, self.timers = threading.Event(), []
        self.lock, self.admission = threading.RLock(), threading.Lock()
        self.rejected = []                # (pod, why)
        self.admitted = 0

    # ---- what is held ----

    def active(self):
        return {uid for uid in self.known if uid not in self.ended}

    def held(self, resource):
        with self.lock:
            active = self.active()
            self.given = {key: ids for key, ids in self.given.items() if key[0] in active}
            return {id for ids in self.given.values() for id in ids.get(resource, ())}

    def on_list(self, _, __):
        answer = CLASSES["ListPodResourcesResponse"]()
        with self.lock:
            for uid in self.active():
                meta, spec = self.known[uid]["metadata"], self.known[uid]["spec"]
                pod = answer.pod_resources.add(name=meta["name"], namespace=meta["namespace"])
                for each in spec["containers"]:
                    self.show(pod, each["name"], self.given.get((uid, each["name"]), {}))
        return answer

    # ---- admission ----

    def take(self, pod, container, resource, size, reusable):
        uid, name = pod["metadata"]["uid"], container["name"]
        chosen = set(self.random.sample(sorted(reusable), min(size, len(reusable))))
        plugin = self.plugins[resource]
        if len(chosen) < size:
            healthy = {id for id, device in plugin.lists[-1].items() if device.health == "Healthy"}
            free = healthy - self.held(resource)
            if len(free) < size - len(chosen):
                raise ValueError(f"{size} of {resource} requested, {len(free)} available")
            asked = sorted(free | chosen)
            self.random.shuffle(asked)
            chosen |= set(plugin.prefer(asked, size, sorted(chosen))) & free
            chosen |= set(self.random.sample(sorted(free - chosen), size - len(chosen)))
        plugin.allocate(sorted(chosen))
        with self.lock:
            self.given.setdefault((uid, name), {})[resource] = sorted(chosen)
        return chosen

    def give(self, pod):
        spec, reusable = pod["spec"], {}
        for is_init, each in [*((True, each) for each in spec.get("initContainers", [])),
                              *((False, each) for each in spec["containers"])]:
            limits = list(each["resources"]["limits"].items())
            self.random.shuffle(limits)
            for resource, size in limits:
                again = reusable.setdefault(resource, set())
                chosen = self.take(pod, each, resource, int(size), again)
                reusable[resource] = again | chosen if is_init else again - chosen
            with self.lock:
                self.record(*((uid, name, resource, ids) for (uid, name), some in self.given.items()
                              for resource, ids in some.items()))

    def admit(self, pod):
        with self.lock:
            self.known[pod["metadata"]["uid"]] = pod
        try:
            self.give(pod)
        except (grpc.RpcError, ValueError) as why:
            self.ended.add(pod["metadata"]["uid"])
            self.rejected.append((pod["metadata"]["name"], str(why)))
            self.set_status(pod, phase="Failed", reason="UnexpectedAdmissionError")
            return
        self.admitted += 1
        self.set_status(pod, phase="Running", containerStatuses=[
            {"name": each["name"], "state": {"running": {}},
             "containerID": RUNNING_ID % self.random.getrandbits(128)}
            for each in pod["spec"]["containers"]])

    def set_status(self, pod, **status):
        """Unless it has gone, or another one has its name."""
        key = self.objects.key(pod)
        with self.objects.changed:
            known = self.objects.items["pods"].get(key)
            if known and known["metadata"]["uid"] == pod["metadata"]["uid"]:
                self.objects.patch("pods", key, {"status": status})

    # ---- what the API server says ----

    def end_pod(self, pod, phase):
        """Its containers end after a while; only then the API server hears so."""
        def end():
            self.ended.add(pod["metadata"]["uid"])
            if phase:
                self.set_status(pod, phase=phase)
                return
            with self.objects.changed:
                known = self.objects.items["pods"].get(self.objects.key(pod))
                if known and known["metadata"]["uid"] == pod["metadata"]["uid"]:
                    self.objects.delete("pods", self.objects.key(pod))
        timer = threading.Timer(self.random.uniform(0, 0.1), end)
        timer.daemon = True
        timer.start()
        self.timers.append(timer)

    def look(self):
        """As a kubelet: first what has gone, then what is new, older ones before."""
        with self.objects.changed:
            there = {pod["metadata"]["uid"]: pod for pod in self.objects.all("pods")
                     if pod["spec"].get("nodeName") == self.node}
        with self.lock:
            self.known = {uid: pod for uid, pod in self.known.items() if uid in there}
        fresh = [uid for uid in there if uid not in self.known]
        self.random.shuffle(fresh)
        fresh.sort(key=lambda uid: there[uid]["metadata"].get("creationTimestamp", ""))
        for uid in fresh:
            if there[uid]["status"].get("phase") not in ("Failed", "Succeeded"):
                self.admit(there[uid])
        for uid, pod in there.items():
            if "deletionTimestamp" in pod["metadata"] and "seen" not in self.known.get(uid, "seen"):
                self.known[uid]["seen"] = True
                self.end_pod(pod, None)

    def follow(self):
        while not self.stopping.is_set():
            with self.admission:
                if len(self.plugins) == 2 and all(each.lists for each in self.plugins.values()):
                    self.look()
            time.sleep(0.005)

    def begin(self):
        self.follower = threading.Thread(target=self.follow, daemon=True)
        self.follower.start()

    def stop(self):
        self.stopping.set()
        self.follower.join(30)
        for timer in self.timers:
            timer.join(5)
        super().stop()
