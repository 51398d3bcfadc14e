# SPDX-License-Identifier: Apache-2.0
"""Apps of containers: started by the first connection, once for many, again when they have died;
by the definitions of their image, or by ours."""

import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import urllib.request

import pytest

from client import USER, WebSocket
from cluster import Cluster, interactive, running, wait_for, wait_status
from images import Layout, archive, file, folder
from python_image import python_layer
from runtimes import Session, settings_of
from world import BUILD

# Says how it was started; "--late SECONDS", "--fork", "--status N" as they say.
WEB = """
import argparse, http.server, os, sys, time
p = argparse.ArgumentParser()
p.add_argument("port", type=int)
p.add_argument("--word", default="")
p.add_argument("--flag", action="store_true")
p.add_argument("--late", type=float, default=0)
p.add_argument("--fork", action="store_true")
p.add_argument("--status", type=int)
a = p.parse_args()
print("about to serve", flush=True)
if a.status is not None:
    sys.exit(a.status)
time.sleep(a.late)
if a.fork and os.fork():
    os._exit(0)
if a.fork:
    os.setsid()
class Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        text = "%s %s %s %d" % (os.environ.get("GREETING"), a.word, a.flag, os.getpid())
        self.send_response(200)
        self.end_headers()
        self.wfile.write(text.encode())
http.server.HTTPServer(("127.0.0.1", a.port), Page).serve_forever()
"""
DEFINITIONS = {
    "web": {"prestart": [
        {"action": "mkdir", "args": {"path": "/home/work/.web/{ports[0]}"}},
        {"action": "write_tempfile", "args": {"body": ["greeting = 'hello'", "# {{}}"]},
         "ref": "settings"},
        {"action": "run_command", "ref": "said", "args": {"command": [
            "{runtime_path}", "-c", "exec(open('{settings}').read()); print(greeting, end='')"]}},
        {"action": "write_file", "args": {"filename": "/home/work/.web/starts", "append": True,
                                          "body": ["${{ said[out] }}"], "mode": "600"}},
        {"action": "log", "args": {"message": "it was {said[out]}"}}],
        "command": ["{runtime_path}", "/app/web.py", "{ports[0]}"],
        "env": {"GREETING": "{said[out]}"}, "url_template": "{protocol}://{host}:{port}/tree",
        "allowed_envs": ["GREETING"], "allowed_arguments": ["--word", "--flag"],
        "default_arguments": {"--word": "usual"}},
    "line": {"command": "cd /tmp && exec python3 /app/web.py {ports[1]}", "shell": "sh",
             "default_arguments": {"--word": ["by a shell"]}, "start_timeout": 15},
    "never": {"command": ["sleep", "1000"], "start_timeout": 1},
    "silent": {"command": ["sleep", "1000"], "start_timeout": 600},
    "late": {"command": ["python3", "/app/web.py", "{ports[0]}", "--late", "2"]},
    "forks": {"command": ["python3", "/app/web.py", "{ports[0]}", "--fork"]},
    "dies": {"command": ["python3", "/app/web.py", "{ports[0]}", "--status", "3"]},
    "nul": {"prestart": [{"action": "run_command", "ref": "said", "args": {
                "command": ["sh", "-c", "printf 'made\\000\\377'"]}}],
            "command": "printf 'about \\000 to serve\\377 {said[out]}'", "shell": "sh"},
    "nothing": {"command": ["no-such-program"]},
    "bad": {"command": 5},
}
LABEL = ("web:http:8000,line:http:[8010,8011],never:tcp:8001,late:http:8002,forks:http:8003,"
         "dies:tcp:8004,nothing:tcp:8005,bad:http:8006,bare:tcp:8007,silent:tcp:8012,nul:tcp:8013")
LAB = """#!/bin/sh
for word; do case $word in --port=*) port=${word#--port=};; esac; done
exec python3 /app/web.py "$port" --word "$*"
"""


