# SPDX-License-Identifier: Apache-2.0
"""'aliquot folder cp' from a storage host that lies, into a directory that others can write to: what
did not come is told, and nothing of theirs becomes the copy.
"""

import contextlib
import http.server
import io
import json
import os
import tarfile
import threading

import pytest

from client import ADMIN
from world import World

SMALL, BIG = 5, 1 << 20


class Host(http.server.BaseHTTPRequestHandler):
    """Manager and storage host at once: a list of files, a token, and 'sends' for each download."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        asked = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        if path.endswith("/d/download"):
            data, headers = self.server.sends(json.loads(asked)["files"] if asked else None), {
                "ETag": '"1"'}
        elif path.endswith("/request-download"):
            data, headers = json.dumps({"url": f"{self.server.url}/d/download",
                                        "token": "t"}).encode(), {}
        else:
            data, headers = json.dumps({
                "items": [{"name": name, "type": "FILE", "size": size, "mode": "-rw-r--r--",
                           "modified": "2024-01-01T00:00:00Z"}
                          for name, size in self.server.files.items()],
                "more": False, "is_file": False, "is_missing": False}).encode(), {}
        self.send_response(200)
        for key, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(data)

    do_POST = do_GET

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def host(files, sends):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Host) as server:
        server.files, server.sends = files, sends
        server.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(name="world")
def world_fixture():
    with World() as world:
        yield world


def copy(world, server):
    """Exit code, what it prints as JSON, and its notes."""
    done = world.run("aliquot", "-o", "json", "folder", "cp", "-r", "data:", world.folder / "out",
                     ALIQUOT_ENDPOINT=server.url, ALIQUOT_ACCESS_KEY=ADMIN[0],
                     ALIQUOT_SECRET_KEY=ADMIN[1])
    return done.returncode, json.loads(done.stdout), done.stderr


def archive(*names):
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size = SMALL
            tar.addfile(entry, io.BytesIO(b"hello"))
    return made.getvalue()


@pytest.mark.gate
@pytest.mark.parametrize("sent", [lambda names: names, lambda names: names[:1],
                                  lambda names: names[1:], lambda names: []])
def test_files_that_do_not_come_are_told(world, sent):
    """An archive that is whole, but lacks files that were asked for."""
    came = []

    def sends(asked):
        came[:] = sent(asked)
        return archive(*came)
    with host({"a": SMALL, "b": SMALL}, sends) as server:
        code, said, notes = copy(world, server)
    assert sorted(os.listdir(world.folder / "out") if came else []) == sorted(came)
    assert (said["files"], said["failed"]) == (len(came), 2 - len(came)), said
    assert code == (0 if len(came) == 2 else 1), code
    for name in {"a", "b"} - set(came):
        assert f"failed: {name}: the storage host did not send it" in notes, notes


@pytest.mark.gate
@pytest.mark.parametrize("kind", ["pipe", "second-name", "foreign", "writable", "link"])
def test_parts_that_others_have_put_there(world, kind):
    """The name of a part is known beforehand; the copy is a file of ours alone."""
    out, victim = world.folder / "out", world.folder / "victim"
    out.mkdir()
    victim.write_text("keep")
    part = out / ".aliquot-00541119134fd259.part"  # of "big"
    if kind == "pipe":
        os.mkfifo(part)
    elif kind == "second-name":
        os.link(victim, part)
    elif kind == "link":
        part.symlink_to(victim)
    else:
        part.write_bytes(b"theirs")
        part.chmod(0o666)
        if kind == "foreign":
            os.chown(part, 4321, 4321)
    with host({"big": BIG}, lambda _: b"b" * BIG) as server:
        code, said, notes = copy(world, server)
    assert (code, said["files"], said["failed"]) == (0, 1, 0), notes
    assert os.listdir(out) == ["big"] and (out / "big").read_bytes() == b"b" * BIG
    shown = (out / "big").stat()
    assert (shown.st_uid, shown.st_nlink) == (os.geteuid(), 1)
    assert victim.read_text() == "keep"
