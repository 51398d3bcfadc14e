# SPDX-License-Identifier: Apache-2.0
"""A registry that sends more than its manifest says is stopped before the disk is full."""

import contextlib
import http.server
import json
import os
import shutil
import threading
import time

import pytest

from images import OCI, Store, archive, file, sha256

if not shutil.which("skopeo"):
    pytest.skip("skopeo is not installed", allow_module_level=True)
if os.geteuid() != 0:
    pytest.skip("layers need root", allow_module_level=True)

MOST = 400 << 20  # bytes that it sends if nobody stops it
PIECE = bytes(1 << 20)


class Endless(http.server.BaseHTTPRequestHandler):
    """One image, whose layer is said to have a few bytes and does not end."""

    def do_GET(self):
        blob = self.server.blobs.get(self.path.rpartition("/")[2])
        if self.path == "/v2/":
            blob = b"{}"
        self.send_response(200 if blob is not None else 404)
        if "/manifests/" in self.path:
            self.send_header("Content-Type", OCI + "manifest.v1+json")
        self.end_headers()
        self.wfile.write(blob or b"")
        with contextlib.suppress(OSError):
            while blob == b"" and self.server.sent < MOST:
                self.wfile.write(PIECE)
                self.server.sent += len(PIECE)
                time.sleep(0.005)

    def log_message(self, *_):
        pass


@pytest.fixture
def registry():
    layer = archive([file("a")])
    config = json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
        "type": "layers", "diff_ids": [sha256(layer)]}}).encode()
    manifest = json.dumps({
        "schemaVersion": 2, "mediaType": OCI + "manifest.v1+json",
        "config": {"mediaType": OCI + "config.v1+json", "digest": sha256(config),
                   "size": len(config)},
        "layers": [{"mediaType": OCI + "layer.v1.tar", "digest": sha256(layer),
                    "size": len(layer)}]}).encode()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endless) as server:
        server.blobs = {"t": manifest, sha256(manifest): manifest, sha256(config): config,
                        sha256(layer): b""}
        server.sent = 0
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_layer_that_is_longer_than_its_manifest_says_is_not_fetched(registry, tmp_path):
    address = "127.0.0.1:%d" % registry.server_address[1]
    store = Store(tmp_path / "store", insecure=address)
    store.settings["allow"] += " " + address + "/*"
    why = store.failure(f"{address}/endless:t")
    assert "more than its manifest says" in why, why
    assert registry.sent < MOST // 2
