# SPDX-License-Identifier: Apache-2.0
"""Folders among the files of sessions: containers by crun and runc, on two nodes."""

import json
import os
import shutil
import signal
import stat
import subprocess

import pytest

import containers
from cluster import wait_for
from mounts import HOST, WORK, Mounted, hanging, mounting, text_of, volumes_of
from ports import free_port
from runtimes import Session, settings_of
from world import BUILD, World

TRAIN = f"""
set -e
grep -c . {WORK}/corpus/part1 {WORK}/corpus/part2
umask 077; mkdir {WORK}/out/run1
for step in 1 2 3; do cat {WORK}/corpus/part1 >> {WORK}/out/run1/model; done
ls -ln {WORK}/out/run1/model; id -u
"""


@pytest.fixture(params=("crun", "runc"), scope="module", name="cluster")
def cluster_fixture(request):
    with Mounted(**settings_of(request.param), ALIQUOT_NETWORK_ENABLED="true") as made:
        made.start("agent", "second")
        yield made
        made.check_nothing_left()
        made.stop()


@pytest.fixture(name="folder")
def folder_fixture(cluster):
    """Make a folder that is removed afterwards: its place on the volume."""
    made = []

    def folder(name):
        made.append(cluster.folder_of(name))
        return cluster.place(made[-1])
    yield folder
    for each in made:
        shutil.rmtree(cluster.place(each), ignore_errors=True)
        cluster.client().delete(f"/folders/{each}/force")


def ended(cluster, session, status="TERMINATED"):
    shown = session.wait()
    assert shown["status"] == status, (text_of(cluster, session), session.log)
    return session.log


@pytest.mark.gate
def test_aliquot_up_mounts_what_aliquot_folder_makes():
    """A script that learns from one folder and leaves what it learned in another."""
    script = ("import glob, json, os; total = sum(int(line) for path in glob.glob('corpus/part*') "
              "for line in open(path)); os.makedirs('out/run1'); "
              "json.dump(total, open('out/run1/model', 'w'))")
    with World(**settings_of("crun"), ALIQUOT_NETWORK_ENABLED="false",
               ALIQUOT_RESOURCE_ALLOCATION_MODE="shared") as world:
        port, links, files = free_port(), free_port(), free_port()
        world.env["ALIQUOT_ENDPOINT"] = f"http://127.0.0.1:{port}"
        log = world.folder / "up.log"
        up = subprocess.Popen([BUILD / "aliquot", "up", "--dev", "--state", world.folder / "up",
                               "--port", str(port), "--link-port", str(links), "--storage-port",
                               str(files)], env=world.env, stdout=log.open("w"),
                              stderr=subprocess.STDOUT)
        try:
            wait_for(lambda: "Aliquot is ready." in log.read_text(), 60, log.read_text)

            def do(*words):
                done = world.run("aliquot", *words)
                assert done.returncode == 0, (words, done.stdout, done.stderr)
                return done.stdout

            def run(*words):
                return do("run", "--image", "host", "-r", "cpu=1", "-r", "mem=64m", *words)
            do("login", "--dev")
            do("folder", "create", "corpus")
            do("folder", "create", "out")
            run("-v", "corpus", "--", "sh", "-c", "for i in 1 2; do seq 100 > corpus/part$i; done")
            run("-v", "corpus:ro", "-v", "out", "--", "python3", "-c", script)
            assert "model" in do("folder", "files", "out", "run1")
            assert run("-v", "out:/results:ro", "--", "sh", "-c", "touch /results/x 2> /dev/null || "
                       "cat /results/run1/model") == "10100"
        finally:
            up.send_signal(signal.SIGINT)
            assert up.wait(60) == 0


def owner(path):
    return path.stat().st_uid, path.stat().st_gid


def test_one_node_writes_what_the_other_reads(cluster, folder):
    corpus, out = folder("corpus"), folder("out")
    for name in ("part1", "part2"):
        (corpus / name).write_text("a line\n" * 1000)
    for place in (corpus, out):  # as of a storage host that has a user of its own
        subprocess.run(["chown", "-R", "4321:4322", place], check=True)
    trained = mounting(cluster, TRAIN, ("corpus", f"{WORK}/corpus", {"permission": "ro"}),
                       ("out", f"{WORK}/out"), agent_list=["agent"])
    lines = ended(cluster, trained).split("\n")
    assert lines[:2] == [f"{WORK}/corpus/part1:1000", f"{WORK}/corpus/part2:1000"]
    assert lines[2].split()[2:4] == ["1000", "1000"] and lines[3] == "1000"
    model = out / "run1/model"
    assert owner(model) == owner(out / "run1") == (4321, 4322)
    assert stat.S_IMODE(model.stat().st_mode) == 0o600
    read = mounting(cluster, "wc -l < results/run1/model; rm -r results/run1; ls -A results",
                    ("out", "results"), agent_list=["second"])
    assert ended(cluster, read).split() == ["3000", ".aliquot-uploads"] and not model.exists()


