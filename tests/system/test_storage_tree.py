# SPDX-License-Identifier: Apache-2.0
"""Tokens of a directory: what they reach and what they do not, uploads that need no record, and
archives both ways.
"""

import io
import json
import os
import tarfile
import urllib.parse
import uuid

import pytest

from storage import Stored

DATA = os.urandom(3_000_000)
MODIFIED = 1_500_000_000_123_456


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Stored() as made:
        made.start_manager()
        made.start_storage()
        yield made
        made.stop()


@pytest.fixture(name="folder")
def folder_fixture(cluster):
    folder = cluster.make_folder()
    (cluster.place(folder) / "beside").mkdir()
    (cluster.place(folder) / "beside" / "secret").write_bytes(b"secret")
    (cluster.place(folder) / "in").mkdir()
    return folder


def token(cluster, op, folder, path="in", **more):
    return cluster.token(op, folder, path, tree=True, **more)


def upload_url(cluster, folder, name, data=DATA, upload=None, **more):
    return "/upload?token=" + token(cluster, "upload", folder, size=0, **more) + "&" + urllib.parse.urlencode(
        {"path": name, "size": len(data), "modified": MODIFIED, "mode": 0o755, "upload": upload or uuid.UUID(int=7)})


def archive(*entries):
    """A tar archive of tarfile's entries, each with its bytes."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as made:
        for name, data, more in entries:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            for key, value in more.items():
                setattr(info, key, value)
            made.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_an_upload_is_found_again_without_a_record(cluster, folder):
    url, file = upload_url(cluster, folder, "a/big"), cluster.place(folder) / "in" / "a" / "big"
    assert cluster.offset(url) == 0
    assert cluster.patch(url, DATA[:1_000_000], 0)[0] == 204
    assert cluster.offset(upload_url(cluster, folder, "a/other")) == 0
    assert cluster.offset(upload_url(cluster, folder, "a/big", upload=uuid.UUID(int=8))) == 0
    cluster.programs["storage"].kill()
    cluster.start_storage()
    url = upload_url(cluster, folder, "a/big")
    assert cluster.offset(url) == 1_000_000
    assert cluster.patch(url, DATA[1_000_000:], 1_000_000)[0] == 204
    assert file.read_bytes() == DATA and file.stat().st_mode & 0o777 == 0o755
    assert file.stat().st_mtime_ns == MODIFIED * 1000
    assert cluster.offset(url) == len(DATA)
    assert not list((cluster.place(folder) / ".aliquot-uploads").iterdir())
    file.unlink()
    assert cluster.offset(url) == 0


@pytest.mark.parametrize("name", ["../beside/new", "/../beside/new", "a/../../beside/new", "out/new", "", "in\0"])
def test_nothing_beside_the_directory_is_reached(cluster, folder, name):
    (cluster.place(folder) / "in" / "out").symlink_to("/tmp")
    status, _, _ = cluster.patch(upload_url(cluster, folder, name), DATA, 0)
    assert status == 400
    status, _, _ = cluster.ask("GET", "/download?token=" + token(cluster, "download", folder) + "&"
                               + urllib.parse.urlencode({"path": name}))
    assert status in {400, 404}
    if name and "\0" not in name:
        body = archive((name, DATA, {}))
        assert cluster.ask("PUT", "/archive?token=" + token(cluster, "upload", folder, size=0), body)[0] == 400
    assert [path.name for path in (cluster.place(folder) / "beside").iterdir()] == ["secret"]


def test_a_token_is_for_its_direction_and_for_a_directory(cluster, folder):
    up, down = token(cluster, "upload", folder, size=0), token(cluster, "download", folder)
    plain = cluster.token("upload", folder, "in", size=5)
    body = archive(("x", b"x", {}))
    assert cluster.ask("PUT", f"/archive?token={down}", body)[0] == 403
    assert cluster.ask("PUT", f"/archive?token={plain}", body)[0] == 403
    assert cluster.ask("GET", f"/download?token={up}&path=x")[0] == 403
    assert cluster.ask("POST", f"/download?token={up}", json.dumps({"files": ["x"]}))[0] == 403
    assert cluster.ask("POST", "/download?token=" + cluster.token("download", folder, "in"),
                       json.dumps({"files": ["x"]}))[0] == 403
    assert cluster.ask("POST", f"/upload?token={up}&path=x", Upload_Length=5)[0] == 400
    old = token(cluster, "upload", folder, size=0, seconds=-5)
    assert cluster.ask("PUT", f"/archive?token={old}", body)[0] == 403
    for bad in ("&size=x", "&mode=999999", "&modified=-1", "&upload=x"):
        assert cluster.ask("HEAD", f"/upload?token={up}&path=x&size=1&modified=1&mode=1&upload={uuid.uuid4()}"
                           .replace(bad.split("=")[0] + "=", "&old=") + bad)[0] == 400, bad


def test_an_archive_is_unpacked(cluster, folder):
    body = archive(("a/b", b"one", {"mode": 0o755, "pax_headers": {"mtime": "1500000000.123456"}}),
                   ("empty/", b"", {"type": tarfile.DIRTYPE, "mode": 0o700}),
                   ("new\nline", b"two", {}))
    url = "/archive?token=" + token(cluster, "upload", folder, size=0)
    for _ in range(2):
        assert cluster.ask("PUT", url, body)[0] == 204
    place = cluster.place(folder) / "in"
    assert (place / "a" / "b").read_bytes() == b"one" and (place / "new\nline").read_bytes() == b"two"
    assert (place / "a" / "b").stat().st_mtime_ns == MODIFIED * 1000
    assert (place / "a" / "b").stat().st_mode & 0o777 == 0o755 and (place / "empty").is_dir()
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        bad = archive(("evil", b"", {"type": kind, "linkname": "/etc/passwd"}))
        assert cluster.ask("PUT", url, bad)[0] == 400
    root = "/archive?token=" + token(cluster, "upload", folder, path="", size=0)
    assert cluster.ask("PUT", root, archive((".aliquot-uploads/x", b"x", {})))[0] == 400
    assert cluster.ask("PUT", url, body[:700])[0] == 400
    assert cluster.ask("PUT", url, b"no archive" * 100)[0] == 400
    small = "/archive?token=" + token(cluster, "upload", folder, size=0, quota=100)
    assert cluster.ask("PUT", small, body)[0] == 413
    assert not list(place.rglob("*evil*")) and not list(place.rglob(".aliquot-*"))


def with_size(header, size):
    """The tar header, which claims another size: octal digits, or bytes as GNU has them."""
    field = size if isinstance(size, bytes) else b"%011o\0" % size
    head = bytearray(header[:124] + field + header[136:512])
    head[148:156] = b" " * 8
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


ONE = archive(("x", b"x", {}))
HOSTILE = {
    "larger than it is": with_size(ONE, 1 << 30) + b"x" * 1000,
    "wrong, and much behind it": b"x" * (20 << 20),
    "larger than can be": with_size(ONE, b"\x80" + b"\xff" * 11),
    "negative": with_size(ONE, b"\xff" * 12),
    "no digits": with_size(ONE, b"zzzzzzzzzzz\0"),
    "wrong sum": ONE[:10] + b"y" + ONE[11:],
    "long": archive(("n" * 256, b"x", {})),
    "longer than a path": archive(("/".join(["n" * 200] * 30), b"x", {})),
    "absolute": archive(("/etc/evil", b"x", {})),
    "up": archive(("a/../../../evil", b"x", {})),
    "nothing": archive(("", b"x", {})),
    "dots": archive(("..", b"", {"type": tarfile.DIRTYPE})),
    "link, then through it": archive(("evil", b"", {"type": tarfile.SYMTYPE, "linkname": "/tmp"}),
                                     ("evil/x", b"x", {})),
    "file, then through it": archive(("a", b"x", {}), ("a/evil", b"x", {})),
    "directory, then a file": archive(("a/x", b"x", {}), ("a", b"evil", {})),
    "a name with a NUL": archive(("a", b"x", {"pax_headers": {"path": "evil\0x"}})),
    "an endless header": archive(("a", b"x", {"pax_headers": {"comment": "x" * (5 << 20)}})),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_archives(cluster, folder, kind):
    """Refused, without a file out of place and with nothing left of them; the next is taken."""
    place = cluster.place(folder) / "in"
    url = "/archive?token=" + token(cluster, "upload", folder, size=0)
    status, _, said = cluster.ask("PUT", url, HOSTILE[kind])
    assert status in {400, 409, 413}, (status, said)
    assert b"title" in said, said
    assert not [path for path in cluster.place(folder).rglob("*")
                if "evil" in path.name or path.name.startswith(".aliquot-") and path.is_file()]
    assert [path.name for path in (cluster.place(folder) / "beside").iterdir()] == ["secret"]
    assert cluster.ask("PUT", url, archive(("good", b"good", {})))[0] == 204
    assert (place / "good").read_bytes() == b"good"


def test_files_come_as_an_archive(cluster, folder):
    place = cluster.place(folder) / "in"
    (place / "a").mkdir()
    (place / "a" / "b").write_bytes(b"one")
    (place / "two").write_bytes(b"2" * 5000)
    os.utime(place / "two", ns=(0, MODIFIED * 1000))
    url = "/download?token=" + token(cluster, "download", folder)
    status, _, body = cluster.ask("POST", url, json.dumps({"files": ["a/b", "missing", "two"]}))
    assert status == 200
    with tarfile.open(fileobj=io.BytesIO(body)) as got:
        assert [(item.name, got.extractfile(item).read()) for item in got] == [
            ("a/b", b"one"), ("two", b"2" * 5000)]
        assert float(got.getmember("two").pax_headers["mtime"]) == pytest.approx(MODIFIED / 1e6)
    assert b"failed: missing: No such file" in body
    for bad in ({}, {"files": []}, {"files": ["../beside/secret"]}, {"files": [1]}, {"files": ["x"] * 1001}):
        assert cluster.ask("POST", url, json.dumps(bad))[0] == 400
    assert cluster.ask("POST", url, b"{")[0] == 400
