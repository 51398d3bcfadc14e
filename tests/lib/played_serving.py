# SPDX-License-Identifier: Apache-2.0
"""A node and a proxy of model services that a test plays over the link (src/link/message.h)."""

import contextlib
import select
import tempfile
import threading
import time

from cluster import wait_for
from link_agent import ENDS, LinkAgent, join_front


class Played(LinkAgent):
    """'take' gets each message, in a thread; 'lock' is held meanwhile."""

    lock, thread = None, None

    def serve(self):
        self.lock, self.is_over = threading.RLock(), threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        beat = time.monotonic()
        with contextlib.suppress(*ENDS):
            while not self.is_over.is_set():
                select.select([self.socket], [], [], 0.02)
                with self.lock:
                    if not self.read():
                        return
                    said, self.said = self.said, []
                    for message in said:
                        self.take(message)
                    if time.monotonic() - beat > 2:
                        beat = time.monotonic()
                        self.send(b"")

    def stop(self):
        if self.thread:
            self.is_over.set()
            self.thread.join()
        self.close()
        self.thread = None

    def say(self, message):
        with self.lock:
            self.send(message)


class Node(Played):
    """An agent whose kernels run at once; 'kernels' are the orders of those that run, by session."""

    def __init__(self, cluster, name="node", cpu="64"):
        cluster.join(name)
        super().__init__(cluster, name)
        self.slots = {"cpu": ["count", cpu], "mem": ["bytes", str(64 << 30)]}
        self.fails = False
        self.start()
        wait_for(lambda: cluster.agent(name).get("connected"), 60, "the node")

    def start(self):
        """Without kernels, as after a restart of the machine."""
        self.kernels = {}
        assert self.connect(self.hello(slots=self.slots))
        self.send({"type": "heartbeat", "incarnation": self.incarnation, "seq": 1, "kernels": []})
        self.send({"type": "image.list", "images": [
            {"digest": "sha256:1", "names": ["docker.io/library/python:3"], "size_bytes": 1,
             "architecture": "x86_64", "labels": {}}]})
        self.serve()

    def answer(self, order, state, **more):
        self.tell({"type": "kernel.status", "kernel_id": order["kernel_id"],
                   "session_id": order["session_id"], "attempt": order["attempt"], "state": state,
                   **more})

    def take(self, message):
        if message["type"] == "kernel.create":
            self.kernels[message["session_id"]] = message
            if self.fails:
                self.end(message["session_id"], 1)
            else:
                self.answer(message, "RUNNING", alloc={"cpu": {"0": "1"}})
        elif message["type"] == "kernel.destroy":
            for session, order in [*self.kernels.items()]:
                if order["kernel_id"] == message["kernel_id"]:
                    self.end(session, 0)

    def end(self, session, code):
        with self.lock:
            order = self.kernels.pop(session)
            self.answer(order, "TERMINATED", has_exit=True, exit_code=code)

    def health(self, session, state="ready", text=None):
        with self.lock:
            order = self.kernels[session]
            self.send({"type": "kernel.health", "kernel_id": order["kernel_id"],
                       "attempt": order["attempt"], "state": state, "text": text,
                       "at_usec": int(time.time() * 1e6)})


class Proxy(Played):
    """'services' are the routes that it has, by name; 'versions' those that it got."""

    def __init__(self, cluster, name="main", confirms=True, **hello):
        self.home = tempfile.TemporaryDirectory(prefix="aliquot-proxy-")
        super().__init__(join_front(cluster, "proxy", name, self.home.name), "own")
        self.name, self.confirms, self.more = f"proxy:{name}", confirms, hello
        self.services, self.versions, self.answers = {}, [], []
        self.start()

    def start(self):
        assert self.connect({"type": "hello", "protocol_min": 1, "protocol_max": 1,
                             "agent_id": self.name, "incarnation": self.incarnation,
                             "version": "0", "architecture": "x86_64", "slots": {},
                             "addr": "http://127.0.0.1:5050", **self.more})
        self.serve()

    def end(self):
        self.stop()
        self.home.cleanup()

    def take(self, message):
        if message["type"] != "serving.routes":
            self.answers.append(message)
            return
        if message.get("is_whole"):
            self.services = {}
        for service in message.get("services", []):
            if service.get("is_gone"):
                self.services.pop(service["name"], None)
            else:
                self.services[service["name"]] = service
        self.versions.append(message["version"])
        if self.confirms:
            self.confirm()

    def confirm(self):
        self.say({"type": "serving.done", "version": self.versions[-1]})

    def use(self, service, **figures):
        self.say({"type": "serving.use", "version": self.versions[-1],
                  "services": [{"id": service["id"], **figures}]})

    def replicas(self, name):
        return {one["session_id"]: one
                for one in self.services.get(name, {}).get("replicas", [])}
