# SPDX-License-Identifier: Apache-2.0
"""aliquot-storage: files come and go by tokens, what was acknowledged stays, and nobody gets out of
a folder."""

import contextlib
import io
import os
import signal
import socket
import ssl
import subprocess
import threading
import tarfile
import time
import urllib.request

import pytest

import containers
import storage
from cluster import wait_for
from ports import free_port
from storage import Stored
from world import BUILD

DATA = os.urandom(3 << 20)


@pytest.fixture(scope="module")
def cluster():
    with Stored() as cluster:
        cluster.start_manager()
        cluster.start_storage()
        yield cluster
        cluster.stop()


@pytest.fixture
def folder(cluster):
    return cluster.make_folder()


# ---- uploads ----

@pytest.mark.gate
def test_a_file_comes_in_pieces_and_goes_again(cluster, folder):
    """As Backend.AI's clients do it: PATCH alone, piece by piece; nothing is seen before the end."""
    url, step = cluster.upload(folder, "deep/er/data.bin", len(DATA)), 1 << 20
    for at in range(0, len(DATA), step):
        assert not (cluster.place(folder) / "deep").exists()
        status, headers, _ = cluster.patch(url, DATA[at:at + step], at)
        assert (status, headers["Upload-Offset"]) == (204, str(at + step))
        assert headers["Tus-Resumable"] == "1.0.0" and headers["Upload-Length"] == str(len(DATA))
    assert (cluster.place(folder) / "deep/er/data.bin").read_bytes() == DATA
    assert cluster.offset(url) == len(DATA)
    status, headers, body = cluster.ask("GET", cluster.download(folder, "deep/er/data.bin"))
    assert (status, headers["Content-Length"], body == DATA) == (200, str(len(DATA)), True)
    assert headers["Content-Disposition"] == "attachment; filename*=UTF-8''data.bin"


def test_an_upload_goes_on_where_it_was_cut(cluster, folder):
    url = cluster.upload(folder, "cut", len(DATA))
    for _ in range(10):
        offset = cluster.offset(url)
        with socket.create_connection(("127.0.0.1", cluster.port)) as client:
            client.sendall(f"PATCH {url} HTTP/1.1\r\nHost: a\r\nUpload-Offset: {offset}\r\n"
                           "Content-Type: application/offset+octet-stream\r\n"
                           f"Content-Length: {len(DATA) - offset}\r\n\r\n".encode()
                           + DATA[offset:offset + 200_000])
            wait_for(lambda: sum(path.stat().st_size for path in
                                 cluster.place(folder).glob(".aliquot-uploads/*")) > offset, 30,
                     "something to come")
    offset = cluster.offset(url)
    assert cluster.patch(url, DATA[offset:], offset)[0] == 204
    assert (cluster.place(folder) / "cut").read_bytes() == DATA


def test_the_rules_of_tus_are_kept(cluster, folder):
    url = cluster.upload(folder, "file", 10)
    assert cluster.patch(url, b"12345", 0)[0] == 204
    status, headers, _ = cluster.patch(url, b"12345", 0)  # doubled
    assert (status, headers["Upload-Offset"]) == (409, "5")
    assert cluster.patch(url, b"12345", 7)[0] == 409
    assert cluster.patch(url, b"123456", 5)[0] == 413
    assert cluster.patch(url, b"12345", 5, Content_Type="text/plain")[0] == 415
    assert cluster.patch(url, b"12345", 5, Tus_Resumable="0.2.1")[0] == 412
    assert cluster.patch(url, b"12345", "5x")[0] == 400
    assert cluster.offset(url) == 5
    assert cluster.patch(url, iter([b"67", b"8901234"]), 5)[0] == 413  # of unknown length
    assert cluster.offset(url) == 10
    assert (cluster.place(folder) / "file").read_bytes() == b"1234567890"
    status, headers, _ = cluster.ask("OPTIONS", "/upload", Origin="https://console.example")
    assert (status, headers["Tus-Version"]) == (204, "1.0.0")
    assert {"creation", "concatenation", "termination"} <= set(headers["Tus-Extension"].split(","))
    assert "PATCH" in headers["Access-Control-Allow-Methods"]
    assert headers["Access-Control-Allow-Origin"] == "https://console.example"


