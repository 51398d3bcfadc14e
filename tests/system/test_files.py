# SPDX-License-Identifier: Apache-2.0
"""Files in running sessions: 'aliquot cp' and the routes behind it, in real containers."""

import contextlib
import hashlib
import io
import json
import os
import random
import signal
import socket
import subprocess
import tarfile

import pytest

import containers
from client import ADMIN
from cluster import Cluster, running, wait_for, wait_status
from images import Layout, archive, file
from runtimes import settings_of
from sparse import is_sparse, make_sparse
from world import BUILD

MIB = 1 << 20
# A sanitizer keeps what was freed.
SANITIZED = b"__asan_init" in (BUILD / "aliquot-manager").read_bytes()


@pytest.fixture(params=("crun", "runc"), scope="module")
def cluster(request):
    with Cluster(**settings_of(request.param), ALIQUOT_IMAGE_ALLOW="* host oci:/",
                 ALIQUOT_IMAGE_KEEP_FREE="1") as cluster:
        cluster.start_manager(ALIQUOT_FILES_MAX_SIZE="32m", ALIQUOT_FILES_MAX_FILES="300")
        cluster.start_agent(**({"ALIQUOT_CONTAINER_SCRATCH_SIZE": "48m"}
                               if containers.can_limit_scratch() else {}))
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


@pytest.fixture(scope="module")
def box(cluster):
    with running(cluster.client(), "boxy", image="host"):
        yield "boxy"


def start(cluster, *words, **more):
    env = {**cluster.env, **cluster.cli_env()}
    return subprocess.Popen([BUILD / "aliquot", *map(os.fspath, words)], env=env,
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            **more)


def run(cluster, *words, data=b"", **more):
    """(exit status, standard output, standard error) of aliquot."""
    child = start(cluster, *words, **more)
    out, err = child.communicate(data, timeout=120)
    return child.returncode, out, err.decode(errors="replace")


def copy(cluster, *words, **more):
    done = run(cluster, "cp", *words, **more)
    assert done[0] == 0, done
    return done


def shell(cluster, box, text):
    status, out, err = run(cluster, "exec", "-n", box, "sh", "-c", text)
    assert status == 0, err
    return out


def halves(cluster, box):
    """Files that are not complete, in the session."""
    return shell(cluster, box, "find . -name '.aliquot-*'").decode().split()