def test_tasks_of_a_pipeline_hand_files_on(cluster, folder):
    """By the folder of the run: each task finds it, and a directory of its own in it."""
    folder("handed")
    run = cluster.client().post("/aliquot/v1/pipeline-runs", {"payload": """\
name: files
folder: handed
defaults: {image: host, resources: {cpu: 1, mem: 64m}}
tasks:
  make: {command: "seq 10 >$ALIQUOT_PIPELINE_FOLDER/rows"}
  count: {needs: make, command: "test $(wc -l </pipeline/make/rows) = 10 && touch /pipeline/count/ok"}
"""}).json

    def ended():
        shown = cluster.client().get(f"/aliquot/v1/pipeline-runs/{run['id']}").json
        return shown["ended_at"] and shown
    shown = wait_for(ended, 120, "the run to end")
    assert shown["state"] == "succeeded", shown


def test_what_a_session_wrote_is_measured(cluster, folder):
    """The storage host does not see it come; the manager has the folder measured."""
    folder("data")

    def listed():
        (row,) = [row for row in cluster.client().get("/aliquot/v1/folders").json["items"]
                  if row["name"] == "data"]
        return row["num_files"], row["used_bytes"]
    ended(cluster, mounting(cluster, "head -c 5000000 /dev/zero > data/a; echo b > data/b",
                            ("data", "data")))
    wait_for(lambda: listed() == (2, 5_000_002), 90, lambda: f"its size: {listed()}")


def test_every_container_of_a_session_has_them(cluster, folder):
    place = folder("data")
    session = mounting(cluster, "until [ -e data/go ]; do sleep 0.1; done", ("data", "data"),
                       size=2, resources={"cpu": "3", "mem": "64m"})
    kernels = session.wait("RUNNING")["kernels"]
    assert {kernel["agent"] for kernel in kernels} == {"agent", "second"}
    for kernel in kernels:
        path = cluster.folder / kernel["agent"] / "kernels" / kernel["id"] / "run/1/config.json"
        mounts = {mount["destination"] for mount in json.loads(path.read_text())["mounts"]}
        assert f"{WORK}/data" in mounts
    (place / "go").write_text("")
    ended(cluster, session)


def test_a_folder_that_is_only_read(cluster, folder):
    place = folder("data")
    (place / "file").write_text("text\n")
    said = ended(cluster, mounting(
        cluster, "cat data/file; echo x >> data/file; touch data/new; rm -f data/file; chmod 777 "
                 "data; mount -o remount,rw data; grep /data /proc/self/mountinfo; true",
        ("data", f"{WORK}/data", {"permission": "ro"})))
    assert said.startswith("text\n") and said.count("Read-only file system") == 4, said
    assert " ro,nosuid,nodev" in said and (place / "file").read_text() == "text\n"


def test_programs_with_rights_of_their_owner(cluster, folder):
    """Setuid has no effect inside, and devices cannot be opened."""
    place = folder("data")
    subprocess.run(["cp", "/usr/bin/id", place / "id"], check=True)
    subprocess.run(["chown", "0:0", place / "id"], check=True)
    (place / "id").chmod(0o6755)
    said = ended(cluster, mounting(cluster, "id -u; data/id -u; id -g; data/id -g; "
                                            "grep /data /proc/self/mountinfo", ("data", "data")))
    lines = said.split("\n")
    assert lines[0] == lines[1] != "0" and lines[2] == lines[3] != "0", said
    assert " rw,nosuid,nodev" in said, said