def test_an_upload_can_be_given_up(cluster, folder):
    url = cluster.upload(folder, "file", 10)
    cluster.patch(url, b"12345", 0)
    assert cluster.ask("DELETE", url)[0] == 204
    assert cluster.offset(url) == 0 and not list(cluster.place(folder).glob(".aliquot-uploads/*"))


def test_parts_become_one_file(cluster, folder):
    url = cluster.upload(folder, "whole", len(DATA))
    cuts = [0, 700_000, 2_000_000, len(DATA)]
    parts = []
    for start, end in zip(cuts, cuts[1:]):
        status, headers, said = cluster.ask("POST", url, Upload_Length=end - start,
                                            Upload_Concat="partial")
        assert status == 201, said
        part = headers["Location"].removeprefix(f"http://127.0.0.1:{cluster.port}")
        assert cluster.patch(part, DATA[start:end], 0)[0] == 204
        parts.append(part)
    wrong = cluster.ask("POST", url, Upload_Concat="final;" + parts[0])
    assert wrong[0] == 400, wrong
    for _ in range(2):  # the answer may have been lost
        status, headers, _ = cluster.ask("POST", url, Upload_Concat="final;" + " ".join(parts))
        assert status == 201, headers
    assert (cluster.place(folder) / "whole").read_bytes() == DATA
    assert [path.suffix for path in cluster.place(folder).glob(".aliquot-uploads/*")] == [".done"]


def test_one_request_writes_at_a_time(cluster, folder):
    """The client of the one before may be long gone, without the storage host knowing."""
    url = cluster.upload(folder, "file", 10)
    with socket.create_connection(("127.0.0.1", cluster.port)) as stale:
        stale.sendall(f"PATCH {url} HTTP/1.1\r\nHost: a\r\nUpload-Offset: 0\r\n"
                      "Content-Type: application/offset+octet-stream\r\n"
                      "Content-Length: 10\r\n\r\n12345".encode())
        wait_for(lambda: list(cluster.place(folder).glob(".aliquot-uploads/*")), 30, "it to begin")
        assert cluster.offset(url) in (0, 5)  # it may have come before the bytes
        assert stale.recv(100) == b""
    offset = cluster.offset(url)
    assert cluster.patch(url, b"1234567890"[offset:], offset)[0] == 204


def test_tokens_say_what_may_be_done(cluster, folder):
    (cluster.place(folder) / "file").write_text("text")
    for bad in (cluster.download(folder, "file")[:-4] + "AAAA", "/download?token=", "/download",
                cluster.download(folder, "file", seconds=-1),
                cluster.upload(folder, "file", 4).replace("upload?", "download?")):
        assert cluster.ask("GET", bad)[0] in (400, 403), bad
    assert cluster.patch(cluster.download(folder, "file").replace("download?", "upload?"), b"", 0)[0] == 403
    late = cluster.token("upload", folder, "late", size=10, upload="0" * 32)
    assert cluster.patch("/upload?token=" + late, b"12345", 0)[0] == 204
    spent = cluster.token("upload", folder, "late", size=10, upload="0" * 32, seconds=-1)
    assert cluster.patch("/upload?token=" + spent, b"67890", 5)[0] == 204  # it had begun
    fresh = cluster.token("upload", folder, "late", size=10, seconds=-1)
    assert cluster.patch("/upload?token=" + fresh, b"67890", 0)[0] == 403


def test_quota_refuses_the_next_write(cluster, folder):
    (cluster.place(folder) / "old").write_bytes(bytes(900))
    status, _, body = cluster.patch(cluster.upload(folder, "new", 200, quota=1000), bytes(200), 0)
    assert status == 413 and b"the folder holds 900 bytes of its 1000 bytes" in body, body
    assert cluster.patch(cluster.upload(folder, "new", 100, quota=1000), bytes(100), 0)[0] == 204


# ---- paths ----