def tree(folder):
    """What is below a folder, as text that can be compared."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = os.fsencode(path.relative_to(folder))
        if path.is_symlink():
            found[name] = ("link", os.readlink(path))
        elif path.is_dir():
            found[name] = ("folder",)
        else:
            found[name] = (path.stat().st_mode & 0o777, int(path.stat().st_mtime),
                           path.read_bytes())
    return found


def make_tree(folder):
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "empty").mkdir()
    (folder / "nothing").touch()
    (folder / "program").write_bytes(b"#!/bin/sh\n")
    (folder / "program").chmod(0o755)
    os.utime(folder / "program", (1e9, 1e9))
    (folder / "deep" / "large").write_bytes(random.Random(3).randbytes(3 * MIB + 17))
    (folder / "deep" / "link").symlink_to("large")
    for name in (b"line\nbreak", b"not \xff utf-8", b"n" * 255, "\u00fcml\u00e4ut".encode(), b"a b", b"-rf"):
        pathlib = os.path.join(os.fsencode(folder / "deep" / "er"), name)
        with open(pathlib, "wb") as made:
            made.write(name)
    return folder


@pytest.mark.gate
def test_a_folder_there_and_back(cluster, box, tmp_path):
    source = make_tree(tmp_path / "source")
    copy(cluster, source, f"{box}:")
    assert shell(cluster, box, "stat -c '%u %a' source/program") == b"1000 755\n"
    copy(cluster, f"{box}:source", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(source)
    shell(cluster, box, "rm -r source")


def test_holes_stay_holes(cluster, box, tmp_path):
    """Zeros take no room where they come to, in a folder, alone and as a stream."""
    source = make_sparse(tmp_path / "source" / "holes", 12 * MIB)
    copy(cluster, tmp_path / "source", f"{box}:")
    copy(cluster, "-", f"{box}:source/stream", data=source.read_bytes())
    for name in ("holes", "stream"):
        size, blocks = shell(cluster, box, f"stat -c '%s %b' source/{name}").split()
        assert int(size) == 12 * MIB and int(blocks) * 512 < MIB, (name, blocks)
    copy(cluster, f"{box}:source", tmp_path / "back")
    copy(cluster, f"{box}:source/holes", tmp_path / "back" / "alone")
    for name in ("holes", "stream", "alone"):
        there = tmp_path / "back" / name
        assert there.read_bytes() == source.read_bytes() and is_sparse(there), name
    shell(cluster, box, "rm -r source")


@pytest.mark.gate
def test_where_copies_go(cluster, box, tmp_path):
    one = tmp_path / "one"
    one.write_text("1")
    (tmp_path / "some").mkdir()
    (tmp_path / "some" / "two").write_text("2")
    copy(cluster, one, f"{box}:new-name")
    copy(cluster, one, tmp_path / "some", f"{box}:made/")
    copy(cluster, tmp_path / "some", f"{box}:other")
    copy(cluster, f"{tmp_path}/some/.", f"{box}:/home/work/made")
    assert shell(cluster, box, "cat new-name made/one made/some/two other/two made/two") == b"11222"
    assert run(cluster, "cp", one, f"{box}:missing/name")[0] == 5
    assert run(cluster, "cp", one, f"{box}:new-name/x")[0] != 0
    copy(cluster, f"{box}:made/one", f"{box}:new-name", tmp_path / "into")
    copy(cluster, f"{box}:made", tmp_path / "renamed")
    copy(cluster, f"{box}:made/.", tmp_path / "inner")
    assert (tmp_path / "into" / "one").read_text() == "1"
    assert (tmp_path / "into" / "new-name").read_text() == "1"
    assert tree(tmp_path / "renamed") == tree(tmp_path / "inner")
    assert run(cluster, "cp", f"{box}:made", tmp_path / "one")[0] != 0
    shell(cluster, box, "rm -r made other new-name")


@pytest.mark.gate
def test_streams(cluster, box):
    data = random.Random(4).randbytes(9 * MIB + 1)
    copy(cluster, "-", f"{box}:streamed", data=data)
    assert copy(cluster, f"{box}:streamed", "-")[1] == data
    copy(cluster, "-", f"{box}:streamed")
    assert copy(cluster, f"{box}:streamed", "-")[1] == b""
    assert "is a folder" in run(cluster, "cp", "-", f"{box}:.")[2]
    assert run(cluster, "cp", "-", f"{box}:")[0] == 2
    assert "is no file" in run(cluster, "cp", f"{box}:.", "-")[2]
    shell(cluster, box, "rm streamed")


def test_paths_do_not_lead_out(cluster, box, tmp_path):
    shell(cluster, box, "ln -s /etc out; ln -s .. up; mkdir -p in; ln -s in way; echo x >in/x")
    for path in ("../../etc/passwd", "/etc/passwd", "out/passwd", "up/work/in/x", "in/../../x"):
        for words in ((f"{box}:{path}", "-"), (f"{box}:{path}", tmp_path), ("-", f"{box}:{path}")):
            status, out, err = run(cluster, "cp", *words)
            assert (status, out) == (4, b""), (words, err)
    assert copy(cluster, f"{box}:way/x", "-")[1] == b"x\n"
    assert not list(tmp_path.iterdir())
    shell(cluster, box, "rm -r out up in way")


def test_what_is_no_file_is_left_out_by_name(cluster, box, tmp_path):
    shell(cluster, box, "mkdir odd; mkfifo odd/pipe; echo x >odd/file; echo y >odd/shut; "
                        "chmod 0 odd/shut")
    status, _, said = run(cluster, "cp", f"{box}:odd", tmp_path)
    assert status == 1 and "odd/pipe: it is no file" in said and "odd/shut: Permission" in said
    assert [path.name for path in (tmp_path / "odd").iterdir()] == ["file"]
    assert "neither file nor folder" in run(cluster, "cp", f"{box}:odd/pipe", tmp_path)[2]
    assert run(cluster, "cp", f"{box}:odd/pipe", "-")[0] == 4
    mine = tmp_path / "mine"
    mine.mkdir()
    os.mkfifo(mine / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.fspath(mine / "socket"))
        (mine / "file").write_text("x")
        copy(cluster, mine, f"{box}:")
    assert shell(cluster, box, "ls mine") == b"file\n"
    shell(cluster, box, "rm -rf odd mine")


def put(cluster, box, data, path="./", form="tar", keypair=ADMIN, name="files"):
    client = cluster.client(keypair)
    target = f"/aliquot/v1/sessions/{box}/{name}?path={path}&format={form}"
    headers = client.headers("PUT", target, "application/x-tar")
    return client.raw("PUT", target, data, headers, timeout=120)


def test_archives_of_other_programs(cluster, box, tmp_path):
    """tar(1) in each of its forms, read and written, by its own means."""
    source = make_tree(tmp_path / "source")
    for form in ("gnu", "pax", "posix", "oldgnu"):
        packed = subprocess.run(["tar", "c", f"--format={form}", "-C", tmp_path, "source"],
                                capture_output=True, check=True).stdout
        assert put(cluster, box, packed, f"{form}/").status == 204
    assert shell(cluster, box, "for f in pax posix oldgnu; do diff -r gnu $f; done") == b""
    reply = cluster.client().get(f"/aliquot/v1/sessions/{box}/files?path=gnu")
    assert reply.status == 200
    (tmp_path / "back").mkdir()
    subprocess.run(["tar", "x", "-C", tmp_path / "back"], input=reply.body, check=True)
    assert tree(tmp_path / "back" / "gnu" / "source") == tree(source)
    with tarfile.open(fileobj=io.BytesIO(reply.body)) as read:
        assert "gnu/source/program" in read.getnames()
    shell(cluster, box, "rm -r gnu pax posix oldgnu")


def member(name, kind=tarfile.REGTYPE, data=b"", **more):
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(data)
    for key, value in more.items():
        setattr(info, key, value)
    return info, data


def packed(*members):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for info, data in members:
            made.addfile(info, io.BytesIO(data))
    return out.getvalue()


def test_bad_archives_are_refused(cluster, box):
    good = packed(member("bad/first", data=b"1"))
    for what, text in (
            (packed(member("../x", data=b"x")), "has '..'"),
            (packed(member("/tmp/x", data=b"x")), "absolute"),
            (packed(member("bad/x", tarfile.LNKTYPE, linkname="bad/y")), "--hard-dereference"),
            (packed(member("bad/x", tarfile.CHRTYPE)), "no file, folder or link"),
            (packed(member("bad/x", tarfile.FIFOTYPE)), "no file, folder or link"),
            (packed(member("bad/" + "n" * 256, data=b"x")), "longer than"),
            (b"x" * 2048, "checksum"), (b"", "cut off"), (good[:700], "cut off"),
            (good[:512], "cut off")):
        reply = put(cluster, box, what)
        assert reply.status == 400 and text in reply.json["msg"] + str(reply.json.get("data")), reply
    assert shell(cluster, box, "find bad . -name '.aliquot*' -o -name x -o -name 'nnn*' 2>&1 | grep -v 'No such'; true") == b""
    linked = packed(member("way", tarfile.SYMTYPE, linkname="/tmp"), member("way/x", data=b"x"))
    assert put(cluster, box, linked).status == 400
    assert shell(cluster, box, "ls /tmp; rm way") == b""


def test_limits_are_named(cluster, box, tmp_path):
    large = tmp_path / "large"
    with large.open("wb") as made:
        made.truncate(33 * MIB)
    status, _, said = run(cluster, "cp", large, f"{box}:")
    assert status != 0 and "bytes of one transfer" in said
    with large.open("rb") as data:
        assert put(cluster, box, data.read(), "large", "raw").status == 413
    many = tmp_path / "many"
    many.mkdir()
    for number in range(301):
        (many / str(number)).touch()
    assert "files and folders" in run(cluster, "cp", many, f"{box}:")[2]
    shell(cluster, box, "truncate -s 33M large; mkdir more; cd more; seq 301 | xargs touch")
    for path in ("large", "more"):
        status, _, said = run(cluster, "cp", f"{box}:{path}", tmp_path / "back")
        assert status != 0 and "of one transfer" in said, said
    assert not (tmp_path / "back" / "large").exists() and halves(cluster, box) == []
    shell(cluster, box, "rm -r large more many; ls -A | wc -l")


def test_a_full_disk_is_named(cluster, box, tmp_path):
    if not containers.can_limit_scratch():
        pytest.skip("what a container writes cannot be limited here")
    shell(cluster, box, "dd if=/dev/zero of=fill bs=1M 2>/dev/null; true")
    (tmp_path / "data").write_bytes(os.urandom(8 * MIB))
    status, _, said = run(cluster, "cp", tmp_path / "data", f"{box}:")
    assert status != 0 and "the file system is full" in said
    assert put(cluster, box, os.urandom(8 * MIB), "data", "raw").status == 507
    shell(cluster, box, "rm fill; test ! -e data")
    assert halves(cluster, box) == []


def test_an_image_without_any_program(cluster, tmp_path):
    """Neither tar, nor a shell, nor a C library: the runner does it."""
    layout = Layout(cluster.folder / f"bare-{cluster.env['ALIQUOT_RUNTIME_OCI']}")
    layout.image("bare", [archive([file("nothing")])])
    source = make_tree(tmp_path / "source")
    with running(cluster.client(), "bare", image=layout.reference("bare")) as box:
        assert run(cluster, "exec", "-n", box, "sh")[0] == 127
        copy(cluster, source, f"{box}:")
        copy(cluster, f"{box}:source", tmp_path / "back")
    assert tree(tmp_path / "back") == tree(source)


def test_each_kernel_has_its_own_files(cluster, tmp_path):
    with running(cluster.client(), "pair", image="host", clusterSize=2) as box:
        for kernel in ("main1", "sub1"):
            (tmp_path / "which").write_text(kernel)
            copy(cluster, "--kernel", kernel, tmp_path / "which", f"{box}:")
        assert shell(cluster, box, "cat which") == b"main1"
        assert copy(cluster, "--kernel", "sub1", f"{box}:which", "-")[1] == b"sub1"
        assert run(cluster, "cp", "--kernel", "sub2", f"{box}:which", "-")[0] == 5


@contextlib.contextmanager
def slow_upload(cluster, box, path):
    """An upload that waits for more of its input, of which something is in the session."""
    child = start(cluster, "cp", "-", f"{box}:{path}")
    child.stdin.write(bytes(3 * MIB))
    child.stdin.flush()
    wait_for(lambda: writers(cluster, box) > 0, 60, "an upload that has begun")
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout, child.stderr):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def writers(cluster, box):
    """Processes of the container that move files: the runner's, under its name."""
    return int(shell(cluster, box, "cat /proc/[0-9]*/comm | grep -c aliquot || true")) - 1