@pytest.fixture(scope="module", params=("crun", "runc"))
def cluster(request):
    with Cluster(**settings_of(request.param), ALIQUOT_IMAGE_ALLOW="* host oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="1") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        cluster.supervise()
        layout = Layout(cluster.folder / "layout")
        own = archive([folder("tmp", mode=0o1777), folder("app"), file("app/web.py", WEB.encode()), folder("etc"),
                       folder("etc/backend.ai"), folder("etc/backend.ai/service-defs"),
                       *(file(f"etc/backend.ai/service-defs/{name}.json", json.dumps(text).encode())
                         for name, text in DEFINITIONS.items()),
                       file("usr/bin/jupyter-lab", LAB.encode(), mode=0o755)])
        layout.image("apps", [python_layer(), own], Labels={
            "ai.backend.service-ports": LABEL, "ai.backend.runtime-path": "/usr/bin/python3"})
        cluster.image = layout.reference("apps")
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "apps", image=cluster.image):
        yield "apps"


def proxy(cluster, app, box="apps", **given):
    more = "".join(f"&{name}={quote(value)}" for name, value in given.items())
    return WebSocket(cluster.client(), f"/stream/session/{box}/tcpproxy?app={app}{more}",
                     timeout=120)


def quote(value):
    text = value if isinstance(value, (str, int)) else json.dumps(value)
    return "".join(c if c.isalnum() else f"%{ord(c):02X}" for c in str(text))


def refusal(ws):
    """(status, slug, text) of an upgrade that was refused."""
    with contextlib.closing(ws):
        assert ws.status != 101
        size = next(line for line in ws.head.split("\r\n") if line.lower().startswith("content-len"))
        said = json.loads(ws.file.read(int(size.split(":")[1])))
        return ws.status, said["type"].rsplit("/", 1)[1], said.get("msg") or str(said.get("data"))


def page(cluster, app, box="apps", **given):
    """[greeting, word, flag, pid] of what serves there."""
    with contextlib.closing(proxy(cluster, app, box, **given)) as ws:
        assert ws.status == 101, refusal(ws)
        ws.send(b"GET / HTTP/1.0\r\n\r\n", opcode=2)
        said = b""
        while True:
            opcode, payload = ws.receive()
            if opcode == 8:
                break
            said += payload
    return said.partition(b"\r\n\r\n")[2].decode()


def pid_of(text):
    return text.rsplit(" ", 1)[1]


def inside(cluster, *command, box="apps"):
    done = cluster.cli("exec", box, *command)
    return done.stdout


def apps(cluster, box="apps"):
    reply = cluster.client().get(f"/stream/session/{box}/apps")
    assert reply.status == 200, reply
    return {each["name"]: each for each in reply.json}


def state(cluster, app, box="apps"):
    return apps(cluster, box)[app]["state"]


def stop(cluster, app, box="apps"):
    return cluster.client().post(f"/session/{box}/shutdown-service", {"service_name": app})


@pytest.mark.gate
def test_the_list_before_anything_runs(cluster, box):
    shown = apps(cluster)
    assert list(shown) == [*(part.split(":")[0] for part in LABEL.split(",") if ":" in part),
                           "jupyterlab", "ttyd"]
    assert shown["web"] == {
        "name": "web", "protocol": "http", "ports": [8000], "state": "not-started",
        "url_template": "{protocol}://{host}:{port}/tree", "allowed_envs": ["GREETING"],
        "allowed_arguments": ["--word", "--flag"]}
    assert shown["line"]["ports"] == [8010, 8011]
    assert shown["jupyterlab"] == {"name": "jupyterlab", "protocol": "http", "ports": [8090],
                                   "state": "not-started"}
    assert "'command'" in shown["bad"]["why"]


def test_many_connections_start_it_once(cluster, box):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        said = set(pool.map(lambda _: page(cluster, "web"), range(8)))
    assert len(said) == 1 and said.pop().startswith("hello usual False "), said
    assert inside(cluster, "cat", "/home/work/.web/starts") == "hello\n"
    assert inside(cluster, "sh", "-c", "cd /home/work/.web && echo *") == "8000 starts\n"
    assert state(cluster, "web") == "running"


def test_one_that_was_killed_is_started_again(cluster, box):
    before = page(cluster, "web")
    inside(cluster, "sh", "-c", f"kill -9 {pid_of(before)}")
    wait_for(lambda: state(cluster, "web") == "failed", 30, "it to be seen")
    assert "signal 9" in apps(cluster)["web"]["why"]
    after = page(cluster, "web")
    assert pid_of(after) != pid_of(before) and state(cluster, "web") == "running"