def test_no_path_leads_out(cluster, folder):
    place = cluster.place(folder)
    (cluster.folder / "secret").write_text("secret")
    (place / "inside").mkdir()
    (place / "inside/file").write_text("inside")
    (place / "out").symlink_to(cluster.folder)
    (place / "up").symlink_to("../../../..")
    (place / "secret").symlink_to(cluster.folder / "secret")
    (place / "to").symlink_to("inside")
    for path in ("out/secret", "up/secret", "secret", "../secret", "/etc/passwd", "out",
                 "inside/../../x", ".aliquot-uploads/x"):
        status, _, body = cluster.ask("GET", cluster.download(folder, path))
        assert status in (400, 404) and b"secret\"" not in body, (path, status)
    assert cluster.ask("GET", cluster.download(folder, "to/file"))[2] == b"inside"
    for path in ("out/new", "up/new"):
        assert cluster.patch(cluster.upload(folder, path, 1), b"x", 0)[0] == 400, path
    assert not (cluster.folder / "new").exists()
    assert cluster.patch(cluster.upload(folder, "secret", 1), b"x", 0)[0] == 204  # replaces the link
    assert (cluster.folder / "secret").read_text() == "secret"
    archive = tarfile.open(fileobj=io.BytesIO(
        cluster.ask("GET", cluster.download(folder, "", op="archive"))[2]))
    assert all(not member.isfile() or archive.extractfile(member).read() != b"secret"
               for member in archive)


def test_names_are_bytes(cluster, folder):
    for name in ("line\nend", "x" * 255, "\uef80\uefff", "ü ☃"):
        assert cluster.patch(cluster.upload(folder, name, 4), b"text", 0)[0] == 204, name
        assert cluster.ask("GET", cluster.download(folder, name))[2] == b"text"
    names = set(os.listdir(os.fsencode(cluster.place(folder)))) - {b".aliquot-uploads"}
    assert names == {b"line\nend", b"x" * 255, b"\x80\xff", "ü ☃".encode()}
    assert cluster.patch(cluster.upload(folder, "x" * 256, 4), b"text", 0)[0] == 400


# ---- downloads ----

def test_parts_of_a_file_are_sent(cluster, folder):
    (cluster.place(folder) / "file").write_bytes(DATA)
    url, size = cluster.download(folder, "file"), len(DATA)
    for wanted, part in (("bytes=0-9", DATA[:10]), ("bytes=-10", DATA[-10:]),
                         (f"bytes={size - 5}-", DATA[-5:]), ("bytes=100-199", DATA[100:200])):
        status, headers, body = cluster.ask("GET", url, Range=wanted)
        assert (status, body) == (206, part), wanted
        assert headers["Content-Range"].endswith(f"/{size}")
    assert cluster.ask("GET", url, Range=f"bytes={size}-")[0] == 416
    status, headers, body = cluster.ask("GET", url, Range="bytes=0-1,5-6")
    assert status == 200 and body == DATA
    tag = headers["ETag"]
    assert cluster.ask("GET", url, Range="bytes=0-9", If_Range=tag)[0] == 206
    assert cluster.ask("GET", url, Range="bytes=0-9", If_Range='"other"')[0] == 200
    assert cluster.ask("GET", url, If_None_Match=tag)[0] == 304
    status, headers, body = cluster.ask("HEAD", url)
    assert (status, headers["Content-Length"], body) == (200, str(size), b"")


def test_a_folder_comes_as_an_archive(cluster, folder):
    (cluster.place(folder) / "a/b").mkdir(parents=True)
    (cluster.place(folder) / "a/b/file").write_bytes(DATA)
    status, headers, body = cluster.ask("GET", cluster.download(folder, "a", op="archive"))
    assert (status, headers["Content-Type"]) == (200, "application/x-tar")
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:
        assert archive.extractfile("a/b/file").read() == DATA
    assert cluster.patch(cluster.upload(folder, "half", 10), b"12345", 0)[0] == 204
    body = cluster.ask("GET", cluster.download(folder, "", op="archive"))[2]
    with tarfile.open(fileobj=io.BytesIO(body)) as archive:  # without what is not whole
        assert {name.split("/")[1] for name in archive.getnames() if "/" in name} == {"a"}


# ---- other people's clients ----

def test_curl_goes_on_with_a_download(cluster, folder, tmp_path):
    (cluster.place(folder) / "file").write_bytes(DATA)
    (tmp_path / "file").write_bytes(DATA[:1_000_000])
    done = subprocess.run(["curl", "-sSf", "-C", "-", "-o", tmp_path / "file",
                           f"http://127.0.0.1:{cluster.port}" + cluster.download(folder, "file")],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "file").read_bytes() == DATA