@pytest.mark.parametrize("which", ("client", "agent", "manager"))
def test_what_breaks_off_leaves_nothing(cluster, which):
    with running(cluster.client(), f"cut-{which}", image="host") as box:
        with slow_upload(cluster, box, "half") as child:
            if which == "client":
                child.send_signal(signal.SIGINT)
                assert child.wait(60) == 130
            else:
                program = cluster.programs[which]
                program.kill()
                program.start()
                wait_for(lambda: child.poll() is not None, 60, "the end of the upload")
        wait_for(cluster.is_serving, 60)
        wait_status(cluster.client(), box, "RUNNING")
        wait_for(lambda: run(cluster, "exec", "-n", box, "true")[0] == 0, 60, "its container")
        wait_for(lambda: writers(cluster, box) == 0, 60, "the end of what wrote")
        assert shell(cluster, box, "ls -A | grep -e half -e aliquot || true") == b""


def test_the_end_of_the_session_is_named(cluster, tmp_path):
    with running(cluster.client(), "short", image="host") as box:
        with slow_upload(cluster, box, "half") as child:
            cluster.client().send("DELETE", f"/session/{box}?forced=true")
            child.wait(60)
            said = child.stderr.read().decode()
            assert child.returncode != 0 and "ended" in said, said


def test_ctrl_c_leaves_no_half_file_here(cluster, box, tmp_path):
    shell(cluster, box, "truncate -s 30M large")
    child = start(cluster, "cp", f"{box}:large", tmp_path)
    child.send_signal(signal.SIGINT)
    child.communicate(timeout=60)
    assert child.returncode in (0, 130, -2)
    left = [path.name for path in tmp_path.iterdir()]
    assert left == (["large"] if child.returncode == 0 else [])
    shell(cluster, box, "rm large")


