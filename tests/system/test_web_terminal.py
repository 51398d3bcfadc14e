# SPDX-License-Identifier: Apache-2.0
"""The web terminal: a shell in a browser, in images with glibc, with busybox and with nothing."""

import contextlib
import gzip
import hashlib
import http.client
import json
import os
import pathlib
import re
import signal
import subprocess

import pytest

import containers
import fetched
from browser import Browser
from client import USER
from cluster import running, wait_for, wait_status
from images import Layout, archive, file, folder, programs
from runtimes import settings_of
from test_proxy import Proxied
from web_terminal import Refused, WebTerminal
from world import BUILD

PROGRAMS = ("proxy", "manager", "agent")
SERVER = "/opt/kernel/aliquot-runner\0--terminal"
# A megabyte, as the browser gives it to the page.
PASTE = """{
    const data = new DataTransfer();
    data.setData("text/plain", "0123456\\n".repeat(1 << 17));
    const event = new ClipboardEvent("paste", {clipboardData: data, bubbles: true});
    document.querySelector("textarea").dispatchEvent(event);
}"""
SIZE = r"/%s (\d+) (\d+)/.exec(document.querySelector('.xterm-rows').textContent)"
NO_SHELL = "the image of this session has no shell, so there is no terminal"


def compiled(path, source, *options, compiler="gcc"):
    """A program of this source, as bytes."""
    subprocess.run([compiler, *options, "-x", "c", "-", "-o", path], input=source.encode(), check=True)
    return path.read_bytes()


def busybox():
    with fetched.folder("busybox-static") as (path, is_new):
        if is_new:
            fetched.run("busybox", ["sh", "-ec", "apt-get -q download busybox-static; "
                                    "dpkg -x busybox-static_*.deb ."], cwd=path)
        return (path / "bin/busybox").read_bytes()


def files(cluster, name):
    if name == "glibc":
        return [*programs("bash", "sh", "stty", "sleep", "cat", "head", "sha256sum", "id", "seq",
                          "env", "yes"), folder("tmp", mode=0o1777)]
    if name == "musl":
        said = compiled(cluster.folder / "said", '#include <stdio.h>\nint main() { puts("by musl"); }',
                        compiler="musl-gcc")
        loader = "lib/ld-musl-x86_64.so.1"
        return [folder("bin"), folder("lib"), folder("tmp", mode=0o1777),
                file("bin/busybox", busybox(), mode=0o755),
                *(file(f"bin/{each}", busybox(), mode=0o755) for each in ("sh", "stty", "id", "cat")),
                file("bin/said", said, mode=0o755),
                file(loader, open("/" + loader, "rb").read(), mode=0o755)]
    alone = compiled(cluster.folder / "alone", "int main() { return 0; }", "-static")
    return [file("alone", alone, mode=0o755)]


class Terminals(Proxied):
    def running(self, name, image):
        """A session with an image of files()."""
        if not hasattr(self, "layout"):
            self.layout = Layout(self.folder / "layout")
        self.layout.image(image, [archive(files(self, image))])
        return running(self.client(), name, image=self.layout.reference(image),
                       config={"resources": {"cpu": "1", "mem": "1g"}})

    def open(self, session, **more):
        """A terminal through the proxy."""
        path = f"/app/{session}/ttyd/ws"
        return WebTerminal(("127.0.0.1", self.port), path,
                           **{"Cookie": self.cookie(session, "ttyd"), **more})

    def processes(self, program, session="box"):
        """Those of a session whose command line begins so."""
        name, found = f"BACKENDAI_SESSION_NAME={session}\0".encode(), []
        for pid in containers.pids_of(self.folder):
            with contextlib.suppress(OSError):
                proc = pathlib.Path("/proc", str(pid))
                found += [pid] * (name in (proc / "environ").read_bytes()
                                  and (proc / "cmdline").read_bytes().startswith(program.encode()))
        return found

    @contextlib.contextmanager
    def no_shell_left(self, session="box"):
        """Of those that begin within; the session's own program is a shell, too."""
        before = set(self.processes("/bin/bash", session))
        yield
        wait_for(lambda: set(self.processes("/bin/bash", session)) <= before, what="the shells' end")

    @contextlib.contextmanager
    def forward(self, *words):
        """The address at which 'aliquot app' listens."""
        with subprocess.Popen([BUILD / "aliquot", "app", *words], text=True,
                              env={**self.env, **self.cli_env()}, stdout=subprocess.PIPE) as process:
            try:
                yield "127.0.0.1", int(re.search(r"127\.0\.0\.1:(\d+)", process.stdout.readline())[1])
            finally:
                process.terminate()