@pytest.mark.parametrize("parts", [1, 3])
def test_tus_js_client_uploads_and_resumes(cluster, folder, tmp_path, parts):
    """Cut ten times by the client itself, it finds by HEAD where it was; then in parallel parts."""
    (tmp_path / "file").write_bytes(DATA)
    url = f"http://127.0.0.1:{cluster.port}" + cluster.upload(folder, "file", len(DATA))
    done = subprocess.run(["node", storage.CLIENTS / "upload.js", tmp_path / "file", url,
                           str(parts), str(10 if parts == 1 else 0)],
                          env={**os.environ, "NODE_PATH": str(storage.install_tus())},
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (cluster.place(folder) / "file").read_bytes() == DATA


# ---- bad days ----

def test_what_was_dropped_is_removed_after_a_restart(cluster, folder):
    dropped = cluster.volume / ".purge-test"
    deep = cluster.place(folder)
    for _ in range(400):
        deep = deep / "d"
        deep.mkdir()
    (deep / "file").write_text("text")
    cluster.place(folder).rename(dropped)
    cluster.programs["storage"].kill()
    cluster.start_storage()
    wait_for(lambda: not dropped.exists(), 60, "it to be removed")


def test_uploads_that_were_given_up_are_swept(cluster, folder):
    url = cluster.upload(folder, "file", 10)
    cluster.patch(url, b"12345", 0)
    (kept,) = cluster.place(folder).glob(".aliquot-uploads/*")
    cluster.programs["storage"].kill()
    os.utime(kept, (time.time() - 90000,) * 2)
    cluster.start_storage()
    wait_for(lambda: not kept.exists(), 60, "it to be swept")


def mounted(path, options):
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options + ",mode=700", "tmpfs", path], check=True)


def test_a_full_disk_keeps_what_came(tmp_path):
    with Stored() as cluster:
        cluster.volume = cluster.folder / "small"
        mounted(cluster.volume, "size=2m")
        try:
            cluster.start_manager()
            cluster.start_storage()
            folder = cluster.make_folder()
            url = cluster.upload(folder, "file", len(DATA))
            status, _, body = cluster.patch(url, DATA, 0)
            assert status == 507 and b"full or over a quota" in body, (status, body)
            offset = cluster.offset(url)
            assert 0 < offset < len(DATA)
            subprocess.run(["mount", "-o", "remount,size=8m", cluster.volume], check=True)
            assert cluster.patch(url, DATA[offset:], offset)[0] == 204
            assert (cluster.place(folder) / "file").read_bytes() == DATA
            wait_for(lambda: not subprocess.run(["mount", "-o", "remount,ro", cluster.volume]).returncode,
                     30, "the file to be closed")
            status, _, body = cluster.patch(cluster.upload(folder, "new", 1), b"x", 0)
            assert status == 507 and b"mounted read-only" in body, (status, body)
            assert cluster.ask("GET", cluster.download(folder, "file"))[0] == 200
            cluster.stop()
        finally:
            subprocess.run(["umount", "-l", cluster.volume], check=True)


def chunked(data):
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece)
                    for piece in (data[at:at + 1000] for at in range(0, len(data), 1000)))


def test_a_volume_that_hangs_delays_no_other(tmp_path):
    image, frozen = tmp_path / "image", tmp_path / "frozen"
    frozen.mkdir()
    subprocess.run(["truncate", "-s", "16M", image], check=True)
    if not containers.can_limit_scratch():
        pytest.skip("no loop devices, or no mkfs.ext4")
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, frozen], check=True)
    frozen.chmod(0o700)
    try:
        with Stored() as cluster:
            cluster.start_manager()
            cluster.start_storage(ALIQUOT_STORAGE_VOLUMES=f"volume1:{cluster.folder}/volume1 "
                                                          f"frozen:{frozen}")
            folder = cluster.make_folder()
            hanging = cluster.upload(folder, "file", 4, volume="frozen")
            place = frozen / cluster.place(folder).relative_to(cluster.volume)
            place.mkdir(parents=True)
            begun = cluster.upload(folder, "begun", len(DATA), volume="frozen")
            sender = socket.create_connection(("127.0.0.1", cluster.port))
            sender.sendall(f"PATCH {begun} HTTP/1.1\r\nHost: a\r\nUpload-Offset: 0\r\n"
                           "Content-Type: application/offset+octet-stream\r\n"
                           "Transfer-Encoding: chunked\r\n\r\n".encode() + chunked(DATA[:1000]))
            wait_for(lambda: any(path.stat().st_size for path in place.glob(".aliquot-uploads/*")), 30,
                     "it to begin")
            subprocess.run(["fsfreeze", "-f", frozen], check=True)
            rest = threading.Thread(target=sender.sendall, args=(chunked(DATA[1000:]) + b"0\r\n\r\n",))
            rest.start()  # more comes than waits in memory
            try:
                clients = [socket.create_connection(("127.0.0.1", cluster.port)) for _ in range(20)]
                for client in clients:
                    client.sendall(f"POST {hanging} HTTP/1.1\r\nHost: a\r\nUpload-Length: 4\r\n"
                                   "Content-Length: 0\r\n\r\n".encode())
                for at in range(5):
                    url = cluster.upload(folder, f"file{at}", 4)
                    assert cluster.patch(url, b"text", 0)[0] == 204
                clients[0].settimeout(0.1)
                with pytest.raises(TimeoutError):  # it does hang
                    clients[0].recv(1)
                assert cluster.is_stored()
            finally:
                subprocess.run(["fsfreeze", "-u", frozen], check=True)
            rest.join()
            with sender:
                assert sender.recv(1000).startswith(b"HTTP/1.1 204")
            assert (place / "begun").read_bytes() == DATA
            for client in clients:
                client.settimeout(60)
                assert client.recv(1000).startswith(b"HTTP/1.1 201")
                client.close()
            cluster.stop()
    finally:
        subprocess.run(["umount", "-l", frozen], check=True)


