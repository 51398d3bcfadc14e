# SPDX-License-Identifier: Apache-2.0
"""The proxy between a bare root's apt and an archive: what it keeps, asks again, and refuses."""

import contextlib
import email.utils
import http.client
import http.server
import socket
import subprocess
import sys
import threading

import pytest

from doc_blocks import ROOT

CHANGED = "Sun, 01 Feb 2026 10:00:00 GMT"


class Archive(http.server.BaseHTTPRequestHandler):
    """Answers every path with 'body'; remembers who asked for what."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.server.asked.append((self.path, self.headers["If-Modified-Since"]))
        if self.headers["If-Modified-Since"] == self.server.changed:
            self.send_response(304)
            self.end_headers()
            return
        self.send_response(200)
        self.send_header("Last-Modified", self.server.changed)
        self.send_header("Content-Length", str(len(self.server.body) + self.server.missing))
        self.end_headers()
        self.wfile.write(self.server.body)


@pytest.fixture
def archive():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Archive)
    server.asked, server.body, server.changed, server.missing = [], b"one", CHANGED, 0
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@contextlib.contextmanager
def proxy(cache, **env):
    """The port of a proxy that keeps files in 'cache'."""
    near, far = socket.socketpair()
    with near, far, socket.create_server(("127.0.0.1", 0)) as listening:
        process = subprocess.Popen([sys.executable, "-B", ROOT / "tools" / "package_proxy.py",
                                    cache, str(far.fileno())], pass_fds=[far.fileno()],
                                   env={"PATH": "/nonexistent", **env})
        far.close()
        socket.send_fds(near, [b"1"], [listening.fileno()])
        assert near.recv(1) == b"1"
        yield listening.getsockname()[1]
        near.close()
        assert process.wait(timeout=10) == 0


def get(port, archive, path, **headers):
    link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    link.request("GET", f"http://127.0.0.1:{archive.server_port}{path}", headers=headers)
    answer = link.getresponse()
    said = answer.status, answer.read()
    link.close()
    return said


@pytest.mark.parametrize("path", ["/debian/pool/main/a/a_1.deb",
                                  "/debian/dists/bookworm/by-hash/SHA256/1234"])
def test_what_never_changes_is_fetched_once(archive, tmp_path, path):
    with proxy(tmp_path) as port:
        assert get(port, archive, path) == (200, b"one")
        assert get(port, archive, path) == (200, b"one")
    assert len(archive.asked) == 1


def test_a_list_is_asked_for_again(archive, tmp_path):
    path = "/debian/dists/bookworm/InRelease"
    with proxy(tmp_path) as port:
        assert get(port, archive, path) == (200, b"one")
        assert get(port, archive, path) == (200, b"one")
        archive.body, archive.changed = b"two", "Sun, 01 Feb 2026 11:00:00 GMT"
        assert get(port, archive, path) == (200, b"two")
        assert get(port, archive, path, **{"If-Modified-Since": archive.changed}) == (304, b"")
    assert [since for _, since in archive.asked] == [None, CHANGED, CHANGED, archive.changed]


def test_the_kept_list_is_served_where_nobody_answers(archive, tmp_path):
    path = "/debian/dists/bookworm/InRelease"
    with proxy(tmp_path) as port:
        assert get(port, archive, path) == (200, b"one")
        archive.shutdown()
        archive.server_close()
        assert get(port, archive, path) == (200, b"one")
        assert get(port, archive, "/debian/dists/trixie/InRelease")[0] == 503


def test_half_a_file_is_not_kept(archive, tmp_path):
    path = "/debian/pool/main/a/a_1.deb"
    archive.missing = 5
    with proxy(tmp_path) as port:
        with pytest.raises(http.client.IncompleteRead):
            get(port, archive, path)
        archive.missing = 0
        assert get(port, archive, path) == (200, b"one")
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["a_1.deb"]


def test_the_proxy_of_the_machine_is_asked(archive, tmp_path):
    url = "http://archive.invalid/debian/pool/main/a/a_1.deb"
    with proxy(tmp_path, http_proxy=f"http://127.0.0.1:{archive.server_port}/") as port:
        link = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        link.request("GET", url)
        assert link.getresponse().read() == b"one"
        link.close()
    assert [path for path, _ in archive.asked] == [url]


@pytest.mark.parametrize("path", ["/etc/passwd", "/debian/pool/../../etc/passwd", "/pool/",
                                  "/debian/pool//a.deb", "/debian/pool/a?b"])
def test_only_files_of_archives(archive, tmp_path, path):
    with proxy(tmp_path) as port:
        assert get(port, archive, path)[0] == 403
    assert not archive.asked


def test_what_was_not_used_for_long_goes_first(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    import package_proxy
    monkeypatch.setattr(package_proxy, "KEEP_BYTES", 25)
    for age in range(4):
        path = tmp_path / f"{age}.deb"
        path.write_bytes(b"x" * 10)
        used = email.utils.parsedate_to_datetime(CHANGED).timestamp() - age
        package_proxy.os.utime(path, (used, used))
    package_proxy.trim(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0.deb", "1.deb"]
