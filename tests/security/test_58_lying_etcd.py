# SPDX-License-Identifier: Apache-2.0
"""An etcd that lies: the manager says so, asks another time, and goes on with its own tree."""

import base64
import json
import socketserver
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from cluster import Cluster, wait_for

PREFIX = "/sorna/local/"
HEADER = {"cluster_id": "7", "member_id": "1", "revision": "9", "raft_term": "1"}


def pair(key, revision=5):
    return {"key": base64.b64encode((PREFIX + key).encode()).decode(), "value": "djE=",
            "create_revision": str(revision), "mod_revision": str(revision), "version": "1"}


def page(*keys, **more):
    return {"header": HEADER, "kvs": [pair(key) for key in keys], "more": True, "count": "9", **more}


class Liar(socketserver.ThreadingTCPServer):
    """Answers each request for keys with the next of its pages, and the last one again."""

    daemon_threads = allow_reuse_address = True

    def __init__(self, pages):
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages, self.asked = pages, 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return "http://127.0.0.1:%d" % self.server_address[1]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        pages = self.server.pages
        body = json.dumps(pages[min(self.server.asked, len(pages) - 1)]).encode()
        self.server.asked += 1
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.mark.parametrize("pages", [[page("a/b", "a/c")],
                                   [page("a/b"), page("a/c"), page("a/b")],
                                   [page("b/b", "a/c")]], ids=["again", "in-turn", "backwards"])
def test_pages_that_do_not_end(pages):
    with Liar(pages) as liar, Cluster(ALIQUOT_ETCD_ENDPOINTS=liar.url) as cluster:
        cluster.start_manager()
        wait_for(lambda: "etcd sends keys again that it has sent, or in another order; trying again"
                 in cluster.log_of("manager"), 30, "the manager to notice")
        client = cluster.client()
        assert client.get("/aliquot/v1/health").json["etcd_away_since"]
        assert client.post("/config/set", {"key": "a/own", "value": "v"}).status == 200
        cluster.stop()
        liar.shutdown()
