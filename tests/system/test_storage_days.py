# SPDX-License-Identifier: Apache-2.0
"""Bad days of a storage host: clients that change, volumes that vanish or hang, very many files."""

import os
import subprocess
import threading

import pytest

import storage
from client import USER
from cluster import wait_for
from cut_relay import CutRelay
from mounts import hanging
from storage import Stored

DATA = os.urandom(3 << 20)
MANY = 20_000


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Stored() as made:
        made.start_manager()
        made.start_storage()
        wait_for(lambda: made.client().get("/folders/_/hosts").json["allowed"],
                 what="the storage host to be known")
        yield made
        made.stop()


def create(client, name, host="local:volume1", **more):
    return client.post("/folders", {"name": name, "host": host, **more})


# ---- clients that change ----

def curl(*words, data=None):
    """Its output; None if it failed."""
    done = subprocess.run(["curl", "-sS", "--fail", "--max-time", "60", *words], input=data, timeout=120,
                          capture_output=True, check=False)
    return done.stdout if done.returncode == 0 else None


def curl_offset(url):
    head = curl("-I", "-H", "Tus-Resumable: 1.0.0", url)
    lines = dict(line.split(b": ", 1) for line in (head or b"").split(b"\r\n") if b": " in line)
    return int(lines[b"Upload-Offset"]) if b"Upload-Offset" in lines else None


def curl_patch(url, offset, data):
    return curl("-X", "PATCH", "-H", "Tus-Resumable: 1.0.0", "-H", f"Upload-Offset: {offset}", "-H",
                "Content-Type: application/offset+octet-stream", "--data-binary", "@-", url, data=data)