def test_it_is_ended_and_started_with_what_its_definition_allows(cluster, box):
    before = page(cluster, "web")
    assert stop(cluster, "web").status == 204
    assert state(cluster, "web") == "not-started"
    assert "yes" not in inside(cluster, "sh", "-c", f"kill -0 {pid_of(before)} && echo yes")
    assert stop(cluster, "web").status == 204  # again: nothing to do
    for given in ({"envs": {"PATH": "/tmp"}}, {"arguments": {"--late": "5"}}):
        status, slug, text = refusal(proxy(cluster, "web", **given))
        assert (status, slug) == (400, "generic-bad-request") and "allowed_" in text, text
    for given in ({"envs": "no JSON"}, {"arguments": "[1]"}):
        status, slug, text = refusal(proxy(cluster, "web", **given))
        assert (status, slug) == (400, "invalid-api-params"), text
    said = page(cluster, "web", envs={"GREETING": "moin"}, arguments={"--word": "x", "--flag": None})
    assert said.startswith("moin x True "), said
    assert pid_of(page(cluster, "web", envs={"GREETING": "late"})) == pid_of(said)


@pytest.mark.gate
def test_start_service(cluster, box):
    client = cluster.client()
    assert stop(cluster, "web").status == 204
    body = {"app": "web", "port": 8000, "envs": json.dumps({"GREETING": "hi"}),
            "arguments": json.dumps({"--word": "given"}), "login_session_token": "x"}
    reply = client.post(f"/session/{box}/start-service", body, timeout=120)
    assert reply.status == 200 and reply.json == {
        "token": None, "wsproxy_addr": None, "status": "started", "port": 8000}, reply
    assert client.post(f"/session/{box}/start-service", body, timeout=120).json["status"] == "running"
    assert page(cluster, "web").startswith("hi given False ")
    for app, status in (("nope", 404), ("no app", 404), ("web\nx", 404), ("dies", 503)):
        assert client.post(f"/session/{box}/start-service", {"app": app},
                           timeout=120).status == status, app
    assert client.post(f"/session/{box}/start-service", {"app": "web", "port": 1}).status == 404
    assert client.post(f"/session/{box}/shutdown-service", {"service_name": "no"}).status == 404


def test_a_line_for_a_shell_and_the_second_port(cluster, box):
    assert page(cluster, "line", port=8011).startswith("None by a shell False ")
    ws = proxy(cluster, "line", port=8010)
    assert refusal(ws)[1] == "app-failed"


@pytest.mark.gate
def test_one_of_ours(cluster, box):
    said = page(cluster, "jupyterlab")
    assert "--ip=127.0.0.1 --port=8090" in said and "--ServerApp.token=" in said, said


def test_those_that_do_not_listen(cluster, box):
    for app, told in (("never", "does not listen on port 8001 of 127.0.0.1 after 1 seconds"),
                      ("dies", "exit status 3 and does not listen on port 8004; it wrote last: "
                               "about to serve"),
                      ("nul", "it wrote last: about \ufffd to serve\ufffd made\ufffd\ufffd"),
                      ("nothing", "execute 'no-such-program': No such file"),
                      ("bad", "'command'")):
        status, slug, text = refusal(proxy(cluster, app))
        assert (status, slug) == (503, "app-failed") and told in text, text
        if app != "bad":
            assert state(cluster, app) == "failed" and told in apps(cluster)[app]["why"]
    assert "sleep\0" not in inside(cluster, "sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null")
    with contextlib.closing(proxy(cluster, "bare")) as ws:  # nobody knows how to start it
        opcode, payload = ws.receive()
        assert (opcode, struct.unpack("!H", payload[:2])[0]) == (8, 1013)


def test_one_that_listens_late_and_one_that_forks(cluster, box):
    assert page(cluster, "late").startswith("None ")
    said = page(cluster, "forks")
    assert pid_of(page(cluster, "forks")) == pid_of(said)
    assert stop(cluster, "forks").status == 204
    assert state(cluster, "forks") == "not-started"