def ticks(pid):
    """Processor time of a process."""
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[11:13]


@pytest.fixture(scope="module")
def cluster():
    with Terminals(**settings_of("crun"), ALIQUOT_IMAGE_ALLOW="* host oci:/",
                   ALIQUOT_IMAGE_KEEP_FREE="0") as cluster:
        cluster.start_manager()
        cluster.start_agent()
        cluster.start_proxy()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with cluster.running("box", "glibc") as session:
        yield session


def check_shell(cluster, session, name):
    """What every shell can do."""
    with cluster.open(session, size=(90, 31)) as terminal:
        terminal.type("stty size; pwd; id -u; echo $TERM $ALIQUOT_APP $BACKENDAI_SESSION_NAME\n")
        terminal.wait(f"31 90\r\n/home/work\r\n[0-9]+\r\nxterm-256color {name}\r\n")
        assert (terminal.titles, terminal.preferences) == ([name], {})
        terminal.resize(100, 40)
        terminal.type("stty size; echo h\u00e9llo \ud55c\uae00 $((6 * 7))\n")
        terminal.wait("40 100\r\nh\u00e9llo \ud55c\uae00 42\r\n")
        terminal.type("echo begin; cat\n")
        terminal.wait("\nbegin\r\n")
        terminal.type("\x03")
        terminal.wait(r"\^C(?s:.*)\$ ")
        terminal.type("echo status $?\n")
        terminal.wait("status 130\r\n")
        terminal.type("exit 3\n")
        assert terminal.wait_end() == (1000, "the shell has ended with status 3")


@pytest.mark.gate
def test_a_shell(cluster, box):
    check_shell(cluster, box, "box")
    apps = {app["name"]: app for app in cluster.client().get("/stream/session/box/apps").json}
    assert apps["ttyd"] == {"name": "ttyd", "protocol": "http", "ports": [7681], "state": "running"}
    with cluster.open(box) as terminal:
        terminal.type("kill -9 $$\n")
        assert terminal.wait_end() == (1000, "the shell has ended with signal 9")


def test_a_shell_of_busybox(cluster):
    with cluster.running("musl", "musl") as session:
        check_shell(cluster, session, "musl")
        with cluster.open(session) as terminal:
            terminal.type("said\n")
            terminal.wait("by musl\r\n")


@pytest.mark.gate
def test_no_shell(cluster):
    """Said in the terminal, too: ttyd's own page shows no reasons."""
    with cluster.running("scratch", "scratch") as session:
        with cluster.open(session) as terminal:
            assert terminal.wait_end() == (1000, NO_SHELL)
            assert terminal.shown.decode() == NO_SHELL + "\r\n"


def ask(address, path, **headers):
    connection = http.client.HTTPConnection(*address, timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers)
        reply = connection.getresponse()
        return reply.status, reply.headers, reply.read()


@pytest.mark.gate
def test_the_page(cluster, box):
    """Its policy allows its own script and style alone."""
    place, cookie = f"/app/{box}/ttyd/", cluster.cookie(box, "ttyd")
    status, headers, body = ask(("127.0.0.1", cluster.port), place, Cookie=cookie)
    policy = headers["Content-Security-Policy"]
    assert status == 200 and headers["Content-Encoding"] == "gzip"
    assert policy.startswith("default-src 'none'; script-src ") and "unsafe" not in policy
    page = gzip.decompress(body).decode()
    assert "<title>Terminal</title>" in page
    if "<script>" in page:  # where npm was when this was built
        assert "Permission is hereby granted, free of charge" in page, "the licence of xterm.js"
    else:
        assert "no terminal page" in page and "aliquot session attach" in page
    status, _, body = ask(("127.0.0.1", cluster.port), place + "token", Cookie=cookie)
    assert (status, json.loads(body)) == (200, {"token": ""})
    assert ask(("127.0.0.1", cluster.port), place + "other", Cookie=cookie)[0] == 404


