# SPDX-License-Identifier: Apache-2.0
"""The command line against a server that lies: nothing runs, and the terminal shows only text."""

import contextlib
import http.server
import json
import os
import re
import subprocess
import threading

import pytest

from cluster import wait_for
from terminal import Terminal
from world import BUILD, World

ID = "00000000-0000-4000-8000-000000000001"
STEERS = "\x1b]0;owned\x07\x1b[2J\x1b[8m\u009b2J\x7f\u202e\u200bmark"
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200b\u200e\u200f\ufeff]")


class Server:
    """Answers by the first of its rows whose pattern fits "METHOD /path"; keeps what it was asked."""

    def __init__(self, *rows):
        self.asked = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                self.rfile.read(length)
                asked = f"{self.command} {self.path}"
                server.asked.append((asked, dict(self.headers)))
                status, headers, body = next((row[1:] for row in rows if re.search(row[0], asked)),
                                             (404, {}, {"title": "no"}))
                body = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

            def log_message(self, *_):
                pass

        self.httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.httpd.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.httpd.server_address[1]}"
        threading.Thread(target=self.httpd.serve_forever, daemon=True).start()

    def stop(self):
        self.httpd.shutdown()
        self.httpd.server_close()


@contextlib.contextmanager
def lying(*rows):
    """A server with these answers, and the environment of a user of it."""
    server = Server(*rows)
    with World() as world:
        yield server, {**world.env, "ALIQUOT_ENDPOINT": server.url, "ALIQUOT_ACCESS_KEY": "AKIA",
                       "ALIQUOT_SECRET_KEY": "secret", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"}
    server.stop()


def run(env, *words, says=None):
    return subprocess.run([BUILD / "aliquot", *words], env=env, capture_output=True, text=True,
                          input=says, timeout=60, check=False)


def shown(env, *words):
    """What a terminal gets, without the ends of lines and our colours."""
    terminal = Terminal(str(BUILD / "aliquot"), *words, env={**env, "TERM": "xterm"}, columns=200)
    text = terminal.read_all().decode()
    assert "mark" in text, text
    return re.sub("\x1b\\[(?:[0127]|3[0-7])m", "", text.replace("\r\n", "\n"))


def session(address):
    return (("GET .*/sessions/notebook", 200, {}, {"id": ID, "name": "notebook", "status": "RUNNING",
                                                   "type": "interactive"}),
            ("GET .*/apps", 200, {}, [{"name": "jupyter", "protocol": "http", "ports": [8888]}]),
            ("POST .*/start-service", 200, {}, {"token": "a&b#c", "wsproxy_addr": address}))


@pytest.mark.parametrize("address", (
    "file:///etc/passwd", "javascript:alert(1)//http://x", "data:text/html,x", "http://", "https:///x",
    "http:evil", "ftp://evil.example", "-http://evil.example", "http://a b", "http://\x1b[2J.example",
    "http://user@evil.example", "http://evil.example/#", "HTTP://\u202eevil.example", ""))
def test_only_web_addresses_are_opened(tmp_path, address):
    opened = tmp_path / "opened"
    opener = tmp_path / "xdg-open"
    opener.write_text(f"#!/bin/sh\nprintf '%s' \"$1\" >{opened}.new; mv {opened}.new {opened}\n")
    opener.chmod(0o755)
    with lying(*session(address)) as (_, env):
        env = {**env, "PATH": f"{tmp_path}:{env['PATH']}", "BROWSER": str(opener)}
        for option in ("--open", "--url"):
            done = run(env, "app", "notebook", "jupyter", option)
            assert done.returncode != 0 and "is not http:// or https://" in done.stderr, done
            assert done.stdout == "" and not HIDDEN.search(done.stderr), done
    assert not opened.exists()


def test_a_web_address_is_opened(tmp_path):
    """With the token as a value: it ends neither the query nor the address."""
    opened = tmp_path / "opened"
    opener = tmp_path / "xdg-open"
    opener.write_text(f"#!/bin/sh\nprintf '%s' \"$1\" >{opened}.new; mv {opened}.new {opened}\n")
    opener.chmod(0o755)
    with lying(*session("https://proxy.example:5050")) as (_, env):
        env = {**env, "PATH": f"{tmp_path}:{env['PATH']}", "BROWSER": str(opener)}
        done = run(env, "app", "notebook", "jupyter", "--open")
        wanted = f"https://proxy.example:5050/v2/proxy/auth?token=a%26b%23c&session_id={ID}&app=jupyter"
        assert (done.returncode, done.stdout) == (0, wanted + "\n"), done
        from_opener = wait_for(lambda: opened.exists() and opened.read_text(), what="xdg-open")
    assert from_opener == wanted


@pytest.mark.parametrize("words,answer", (
    (("ssh-key", "show"), {"ssh_public_key": "ssh-ed25519 " + STEERS}),
    (("template", "show", "x"), {"id": ID, "name": "x", "text": "a: " + STEERS, "template": "a: " + STEERS}),
    (("inspect", "x"), {"id": ID, "name": STEERS, "status": STEERS, "type": STEERS, "tag": STEERS,
                        "text": STEERS}),
    (("announcement",), {"enabled": True, "message": STEERS}),
    (("ps",), {"items": [{"id": ID, "name": STEERS, "status": STEERS, "image": STEERS}], "total": 1}),
    (("ps", "-o", "json"), {"items": [{"id": ID, "name": STEERS, "status": STEERS}], "total": 1}),
    (("ps", "-o", "csv"), {"items": [{"id": ID, "name": STEERS, "status": STEERS}], "total": 1}),
))
def test_terminals_get_text(words, answer):
    with lying(("GET ", 200, {}, answer)) as (_, env):
        text = shown(env, *words)
    assert not HIDDEN.search(text), repr(text)


@pytest.mark.parametrize("form", ("table", "json"))
def test_errors_are_text(form):
    with lying(("GET ", 400, {}, {"title": STEERS, "msg": STEERS, "data": {STEERS: STEERS}})) as (_, env):
        done = run(env, "ps", "-o", form)
    assert done.returncode != 0 and "mark" in done.stderr
    assert not HIDDEN.search(done.stderr), repr(done.stderr)


@pytest.mark.parametrize("lie", ({"id": "../../admin"}, {"id": "x HTTP/1.1\r\nEvil: 1\r\n\r\n"}, {"id": ""},
                                 {"name": "a; touch x"}, {"name": "$(id)-name"}, {"name": "../../x"},
                                 {"name": "-oProxyCommand=x"}, {"name": STEERS}))
@pytest.mark.parametrize("words", (("app", "notebook"), ("ssh", "notebook"), ("port-forward", "notebook", "80")))
def test_sessions_have_plain_ids_and_names(words, lie):
    """They become paths, names of files and commands to copy."""
    answer = {"id": ID, "name": "notebook", "status": "RUNNING", "type": "interactive", **lie}
    with lying(("GET ", 200, {}, answer)) as (server, env):
        done = run(env, *words)
        assert done.returncode != 0 and "no valid id and name" in done.stderr, done
        assert len(server.asked) == 1, server.asked


def test_redirections_are_not_followed():
    """Neither is a signed request sent to another host, nor are keys shown to it."""
    with lying(("", 200, {}, {"items": [], "total": 0})) as (other, _):
        for status in (301, 302, 307, 308):
            with lying(("", status, {"Location": other.url + "/x"}, {})) as (server, env):
                assert run(env, "ps").returncode != 0
                assert server.asked and not other.asked


def test_names_of_hosts_make_no_lines(tmp_path):
    """ssh_config(5) runs programs by 'Match exec' and ProxyCommand."""
    for name in ("a\n  ProxyCommand touch x", "a b", "-oProxyCommand=x", "a'; touch x; '", "../../x", "*"):
        row = {"id": ID, "name": name, "status": "RUNNING", "type": "interactive"}
        with lying(("GET ", 200, {}, {"items": [row], "total": 1})) as (_, env):
            done = run(env, "ssh-config")
            assert done.returncode != 0 and done.stdout == "", (name, done)
            assert not os.path.exists(os.path.join(env["HOME"], ".ssh"))