def upload_form(client, box, *names):
    """As Backend.AI's clients send files; each holds its name and '!'."""
    edge, path = "b0undary", f"/session/{box}/upload"
    form = "".join(f"--{edge}\r\nContent-Type: application/octet-stream\r\nContent-Disposition: "
                   f"form-data; name=\"src\"; filename=\"{name}\"\r\n\r\n{name}!\r\n"
                   for name in names) + f"--{edge}--\r\n"
    headers = client.headers("POST", path, "multipart/form-data",
                             sent_type=f"multipart/form-data; boundary={edge}")
    return client.raw("POST", path, form.encode(), headers)


@pytest.mark.gate
def test_the_old_routes(cluster, box):
    client = cluster.client()
    assert upload_form(client, box, "a.txt", "sub/b.txt", "sub%2Fc.txt").status == 204
    listed = client.send("GET", f"/session/{box}/files", {"path": "/home/work/sub"})
    assert listed.status == 200 and listed.json["abspath"] == "/home/work/sub"
    rows = {row["filename"]: row for row in json.loads(listed.json["files"])}
    assert sorted(rows) == ["b.txt", "c.txt"] and rows["b.txt"]["mode"] == "-rw-r--r--"
    assert rows["b.txt"]["size"] == len("sub/b.txt!")
    many = client.post(f"/session/{box}/download?files=a.txt&files=sub")
    assert many.status == 200 and many.body.count(b"application/x-tar") == 2
    one = client.post(f"/session/{box}/download_single?file=sub")
    with tarfile.open(fileobj=io.BytesIO(one.body)) as read:
        assert sorted(read.getnames()) == ["sub", "sub/b.txt", "sub/c.txt"]
    reply = client.send("GET", f"/session/{box}/download", {"files": ["a.txt", "nowhere"]})
    assert reply.status == 404 and "nowhere" in reply.json["msg"]
    assert client.send("GET", f"/session/{box}/files", {"path": "/etc"}).status == 400
    shell(cluster, box, "rm -r a.txt sub")