def test_in_the_command_line(cluster, box):
    page(cluster, "web")
    shown = cluster.cli("session", "apps", box).stdout
    assert re.search("web +http +8000 +running", shown), shown
    assert re.search("line +http +8010, 8011 ", shown) and "jupyterlab" in shown, shown
    listed = json.loads(cluster.cli("session", "apps", box, "-o", "json").stdout)
    assert [each["state"] for each in listed if each["name"] == "web"] == ["running"]
    assert "jupyterlab" in cluster.cli("session", "info", box).stdout


@pytest.mark.gate
def test_app_of_the_command_line(cluster, box):
    """Its connections start the app."""
    assert stop(cluster, "web").status == 204
    with subprocess.Popen([BUILD / "aliquot", "app", box, "web"], text=True,
                          env={**cluster.env, **cluster.cli_env()}, stdout=subprocess.PIPE) as run:
        try:
            url = run.stdout.readline().strip()
            assert url.startswith("http://127.0.0.1:"), url
            assert state(cluster, "web") == "not-started"
            for _ in range(2):
                with urllib.request.urlopen(url, timeout=60) as reply:
                    assert reply.read().startswith(b"hello usual False ")
        finally:
            run.send_signal(signal.SIGINT)
    assert run.returncode == 0
    assert "web" in cluster.cli("app", box).stdout


def test_what_is_foreign(cluster, box):
    client = cluster.client(USER)
    assert client.get(f"/stream/session/{box}/apps").status == 404
    for verb, body in (("start", {"app": "web"}), ("shutdown", {"service_name": "web"})):
        assert client.post(f"/session/{box}/{verb}-service", body).status == 404
    assert WebSocket(client, f"/stream/session/{box}/tcpproxy?app=web").status == 404


def test_what_a_session_has_by_its_type(cluster):
    session = Session(cluster, "sleep 1000", image=cluster.image)
    session.wait("RUNNING")
    assert page(cluster, "web", session.id).startswith("hello usual ")
    reply = session.client.post(f"/session/{session.id}", {"mode": "query", "code": "1"})
    assert (reply.status, reply.slug) == (403, "session-type-lacks-feature"), reply
    assert WebSocket(session.client, f"/stream/session/{session.id}/execute").status == 403
    session.end(forced=True)
    session.wait()


def test_a_process_has_none():
    with Cluster(**settings_of("process")) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        with running(cluster.client(), "plain"):
            assert apps(cluster, "plain") == {}
            assert refusal(proxy(cluster, "web", "plain"))[:2] == (404, "object-not-found")
            reply = cluster.client().post("/session/plain/start-service", {"app": "web"})
            assert reply.status == 400, reply
            assert "has no apps" in cluster.cli("session", "apps", "plain").stderr
        cluster.stop()


def executor(cluster, box):
    """Its pid in the container."""
    said = inside(cluster, "sh", "-c", "for p in /proc/[0-9]*; do case $(cat $p/cmdline) in "
                  "*--execute*|*--app*) echo ${p#/proc/};; esac; done", box=box)
    return said.split()


def test_kill_of_the_executor(cluster, box):
    before = page(cluster, "web")
    for pid in executor(cluster, box):
        inside(cluster, "sh", "-c", f"kill -9 {pid}")
    after = page(cluster, "web")
    assert pid_of(after) != pid_of(before)


def test_nothing_is_left_of_a_client_that_has_gone(cluster, box):
    """Its question would wait for ten minutes, as one of those that its user may have under way."""
    client, path = cluster.client(), f"/session/{box}/start-service"
    asking = http.client.HTTPConnection(*client.address)
    asking.request("POST", path, b'{"app": "silent"}',
                   client.headers("POST", path, "application/json"))
    wait_for(lambda: state(cluster, "silent") == "starting", 60, "its start")
    assert len(executor(cluster, box)) > 2
    asking.close()
    wait_for(lambda: len(executor(cluster, box)) == 2, 60, "the executor and who looks alone")
    assert stop(cluster, "silent").status == 204


# Answers every question with what the file says.
LIAR = """
import os, socket
path = "/tmp/.aliquot-execute-1000/socket"
os.unlink(path)
s = socket.socket(socket.AF_UNIX)
s.bind(path)
s.listen(8)
print("lying", flush=True)
while True:
    peer = s.accept()[0]
    with peer:
        peer.recv(65536)
        peer.sendall(open("/home/work/lie", "rb").read())
"""