@pytest.mark.gate
def test_pages_of_others(cluster, box):
    """A page elsewhere opens no shell with its reader's cookie, nor at a forwarded port."""
    own = f"http://127.0.0.1:{cluster.port}"
    cluster.open(box, Origin=own).leave()
    for origin in ("http://evil.example.org", "null", f"http://127.0.0.1:{cluster.port + 1}",
                   own + ".example.org"):
        with pytest.raises(Refused) as refused:
            cluster.open(box, Origin=origin)
        assert refused.value.status == 403
    with cluster.forward("box", "ttyd") as address:
        with WebTerminal(address, Origin="http://%s:%d" % address) as terminal:
            terminal.type("echo $((6 * 7))\n")
            terminal.wait("42\r\n")
        for headers in ({"Origin": "http://evil.example.org"},
                        {"Host": "evil.example.org", "Origin": "http://evil.example.org"}):
            with pytest.raises(Refused) as refused:
                WebTerminal(address, **headers)
            assert refused.value.status == 403
        assert ask(address, "/token", Host="evil.example.org")[0] == 403


def test_others_have_no_way(cluster, box):
    assert cluster.client(USER).get("/stream/session/box/apps").status == 404
    with pytest.raises(Refused) as refused:
        cluster.open(box, Cookie="aliquot_app=none")
    assert refused.value.status == 401


def test_who_leaves_hangs_up(cluster, box):
    """Shell and job end; what was told to stay stays."""
    with cluster.no_shell_left():
        terminal = cluster.open(box)
        terminal.type("(trap '' HUP; exec sleep 4444) & sleep 5555\n")
        wait_for(lambda: cluster.processes("sleep\x005555"), what="the program")
        terminal.leave()
        wait_for(lambda: not cluster.processes("sleep\x005555"), what="the program's end")
    [left] = cluster.processes("sleep\x004444")
    os.kill(left, signal.SIGKILL)


def test_a_megabyte_is_pasted(cluster, box):
    """In one message, as ttyd's page does; all of it arrives, and what is shown meanwhile, too."""
    text = b"".join(b"%07d\n" % number for number in range(1 << 17))
    with cluster.open(box) as terminal:
        terminal.type("stty -echo; head -c 1048576 | sha256sum; seq 100000; stty echo\n")
        terminal.wait("stty echo\r\n")
        terminal.type(text)
        terminal.wait(hashlib.sha256(text).hexdigest() + "  -\r\n")
        shown = terminal.wait(r"1\r\n(2\r\n(?s:.*)\n99999)\r\n100000\r\n").group(1)
        assert shown.split() == [b"%d" % number for number in range(2, 100000)]
    with cluster.open(box) as terminal:
        terminal.type("\x1b[200~echo " + "x" * 1000 + "\x1b[201~")
        terminal.type("\r")
        terminal.wait(r"\r\nx{1000}\r\n")


def test_slow_readers(cluster, box):
    """Who reads nothing, or says that he waits, holds his shell up, and nobody's memory grows."""
    with cluster.open(box, receive=4096) as terminal, cluster.open(box) as other:
        terminal.type("yes $(seq -s- 1000)\n")
        other.type("echo begin; yes paused\n")
        other.wait("begin\r\n(paused\r\n)+")
        other.pause(True)
        looks = []

        def wait():
            """Neither has run since the last twenty looks."""
            looks.append([ticks(pid) for pid in cluster.processes("yes")])
            return len(looks[-1]) == 2 and looks[-20:] == [looks[-1]] * 20
        wait_for(wait, 60, "both programs to wait")
        [server] = cluster.processes(SERVER)
        with open(f"/proc/{server}/status") as status:
            assert int(re.search(r"VmRSS:\s+(\d+) kB", status.read())[1]) < 16384
        other.pause(False)
        other.type("\x03echo $((6 * 7))\n")
        other.wait("42\r\n")


def test_no_more_than_64(cluster, box):
    with cluster.no_shell_left(), contextlib.ExitStack() as stack:
        terminals = [stack.enter_context(cluster.open(box)) for _ in range(64)]
        for terminal in terminals:
            terminal.wait(r"\$ ")
        with cluster.open(box) as one_more:
            assert one_more.wait_end() == (
                1000, "this session has 64 web terminals, its limit: close one, then open this again")
        terminals[0].type("exit\n")
        assert terminals[0].wait_end() == (1000, "the shell has ended with status 0")
        with cluster.open(box) as instead:
            instead.wait(r"\$ ")


def test_what_makes_no_sense(cluster, box):
    """A close that says why, or nothing at all; others go on."""
    with cluster.open(box) as good:
        good.wait(r"\$ ")
        with cluster.open(box) as terminal:
            terminal.send(b"1[]")
            assert terminal.wait_end() == (1002, "a size has to be a JSON object")
        with cluster.open(box) as terminal:
            for message in (b"", b"9?", b"{}", b'1{"columns": -5, "rows": 1e9}'):
                terminal.send(message)
            terminal.type("echo $((6 * 7))\n")
            terminal.wait("42\r\n")
            terminal.send(b"0" + bytes(5 << 20))
            assert terminal.wait_end()[0] == 1009
        good.type("echo $((6 * 7))\n")
        good.wait("42\r\n")