def test_a_volume_that_is_only_read(cluster, folder):
    """What its own mount forbids is forbidden, and nothing else is lost."""
    place = folder("data")
    (place / "file").write_text("text\n")
    cluster.programs["second"].stop()
    subprocess.run(["mount", "--bind", cluster.volume, cluster.volume], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro,noexec", cluster.volume], check=True)
        for permission in ("ro", "rw"):
            said = ended(cluster, mounting(
                cluster, "cat data/file; touch data/x || grep -o ' ro,.*idmapped' /proc/self/mountinfo",
                ("data", "data", {"permission": permission})))
            assert said.startswith("text\n") and " ro,nosuid,nodev,noexec" in said, said
    finally:
        subprocess.run(["umount", "-l", cluster.volume], check=True)
        cluster.start_mounting("second")


def test_rights_do_not_come_from_files(cluster, folder):
    """Neither a program of its owner's rights nor a device has an effect."""
    place = folder("data")
    shutil.copy("/usr/bin/id", place / "id")
    os.chmod(place / "id", 0o6755)
    os.mknod(place / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    said = ended(cluster, mounting(cluster, "data/id -u; echo x > data/null || true; "
                                            "mknod data/zero c 1 5 || true", ("data", "data")))
    assert said.split("\n")[0] == "1000" and "null: Permission denied" in said
    assert "mknod" in said and not (place / "zero").exists()


def test_a_directory_of_a_folder(cluster, folder):
    place = folder("data")
    (place / "a/b").mkdir(parents=True)
    (place / "a/b/inner").write_text("")
    (place / "outer").write_text("")
    (place / "link").symlink_to("a")
    (place / "out").symlink_to("/etc")
    said = ended(cluster, mounting(cluster, "ls -A /data; ls -A /data/..; cd /data; ls -A ..",
                                   ("data", "/data", {"subpath": "a/b"})))
    assert "inner" in said and "outer" not in said
    for subpath, words in (("a/c", "has no directory 'a/c'"), ("outer", "has no directory 'outer'"),
                           ("link/b", "symbolic link"), ("out", "symbolic link")):
        failed = mounting(cluster, "true", ("data", "/data", {"subpath": subpath}))
        ended(cluster, failed, "ERROR")
        assert "folder 'data'" in text_of(cluster, failed) and words in text_of(cluster, failed)


def test_other_mounts_in_a_folder_are_not_followed(cluster, folder):
    place = folder("data")
    (place / "deep/er").mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "none", place / "deep"], check=True)
    try:
        (place / "deep/er").mkdir()
        (place / "deep/secret").write_text("")
        failed = mounting(cluster, "true", ("data", "data", {"subpath": "deep/er"}))
        ended(cluster, failed, "ERROR")
        assert "another mount" in text_of(cluster, failed)
        assert ended(cluster, mounting(cluster, "ls data/deep", ("data", "data"))) == "er\n"
    finally:
        subprocess.run(["umount", place / "deep"], check=True)


def test_a_folder_in_a_folder(cluster, folder):
    outer, inner = folder("outer"), folder("inner")
    (outer / "in").mkdir()
    (inner / "file").write_text("")
    both = ("outer", "data", {"permission": "ro"}), ("inner", "data/in")
    said = ended(cluster, mounting(cluster, "ls data/in; touch data/in/new; touch data/x", *both))
    assert "file" in said and "'data/x': Read-only" in said and (inner / "new").exists()
    (outer / "in").rmdir()
    failed = mounting(cluster, "true", *both)
    ended(cluster, failed, "ERROR")
    assert "folder 'outer' has no directory 'in'" in text_of(cluster, failed)
    assert not (outer / "in").exists()


def test_uploads_under_way_are_hidden(cluster, folder):
    place = folder("data")
    command = ("ls -A data/.aliquot-uploads; touch data/.aliquot-uploads/x; "
               "rmdir data/.aliquot-uploads; mv data/.aliquot-uploads data/y; true")
    for uploads in (False, True):
        if uploads:
            (place / ".aliquot-uploads/part").write_text("secret")
        said = ended(cluster, mounting(cluster, command, ("data", "data")))
        assert "part" not in said and "touch" in said and said.count("busy") == 2, said


def test_a_folder_that_is_gone(cluster, folder):
    place = folder("data")
    place.rename(place.with_name("away"))
    failed = mounting(cluster, "true", ("data", "data"))
    ended(cluster, failed, "ERROR")
    assert "folder 'data' is gone" in text_of(cluster, failed)
    place.with_name("away").rename(place)
    session = mounting(cluster, "touch data/before; until [ ! -e data/before ]; do sleep 0.1; done; "
                                "touch data/after || echo gone", ("data", "data"))
    wait_for((place / "before").exists, 60, "the program")
    shutil.rmtree(place)
    assert ended(cluster, session).endswith("gone\n")