def test_an_executor_that_lies(cluster):
    """It is a process of the session's user, who may put another one in its place."""
    with running(cluster.client(), "liar", image=cluster.image) as session:
        page(cluster, "web", "liar")
        for pid in executor(cluster, "liar"):
            inside(cluster, "sh", "-c", f"kill -9 {pid}", box="liar")
        inside(cluster, "sh", "-c", f"python3 -c '{LIAR}' >/tmp/told 2>&1 &", box="liar")
        wait_for(lambda: "lying" in inside(cluster, "cat", "/tmp/told", box="liar"), 30, "the liar")
        for said, slug in ((b"no JSON\n", "service-unavailable"), (b"[]\n", "service-unavailable"),
                           (b'{"kind": "app-failed", "error": "x"}\nand more', "app-failed"),
                           (b'{"kind": 5, "error": "x"}\n', "app-failed"),
                           (b'{"port": 70000}\nmore', "service-unavailable"),
                           (b"", "service-unavailable"), (b"x" * 100000, "service-unavailable")):
            lie(cluster, session, said)
            assert refusal(proxy(cluster, "web", "liar"))[:2] == (503, slug), said
        lie(cluster, session, json.dumps({"apps": [
            5, {}, {"name": "../x", "protocol": "http", "state": "running"},
            {"name": "a", "protocol": "http", "state": "odd", "ports": ["x", 1], "why": [],
             "allowed_envs": [1, "B"]}]}).encode() + b"\n")
        known, told = [], []
        for row in cluster.client().get("/stream/session/liar/apps").json:
            (known if row["state"] == "unknown" else told).append(row)
        assert told == [
            {"name": "a", "protocol": "http", "ports": [1], "state": "odd", "allowed_envs": ["B"]}]
        assert "web" in [row["name"] for row in known]  # as its image says
        lie(cluster, session, b'{"apps": {}}\n')
        assert cluster.client().get("/stream/session/liar/apps").json == known


def lie(cluster, session, said):
    client, target = cluster.client(), f"/aliquot/v1/sessions/{session}/files?path=lie&format=raw"
    reply = client.raw("PUT", target, said, client.headers("PUT", target, "application/x-tar"))
    assert reply.status in (200, 201, 204), reply


@pytest.mark.parametrize("name", ["agent", "manager"])
def test_kill_of_agent_and_manager_while_it_starts(cluster, box, name):
    stop(cluster, "late")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(proxy, cluster, "late")
        wait_for(lambda: state(cluster, "late") in ("starting", "running"), 30, "its start")
        os.kill(cluster.programs[name].process.pid, signal.SIGKILL)
        with contextlib.suppress(OSError, IndexError, ValueError):
            assert waiting.result(60).status in (101, 503)

    def serves():
        with contextlib.suppress(OSError, IndexError, AssertionError, ValueError):
            return page(cluster, "late")
        return None
    said = wait_for(serves, 60, "the app")
    assert pid_of(page(cluster, "late")) == pid_of(said), "it was started once"


def test_kill_of_the_runner_ends_the_apps(cluster):
    reply = cluster.client().post("/session", interactive("fragile", image=cluster.image))
    assert reply.status == 201, reply
    wait_status(cluster.client(), "fragile", "RUNNING")
    page(cluster, "web", "fragile")
    runner = [pid for pid in os.listdir("/proc") if pid.isdigit()
              and is_runner_of(pid, cluster.folder, reply.json["sessionId"])]
    assert len(runner) == 1
    os.kill(int(runner[0]), signal.SIGKILL)
    shown = wait_status(cluster.client(), reply.json["sessionId"], "TERMINATED", "ERROR")
    assert shown["reason"], shown
    assert WebSocket(cluster.client(), "/stream/session/fragile/tcpproxy?app=web").status == 404


def is_runner_of(pid, _, session):
    try:
        env = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    inner = next(line for line in status.splitlines() if line.startswith("NSpid")).split()
    return f"BACKENDAI_SESSION_ID={session}".encode() in env and inner[-1] == "1"
