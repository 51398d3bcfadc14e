# SPDX-License-Identifier: Apache-2.0
"""An API server with pods and one node, for what a device plugin asks: list and watch of pods,
Events, evictions, patches of the node."""

import contextlib
import http.server
import json
import socket
import threading
import urllib.parse


class ApiServer:
    """Objects as they are to be shown; set() and remove() are told to who watches."""

    def __init__(self):
        self.pods, self.events, self.evicted, self.node = {}, [], [], {}
        self.refuse_evictions = 0
        self.version, self.log = 1, []  # (version, kind, object) of changes
        self.changed = threading.Condition()
        self.server = None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self):
        api = self
        self.is_up = True

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_GET(self):
                api.on_get(self)

            def do_POST(self):
                api.on_post(self)

            def do_PATCH(self):
                api.on_patch(self)

        class Server(http.server.ThreadingHTTPServer):
            allow_reuse_address, daemon_threads = True, True
            block_on_close = False

            def handle_error(self, *_):
                pass
        self.server = Server(("127.0.0.1", self.port), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self):
        if self.server:
            self.is_up = False
            with self.changed:
                self.changed.notify_all()
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    # ---- what there is ----

    def change(self, kind, pod):
        with self.changed:
            self.version += 1
            pod["metadata"]["resourceVersion"] = str(self.version)
            self.log.append((self.version, kind, json.loads(json.dumps(pod))))
            self.changed.notify_all()

    def set(self, pod):
        meta = pod["metadata"]
        key = (meta["namespace"], meta["name"])
        kind = "MODIFIED" if key in self.pods else "ADDED"
        self.pods[key] = pod
        self.change(kind, pod)

    def remove(self, pod):
        meta = pod["metadata"]
        if self.pods.pop((meta["namespace"], meta["name"]), None):
            self.change("DELETED", pod)

    def reasons(self, pod=None):
        """Of the Events on a pod, or on the node."""
        return [event["reason"] for event in self.events
                if event["involvedObject"]["name"] == (pod or "n1")]

    # ---- requests ----

    def answer(self, handler, status, body):
        text = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)

    def body(self, handler):
        return json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))

    def on_get(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        if url.path != "/api/v1/pods" or query.get("fieldSelector") != "spec.nodeName=n1":
            self.answer(handler, 404, {"kind": "Status", "message": handler.path})
        elif "watch" in query:
            self.watch(handler, int(query["resourceVersion"]))
        else:
            with self.changed:
                self.answer(handler, 200, {"kind": "PodList", "items": list(self.pods.values()),
                                           "metadata": {"resourceVersion": str(self.version)}})

    def watch(self, handler, version):
        handler.send_response(200)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        with contextlib.suppress(OSError):
            while self.is_up:
                with self.changed:
                    news = [entry for entry in self.log if entry[0] > version]
                    if not news:
                        self.changed.wait(0.2)
                for version, kind, pod in news:
                    line = json.dumps({"type": kind, "object": pod}).encode() + b"\n"
                    handler.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
        handler.close_connection = True

    def on_post(self, handler):
        body = self.body(handler)
        with self.changed:
            if handler.path.endswith("/events"):
                self.events.append(body)
            elif self.refuse_evictions:
                self.refuse_evictions -= 1
                self.answer(handler, 429, {"kind": "Status", "message": "a budget forbids it"})
                return
            else:
                assert handler.path.endswith("/eviction"), handler.path
                self.evicted.append(body)
            self.changed.notify_all()
        self.answer(handler, 201, body)

    def on_patch(self, handler):
        assert handler.path == "/api/v1/nodes/n1", handler.path
        assert handler.headers["Content-Type"] == "application/merge-patch+json"
        body = self.body(handler)
        with self.changed:
            self.node.update(body["metadata"]["annotations"])
            self.changed.notify_all()
        self.answer(handler, 200, {"metadata": {"name": "n1", "annotations": self.node}})
