# SPDX-License-Identifier: Apache-2.0
"""What others write does not steer the terminal of who reads it."""

import http.server
import json
import threading

from world import World

STEERS = "\x1b]0;title\x07\x1b[2J\x9b31m\x08"


class Liar(http.server.BaseHTTPRequestHandler):
    """Answers everything with a problem whose text holds escape sequences."""

    def do_GET(self):
        text = json.dumps({"type": "https://api.backend.ai/probs/generic-bad-request",
                           "title": "bad" + STEERS, "msg": "two\nlines" + STEERS}).encode()
        self.send_response(400)
        self.send_header("Content-Type", "application/problem+json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


def test_errors_of_a_server_do_not_steer_the_terminal():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Liar)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with World(ALIQUOT_ENDPOINT="http://127.0.0.1:%d" % server.server_address[1],
               ALIQUOT_ACCESS_KEY="AKIAIOSFODNN7EXAMPLE", ALIQUOT_SECRET_KEY="x") as world:
        said = world.run("aliquot", "ps")
    server.shutdown()
    server.server_close()
    assert said.returncode != 0 and "two\nlines" in said.stderr
    assert not [c for c in said.stderr + said.stdout if c < " " and c != "\n" or "\x7f" <= c < "\xa0"]