@pytest.mark.gate
@pytest.mark.parametrize("name", ["sub/", "sub%2F", "/"])
def test_a_form_names_files_and_no_folders(cluster, box, name):
    """In the archive that the form becomes, the bytes would be read as its next entries."""
    reply = upload_form(cluster.client(), box, name)
    assert reply.status == 400 and b"is no name of a file" in reply.body, reply
    assert b"'src'" in reply.body or b'"src"' in reply.body, reply
    assert shell(cluster, box, "[ -e sub ] || echo none").strip() == b"none"


def test_a_gigabyte_is_held_nowhere(cluster, box, tmp_path):
    """Memory of manager and agent stays what it is while the reader does not read."""
    shell(cluster, box, "truncate -s 31M large")

    def memory():
        texts = (open(f"/proc/{program.pid}/status").read()
                 for program in cluster.programs.values())
        return sum(int(text.split("VmRSS:")[1].split()[0]) for text in texts)

    before = memory()
    children = [start(cluster, "cp", f"{box}:large", "-") for _ in range(4)]
    try:
        wait_for(lambda: writers(cluster, box) >= 4, 60, "four transfers")
        grown = memory() - before
    finally:
        texts = [child.communicate(timeout=120)[0] for child in children]
    assert SANITIZED or grown < 30 * 1024
    for child, out in zip(children, texts):
        assert child.returncode == 0 and len(out) == 31 * MIB
    assert hashlib.sha256(out).digest() == hashlib.sha256(bytes(31 * MIB)).digest()
    shell(cluster, box, "rm large")