def tus_js(tmp_path, *words):
    (tmp_path / "file").write_bytes(DATA)
    done = subprocess.run(["node", storage.CLIENTS / "upload.js", tmp_path / "file", *map(str, words)],
                          env={**os.environ, "NODE_PATH": str(storage.install_tus())},
                          capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_one_client_goes_on_with_what_another_began(cluster, tmp_path):
    """tus-js-client, cut three times, then curl, then tus-js-client again."""
    folder = cluster.make_folder()
    url = f"http://127.0.0.1:{cluster.port}" + cluster.upload(folder, "file", len(DATA))
    begun = tus_js(tmp_path, url, 1, 3, "-")
    offset = curl_offset(begun)
    assert 0 < offset < len(DATA)
    assert curl_patch(begun, offset, DATA[offset:offset + 1_000_000]) is not None
    assert curl_offset(begun) == offset + 1_000_000
    tus_js(tmp_path, url, 1, 0, begun)
    assert (cluster.place(folder) / "file").read_bytes() == DATA


def test_curl_is_cut_at_ten_places(cluster):
    folder = cluster.make_folder()
    path = cluster.upload(folder, "file", len(DATA))
    url, relay = f"http://127.0.0.1:{cluster.port}{path}", CutRelay(cluster.port)
    relay.limits = [10_000 + 29_000 * number for number in range(10)]
    cut = 0
    while (offset := curl_offset(url)) != len(DATA):
        cut += curl_patch(f"http://127.0.0.1:{relay.port}{path}", offset, DATA[offset:]) is None
    relay.close()
    assert cut == 10 and (cluster.place(folder) / "file").read_bytes() == DATA


def test_two_clients_at_one_upload(cluster):
    """Whichever comes later wins, and what is there in the end is whole."""
    folder = cluster.make_folder()
    url = f"http://127.0.0.1:{cluster.port}" + cluster.upload(folder, "file", len(DATA))
    ended = []

    def send(step):
        while (offset := curl_offset(url)) != len(DATA):
            if offset is not None:
                curl_patch(url, offset, DATA[offset:offset + step])
        ended.append(step)
    clients = [threading.Thread(target=send, args=(step,)) for step in (300_000, 70_000)]
    for client in clients:
        client.start()
    for client in clients:
        client.join(120)
    assert len(ended) == 2 and (cluster.place(folder) / "file").read_bytes() == DATA
    assert [each.suffix for each in cluster.place(folder).glob(".aliquot-uploads/*")] == [".done"]


# ---- volumes that vanish or hang ----

def files_of(path):
    return {str(each.relative_to(path)) for each in path.rglob("*")}


def test_a_volume_that_vanishes(tmp_path):
    """Nothing is made below where it is mounted, or taken for removed; all goes on when it is back."""
    with Stored() as cluster:
        cluster.volume, disk = cluster.folder / "mounted", cluster.folder / "disk"
        for path in cluster.volume, disk:
            path.mkdir(mode=0o700)

        def mount():
            subprocess.run(["mount", "--bind", disk, cluster.volume], check=True)
        mount()
        try:
            cluster.start_manager()
            cluster.start_storage()
            user = cluster.client(USER)
            wait_for(lambda: create(user, "kept").status == 201, what="a folder")
            assert create(user, "removed").status == 201
            kept = user.get("/folders/kept").json["id"]
            begun = user.post("/folders/kept/request-upload", {"path": "file", "size": len(DATA)}).json
            url = "/upload?token=" + begun["token"]
            assert cluster.patch(url, DATA[:1_000_000], 0)[0] == 204
            before = files_of(disk)
            subprocess.run(["umount", "-l", cluster.volume], check=True)
            for restarts in range(2):
                made = create(user, f"new{restarts}")
                assert made.status == 400 and "perhaps it is not mounted" in str(made.json), made
                listed = user.get("/folders/kept/files?path=.")
                assert listed.status >= 500 and "perhaps it is not mounted" in str(listed.json), listed
                status, _, said = cluster.patch(url, DATA[1_000_000:], 1_000_000)
                assert status == 503 and b"perhaps it is not mounted" in said, (status, said)
                done = cluster.run("aliquot-storage", "--state", cluster.state, "check", "storage",
                                   ALIQUOT_STORAGE_VOLUMES=f"volume1:{cluster.volume}")
                assert "is not what it was" in done.stdout, done
                if not restarts:
                    user.send("DELETE", "/folders/removed/force")
                    cluster.programs["storage"].kill()
                    cluster.start_storage()
            assert files_of(cluster.volume) == set() and files_of(disk) == before
            rows = user.get("/folders").json
            assert {row["name"]: row["status"] for row in rows}["kept"] == "ready", rows
            mount()
            wait_for(lambda: {row["name"] for row in user.get("/folders").json} == {"kept"}, 60,
                     lambda: f"the other to be removed: {user.get('/folders').json}")
            assert cluster.offset(url) == 1_000_000
            assert cluster.patch(url, DATA[1_000_000:], 1_000_000)[0] == 204
            assert (disk / kept[:2] / kept[2:4] / kept[4:] / "file").read_bytes() == DATA
            wait_for(lambda: len([path for path in disk.glob("??/??/*")]) == 1, 60, "the files to go")
            cluster.stop()
        finally:
            subprocess.run(["umount", "-l", cluster.volume], check=False)


@pytest.mark.parametrize("state", ["absent", "a file", "entered by others"])
def test_users_read_no_path_of_the_storage_host(state):
    """Errors name the volume, whoever sends them: the manager, or the storage host itself."""
    with Stored() as cluster:
        cluster.start_manager()
        cluster.start_storage()
        user = cluster.client(USER)
        wait_for(lambda: create(user, "kept").status == 201, what="a folder")
        begun = user.post("/folders/kept/request-upload", {"path": "file", "size": len(DATA)}).json
        if state == "entered by others":
            cluster.volume.chmod(0o755)
        else:
            cluster.volume.rename(cluster.folder / "elsewhere")
            if state == "a file":
                cluster.volume.touch()
        status, _, said = cluster.patch("/upload?token=" + begun["token"], DATA, 0)
        replies = [create(user, "new"), user.get("/folders/kept/files?path=."),
                   user.post("/folders/kept/mkdir", {"path": "sub"})]
        for code, text in [(status, said.decode()), *((each.status, str(each.json)) for each in replies)]:
            assert code >= 400 and "the volume 'volume1'" in text, (code, text)
            assert str(cluster.folder) not in text, (code, text)
        cluster.stop()


def test_a_volume_that_hangs_keeps_nobody_waiting(tmp_path):
    """Requests on folders of other volumes are answered, and those on its own, once it is back."""
    with Stored() as cluster:
        frozen = cluster.folder / "frozen"
        frozen.mkdir(mode=0o700)
        cluster.start_manager()
        cluster.start_storage(ALIQUOT_STORAGE_VOLUMES=f"volume1:{cluster.folder}/volume1 frozen:{frozen}")
        user = cluster.client(USER)
        wait_for(lambda: create(user, "there", "local:frozen").status == 201, what="a folder")
        answers = []
        with hanging(frozen):
            def ask(path):
                answers.append(cluster.client(USER).get(path, timeout=300).status)
            waiting = [threading.Thread(target=ask, args=(path,)) for path in
                       ["/folders/there/files?path=."] * 20 + ["/folders/there"] * 5]
            for each in waiting:
                each.start()
            for number in range(3):
                assert create(user, f"other{number}").status == 201
                assert user.post(f"/folders/other{number}/mkdir", {"path": "dir"}).status == 200
                assert user.get(f"/folders/other{number}/files?path=.").json["items"][0]["name"] == "dir"
                assert user.delete(f"/folders/other{number}/force").status == 204
                assert "there" in {row["name"] for row in user.get("/folders").json}
                assert cluster.is_stored()
            assert not answers  # it does hang
        for each in waiting:
            each.join(300)
        assert len(answers) == 25
        assert user.get("/folders/there/files?path=.").status == 200
        cluster.stop()


# ---- very many files ----

def test_very_many_files(cluster):
    """Made, listed, counted, cloned, archived and removed, in little memory."""
    user = cluster.client(USER)
    folder = create(user, "many", cloneable=True).json["id"]
    place = cluster.volume / folder[:2] / folder[2:4] / folder[4:]
    for number in range(MANY):
        (place / f"f{number:06}").touch()
    seen, more = [], True
    while more:
        after = f"&after={seen[-1]}" if seen else ""
        page = user.get(f"/folders/many/files?path=.&limit=1000{after}").json
        seen += [row["name"] for row in page["items"]]
        more = page["more"]
    assert seen == [f"f{number:06}" for number in range(MANY)]
    assert user.post("/folders/many/clone", {"target_name": "again"}).status in (200, 201)
    wait_for(lambda: {row["name"]: row["status"] for row in user.get("/folders").json}.get("again")
             == "ready", 60, "the clone")
    assert user.get("/folders/again").json["numFiles"] == MANY
    for name in "many", "again":
        assert user.delete(f"/folders/{name}/force").status == 204
    wait_for(lambda: not place.exists() and not list(cluster.volume.glob(".purge-*")), 60,
             "the files to go")
    assert not [line for line in open(f"/proc/{cluster.programs['storage'].pid}/status")
                if line.startswith("VmHWM") and int(line.split()[1]) > 600_000]