def test_a_volume_that_others_can_enter(cluster, folder):
    folder("data")
    os.chmod(cluster.volume, 0o755)
    try:
        failed = mounting(cluster, "true", ("data", "data"))
        ended(cluster, failed, "ERROR")
    finally:
        os.chmod(cluster.volume, 0o700)
    assert f"chmod 0700 {cluster.volume}" in text_of(cluster, failed)


def test_targets_that_the_node_needs(cluster, folder):
    folder("data")
    for target in ("/home/config/x", "/opt/kernel", "/etc/hosts", "/opt"):
        config = {"resources": {"cpu": "1", "mem": "64m"}, "mounts": ["data"],
                  "mount_map": {"data": target}}
        body = {"name": "refused", "image": "host", "type": "batch", "startupCommand": "true",
                "enqueueOnly": True, "config": config}
        assert cluster.client().post("/session", body).status == 400, target


def test_nothing_is_left_of_a_container_that_is_killed(cluster, folder):
    folder("data")
    point = "monitor.volumes.mounted"
    cluster.programs["agent"].stop()
    cluster.start_mounting("agent", ALIQUOT_FAULT=point, ALIQUOT_FAULT_ONCE=cluster.folder / point)
    try:
        session = mounting(cluster, "touch data/x", ("data", "data"), agent_list=["agent"])
        session.wait()
        assert (cluster.folder / point).exists()
        assert not [line for line in containers.mounts_of(cluster.folder) if "volume1" in line]
    finally:
        cluster.programs["agent"].stop()
        cluster.start_mounting("agent")


def test_an_agent_that_is_killed(cluster, folder):
    place = folder("data")
    session = mounting(cluster, "until [ -e data/go ]; do sleep 0.1; done; touch data/done",
                       ("data", "data"), agent_list=["agent"])
    session.wait("RUNNING")
    cluster.programs["agent"].kill()
    cluster.start_mounting("agent")
    (place / "go").write_text("")
    ended(cluster, session)
    assert (place / "done").exists() and owner(place / "done") == owner(place)


def test_a_volume_that_comes_and_goes(cluster, folder):
    folder("data")
    away = cluster.volume.with_name("elsewhere")
    cluster.programs["second"].stop()
    cluster.volume.rename(away)
    cluster.volume.mkdir(mode=0o700)  # as the place of a mount that is missing
    try:
        wait_for(lambda: "perhaps it is not mounted" in volumes_of(cluster), 60, "it to be missed")
        session = mounting(cluster, "ls -A data", ("data", "data"))
        wait_for(lambda: f"no agent mounts {HOST}" in text_of(cluster, session), 60,
                 lambda: text_of(cluster, session))
    finally:
        (cluster.volume / ".aliquot-volume").unlink(missing_ok=True)
        cluster.volume.rmdir()
        away.rename(cluster.volume)
    ended(cluster, session)
    cluster.start_mounting("second")


def test_a_volume_that_hangs_holds_up_nobody(cluster, folder):
    folder("data")
    frozen = cluster.folder / "frozen"
    frozen.mkdir()
    with hanging(frozen):
        cluster.programs["second"].stop()
        cluster.programs["agent"].stop()
        cluster.start_mounting("agent", ALIQUOT_FOLDERS_VOLUMES=f"{HOST}={cluster.volume} "
                                                                f"local:frozen={frozen}")
        ended(cluster, mounting(cluster, "ls data", ("data", "data")))
        wait_for(lambda: "'local:frozen'" in volumes_of(cluster)
                 and "does not answer" in volumes_of(cluster), 60, "it to be given up")
        ended(cluster, mounting(cluster, "ls data", ("data", "data")))
        assert cluster.programs["agent"].stop() == 0
    cluster.start_mounting("agent")
    cluster.start_mounting("second")


def test_a_volume_that_begins_to_hang_ends_a_start(cluster, folder):
    """The agent does not know yet, and others are started meanwhile."""
    folder("data")
    with hanging(cluster.volume):
        failed = mounting(cluster, "true", ("data", "data"), agent_list=["agent"])
        ended(cluster, mounting(cluster, "true"))
        ended(cluster, failed, "ERROR")
    assert "does not answer" in text_of(cluster, failed)
    wait_for(lambda: "is there" in volumes_of(cluster), 60, "it to come back")


