# SPDX-License-Identifier: Apache-2.0
"""A container registry that answers what a test says, and rescans of it."""

import contextlib
import http.server
import json
import threading

KEY = "config/docker/registry"


def configure(cluster, name, **keys):
    reply = cluster.client().post("/config/set", {"key": f"{KEY}/{name}",
                                                  "value": {"": f"http://{name}", **keys}})
    assert reply.status == 200, reply


def rescan(cluster, name):
    """Exit code and what it says."""
    done = cluster.cli("admin", "registry", "rescan", name)
    return done.returncode, done.stdout + done.stderr


def names(cluster):
    rows = cluster.client().get("/aliquot/v1/images").json["items"]
    return sorted(name for row in rows for name in row["names"])


class Liar(http.server.BaseHTTPRequestHandler):
    """What 'answers' of the server has for a path: (status, headers, body)."""

    def do_GET(self):
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        answer = self.server.answers.get(self.path.split("?")[0], (404, {}, b"{}"))
        status, headers, body = answer(self) if callable(answer) else answer
        self.send_response(status)
        for key, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def liar(answers):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar) as server:
        server.seen, server.answers = [], answers
        server.address = f"127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def body(value):
    return 200, {}, json.dumps(value).encode()