def test_it_ends_in_order_and_reads_its_certificate_again(cluster):
    done = cluster.run("aliquot-storage", "--version")
    assert done.stdout.startswith("aliquot-storage ")
    done = cluster.run("aliquot-storage", "--state", cluster.state, "check")
    assert '"storage.joined"' in done.stdout and '"storage.volumes"' in done.stdout
    cluster.programs["storage"].signal(signal.SIGHUP)
    assert cluster.is_stored()
    assert cluster.programs["storage"].stop() == 0
    cluster.start_storage()


def make_certificate(path, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                    "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", path.with_suffix(".key"), "-out",
                    path, "-subj", f"/CN={name}"], check=True, capture_output=True)


def test_it_speaks_tls_and_says_how_it_is(cluster, tmp_path):
    """The certificate that it reads again is what the next client sees; /metrics has its own port."""
    cert, metrics = tmp_path / "cert.pem", free_port()
    make_certificate(cert, "first")
    assert cluster.programs["storage"].stop() == 0
    cluster.start_program("storage", BUILD / "aliquot-storage", "--state", cluster.state, "--listen",
                          f"127.0.0.1:{cluster.port}", ALIQUOT_STORAGE_TLS_CERT=str(cert),
                          ALIQUOT_STORAGE_TLS_KEY=str(cert.with_suffix(".key")),
                          ALIQUOT_STORAGE_VOLUMES=f"volume1:{cluster.volume}",
                          ALIQUOT_METRICS_LISTEN=f"127.0.0.1:{metrics}")

    def shown():
        with contextlib.suppress(OSError):
            context = ssl.create_default_context(cafile=cert)
            context.check_hostname = False
            with socket.create_connection(("127.0.0.1", cluster.port), 5) as plain, \
                    context.wrap_socket(plain) as client:
                return client.getpeercert()["subject"][0][0][1]
    wait_for(lambda: shown() == "first", 30, "the first certificate")
    make_certificate(cert, "second")
    cluster.programs["storage"].signal(signal.SIGHUP)
    wait_for(lambda: shown() == "second", 30, "the second certificate")
    folder = cluster.make_folder()
    (cluster.place(folder) / "file").write_bytes(DATA)
    done = subprocess.run(["curl", "-sSf", "--cacert", cert, "--resolve", f"second:{cluster.port}:127.0.0.1",
                           f"https://second:{cluster.port}" + cluster.download(folder, "file")],
                          capture_output=True, timeout=60)
    assert done.stdout == DATA, done.stderr
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=30) as reply:
        said = reply.read().decode()
    assert "aliquot_storage_manager_connected 1" in said
    assert f"aliquot_storage_bytes_out_total {len(DATA)}" in said
    assert cluster.programs["storage"].stop() == 0
    cluster.start_storage()


def test_bad_settings_are_refused_by_name(cluster):
    for bad, said in (("volume1", "absolute path"), ("a:/x a:/y", "two volumes"),
                      ("a:relative", "absolute path")):
        done = cluster.run("aliquot-storage", "--state", cluster.state, ALIQUOT_STORAGE_VOLUMES=bad)
        assert done.returncode == 1 and said in done.stderr, done.stderr
    assert (BUILD / "aliquot-storage").exists()