def test_doctor_looks_at_volumes(cluster):
    done = cluster.run("aliquot-agent", "--state", cluster.folder / "doctor", "--volume",
                       f"{HOST}={cluster.volume}", "check", "containers")
    assert f'"1, at {cluster.volume}"' in done.stdout
    done = cluster.run("aliquot-agent", "--state", cluster.folder / "doctor", "--volume",
                       f"{HOST}=/proc", "check", "containers")
    assert "no storage host has marked /proc" in done.stdout


def test_bad_settings_are_refused_by_name(cluster):
    for value in ("volume1=/srv", "local:volume1", "local:volume1=srv", "a:b=/x a:b=/y", ":b=/x"):
        done = cluster.run("aliquot-agent", "--state", cluster.folder / "none",
                           ALIQUOT_FOLDERS_VOLUMES=value)
        assert done.returncode == 1 and "a:b" in done.stderr or "volume" in done.stderr, done


def test_processes_have_no_folders(cluster, folder):
    """Refused when it is submitted; one that nobody asked for is left out."""
    folder("data")
    folder(".dotted")
    cluster.programs["second"].stop()
    cluster.start_mounting("second", ALIQUOT_RUNTIME_DRIVER="auto", ALIQUOT_PROCESS_USER="root")
    try:
        body = {"image": "process", "type": "batch", "startupCommand": "pwd; ls -A", "enqueueOnly": True}
        config = {"resources": {"cpu": "1", "mem": "64m"}, "agent_list": ["second"]}
        refused = cluster.client().post("/session", {"name": "process", **body, "config": {
            **config, "mounts": ["data"]}})
        assert refused.status == 400 and "which mount no folders" in str(refused.json), refused
        alone = Session(cluster, "ls -A", image="process", config=config)
        assert ".dotted" not in ended(cluster, alone)
        ended(cluster, mounting(cluster, "ls -Ad data .dotted", ("data", "data"), agent_list=["second"]))
    finally:
        cluster.programs["second"].signal(signal.SIGTERM)
        cluster.programs["second"].stop()
        cluster.start_mounting("second")


def test_a_folder_in_use_is_not_removed(cluster, folder):
    """By no way, while a container has it; its files are there, and go afterwards."""
    place = folder("data")
    session = mounting(cluster, "touch data/x; until [ -e data/go ]; do sleep 0.1; done", ("data", "data"))
    wait_for((place / "x").exists, 60, "the program")
    client = cluster.client()
    for path in ("/folders/data", "/folders/data/force"):
        refused = client.delete(path)
        assert refused.status == 400 and "mount" in str(refused.json), refused
    assert (place / "x").exists()
    (place / "go").write_text("")
    ended(cluster, session)
    assert client.delete("/folders/data/force").status == 204
    wait_for(lambda: not place.exists(), 60, "the files to go")


ODD = ["new\nline", "n" * 255, "bad\udcff\udcfe", "-rf", " ", "\u00e4\u2603"]


def test_names_of_any_bytes(cluster, folder):
    """Made in a session, they are listed, renamed, sent and removed, and the other way round."""
    place = folder("data")
    made = mounting(cluster, "cd data; for name in \"$(printf 'new\\nline')\" "
                    f"{'n' * 255} \"$(printf 'bad\\377\\376')\" -rf ' ' \"$(printf '\\303\\244\\342\\230\\203')\"; do "
                    "printf x > \"./$name\"; done", ("data", "data"))
    ended(cluster, made)
    assert {path.name for path in place.iterdir()} - {".aliquot-uploads"} == set(ODD)
    client = cluster.client()
    names = [row["name"] for row in client.get("/folders/data/files?path=.").json["items"]]
    assert len(names) == len(ODD)
    for number, name in enumerate(names):
        renamed = client.post("/folders/data/rename-file", {"target_path": name, "new_name": f"r{number}"})
        assert renamed.status == 200, (name, renamed)
        back = client.post("/folders/data/rename-file", {"target_path": f"r{number}", "new_name": name})
        assert back.status == 200, (name, back)
    assert {path.name for path in place.iterdir()} - {".aliquot-uploads"} == set(ODD)
    removed = client.send("DELETE", "/folders/data/delete-files", {"files": names})
    assert removed.status in (200, 204), removed
    assert not {path.name for path in place.iterdir()} - {".aliquot-uploads"}
    for name in ODD:
        (place / name).write_text("x")
    assert ended(cluster, mounting(cluster, "cat data/*", ("data", "data"))) == "x" * len(ODD)