def test_bad_days(cluster):
    """The server and the proxy are killed: what was open ends, and another opens. The agent of the
    same machine has handed the connection over, and the manager has nothing to do with it."""
    with cluster.running("bad", "glibc") as session:
        def opens():
            with contextlib.suppress(Refused, OSError, AssertionError):
                return cluster.open(session)

        def kill_server():
            [server] = cluster.processes(SERVER, "bad")
            os.kill(server, signal.SIGKILL)
        ends = (kill_server, cluster.programs["proxy"].kill)
        for end in (kill_server, *(cluster.programs[name].kill for name in PROGRAMS)):
            with cluster.no_shell_left("bad"), cluster.open(session) as terminal:
                terminal.wait(r"\$ ")
                end()
                if end in ends:
                    terminal.wait_end()
                else:
                    terminal.type("echo $((6 * 7))\n")
                    terminal.wait("42\r\n")
            for name in PROGRAMS:
                if cluster.programs[name].process.poll() is not None:
                    cluster.programs[name].start()
            wait_for(cluster.is_serving, 60, "the manager")
            wait_status(cluster.client(), "bad", "RUNNING")
            with wait_for(opens, 60, "another terminal") as terminal:
                terminal.type("echo $((6 * 7))\n")
                terminal.wait("42\r\n")
        with cluster.open(session) as terminal:
            terminal.wait(r"\$ ")
            [runner] = [pid for pid in cluster.processes("/opt/kernel/aliquot-runner\0--socket", "bad")]
            os.kill(runner, signal.SIGKILL)
            terminal.wait_end()
        wait_status(cluster.client(), session, "TERMINATED", "ERROR")


def test_in_a_browser(cluster, box, tmp_path):
    """The page, as people see it: dark and narrow, resized, a job interrupted, an end, a new shell."""
    with Browser(cluster.folder) as browser:
        page = browser.page(viewport={"width": 900, "height": 500})

        def go_to(session):
            [[url]] = [cluster.cli("app", session, "ttyd", "--url").stdout.split()]
            page.goto(url)
        go_to("box")
        if "no terminal page" in page.textContent("body"):
            fetched.missing("the terminal page", "npm could not connect to its registry when this was built")

        def shows(text):
            page.wait_for(f"document.querySelector('.xterm-rows').textContent.includes({text!r})")

        def has_ended():
            page.wait_for("!document.querySelector('#bar button').matches(':empty')")
            return page.textContent("#bar span")
        page.wait_for("document.title === 'box'")
        shows("$ ")
        page.keyboard.type("echo $((6*7))\n")
        shows("42")
        page.screenshot({"path": str(tmp_path / "light.png")})
        page.keyboard.type("sleep 7777\n")
        wait_for(lambda: cluster.processes("sleep\x007777"), what="the program")
        page.keyboard.press("Control+c")
        shows("^C")
        page.keyboard.type("echo wide $(stty size)\n")
        wide = page.wait_for(SIZE % "wide")
        page.setViewportSize({"width": 390, "height": 700})
        page.emulateMedia({"colorScheme": "dark"})
        page.wait_for("document.querySelector('.xterm-rows').children.length > 30")
        page.keyboard.type("echo narrow $(stty size)\n")
        narrow = page.wait_for(SIZE % "narrow")
        assert int(narrow[1]) > int(wide[1]) and int(narrow[2]) < int(wide[2]), (wide, narrow)
        assert page.evaluate("document.documentElement.scrollWidth") == 390
        page.screenshot({"path": str(tmp_path / "dark.png")})
        page.keyboard.type("exit 3\n")
        assert has_ended() == "The shell has ended with status 3."
        page.screenshot({"path": str(tmp_path / "ended.png")})
        page.keyboard.press("Enter")
        page.wait_for("document.querySelector('#bar').hidden")
        page.keyboard.type("stty -echo; head -c 1048576 | sha256sum\n")
        shows("sha256sum")
        page.evaluate(PASTE)
        shows(hashlib.sha256(b"0123456\n" * (1 << 17)).hexdigest()[:30])
        assert not page.problems()
        with cluster.running("short", "glibc"):
            go_to("short")
            shows("$ ")
        page.wait_for("document.querySelector('#bar span').textContent === 'The session has ended.'")
        assert page.evaluate("document.querySelector('#bar button').matches(':empty')")
