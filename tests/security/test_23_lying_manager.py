# SPDX-License-Identifier: Apache-2.0
"""A manager whose answers are written to files cannot run programs at who asks it."""

import http.server
import json
import threading

from world import World


class Liar(http.server.BaseHTTPRequestHandler):
    """Has one session, whose name is a line of ssh's configuration."""

    def do_GET(self):
        text = json.dumps({"total": 1, "items": [{
            "id": "00000000-0000-4000-8000-000000000001", "type": "interactive",
            "name": "box\n    ProxyCommand touch /tmp/x\n"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def test_the_name_of_a_session_adds_no_line_to_a_configuration():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with World(ALIQUOT_ENDPOINT="http://127.0.0.1:%d" % server.server_address[1],
               ALIQUOT_ACCESS_KEY="AKIAIOSFODNN7EXAMPLE", ALIQUOT_SECRET_KEY="x") as world:
        said = world.run("aliquot", "ssh-config")
    server.shutdown()
    server.server_close()
    assert said.returncode != 0 and "ProxyCommand" not in said.stdout, said
    assert "the name may have letters" in said.stderr, said
