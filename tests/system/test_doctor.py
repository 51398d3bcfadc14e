# SPDX-License-Identifier: Apache-2.0
"""aliquot doctor on machines that lack something: each time the sentence, the command
that mends it and the exit status. What is taken away is taken from a mount namespace, so
the machine keeps it."""

import json
import os
import shutil
import socket
import subprocess

import pytest

import containers
from cluster import BUILD, Cluster
from ports import free_port

UNFIT = 9
DAY = 86400
NOBODY = 65534

needs_root = pytest.mark.skipif(containers.why_not("crun") != "", reason="needs root and crun")


@pytest.fixture
def machine():
    """A cluster of which nothing has been started; its settings are the environment."""
    with Cluster(ALIQUOT_RUNTIME_DRIVER="auto", ALIQUOT_NETWORK_ENABLED="true",
                 ALIQUOT_METRICS_LISTEN="off") as cluster:
        cluster.env.update(ALIQUOT_STATE_DIR=str(cluster.folder),
                           ALIQUOT_MANAGER_LISTEN="%s:%d" % cluster.address,
                           ALIQUOT_LINK_LISTEN=cluster.link, LC_ALL="C.UTF-8")
        cluster.env.pop("ALIQUOT_PROCESS_USER")
        yield cluster


def without(script, *command):
    """The command in a mount namespace in which the script was run before."""
    return ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script + '\nexec "$@"',
            "sh", *map(str, command)]


def run(machine, command, **settings):
    return subprocess.run(command, env={**machine.env, **settings}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=150)


def doctor(machine, *parts, script=None, **settings):
    """Exit status and {id: finding}."""
    command = [BUILD / "aliquot", "doctor", *parts, "-o", "json"]
    done = run(machine, without(script, *command) if script else command, **settings)
    assert done.returncode in (0, UNFIT) and not done.stderr, done
    return done.returncode, {found["id"]: found for found in json.loads(done.stdout)}


def check(finding, level, text, meaning=None, remedy=None):
    assert finding["level"] == level and text in finding["text"], finding
    assert (meaning or "") in (finding["meaning"] or ""), finding
    assert (remedy or "") in (finding["remedy"] or ""), finding
    assert level in ("ok", "absent") or finding["remedy"], finding


def hide(*names):
    """Nobody can execute these."""
    paths = [os.path.realpath(path) for name in names
             if (path := shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin"))]
    return "\n".join(f"mount --bind /dev/null {path}" for path in paths)


# ---- a machine that has everything ----

@pytest.mark.gate
@needs_root
def test_machine_that_has_everything(machine):
    status, found = doctor(machine, "manager", "agent", "containers")
    assert status == 0, found
    check(found["containers.runtime"], "ok", "a trial container ran")
    check(found["containers.network"], "ok", "veth and nftables work")
    check(found["agent.identity"], "warning", "has not joined", remedy="aliquot-agent join")
    assert {part for part, _ in (name.split(".") for name in found)} == {
        "manager", "agent", "containers"}


@needs_root
def test_nothing_is_left_of_the_trials(machine):
    before = sorted(machine.folder.rglob("*"))
    mounts = containers.mounts_of(machine.folder)
    doctor(machine)
    assert sorted(machine.folder.rglob("*")) == before
    assert containers.mounts_of(machine.folder) == mounts
    assert not machine.leftovers()
    assert not any(top.exists() for top in containers.tops_of(machine.folder))


@pytest.mark.gate
@needs_root
def test_beside_a_cluster_that_runs(machine):
    machine.start_manager()
    machine.start_agent()
    status, found = doctor(machine, **machine.cli_env())
    assert status == 0, found
    pid = machine.programs["manager"].pid
    check(found["manager.api"], "ok", f"is served by aliquot-manager, process {pid}")
    check(found["manager.link"], "ok", f"is served by aliquot-manager, process {pid}")
    check(found["agent.identity"], "ok", "is valid until")
    check(found["agent.manager"], "ok", "there is a connection to " + machine.link)
    check(found["cluster.manager"], "ok", "answers")
    check(found["cluster.version"], "ok", "manager and command line are")
    check(found["cluster.clock"], "ok", "agree")
    check(found["cluster.login"], "ok", "accepts the keypair")
    assert machine.agent()["connected"]
    machine.stop()


# ---- programs ----

@needs_root
def test_without_programs(machine):
    script = hide("crun", "runc", "skopeo", "nft", "mkfs.ext4", "dropbear")
    status, found = doctor(machine, "containers", script=script)
    assert status == UNFIT
    check(found["containers.runtime"], "missing",
          "containers cannot run: crun: it is not installed; runc: it is not installed",
          "sessions with an image are refused", "apt install crun")
    check(found["containers.images"], "missing", "skopeo is not installed",
          "no image can be fetched", "apt install skopeo")
    check(found["containers.network"], "warning", "containers have no network: the program nft",
          "see nothing but themselves", "apt install nftables")
    check(found["containers.ssh"], "warning", "containers have no SSH server",
          remedy="apt install dropbear-bin")
    if containers.can_limit_scratch():
        check(found["containers.scratch"], "warning",
              "scratch space has no limit: there is no program 'mkfs.ext4'",
              "can fill the disk", "apt install e2fsprogs")


@needs_root
def test_agent_says_the_same(machine):
    script = hide("crun", "runc")
    _, found = doctor(machine, "containers", script=script)
    sentence = found["containers.runtime"]["text"].removeprefix("containers cannot run: ")
    agent = run(machine, without(script, BUILD / "aliquot-agent"))
    assert f"no containers here: {sentence}; see: aliquot doctor containers" in agent.stderr, agent


@needs_root
def test_other_runtime_is_taken(machine):
    if containers.why_not("runc"):
        pytest.skip("runc is not installed")
    _, found = doctor(machine, "containers", script=hide("crun"))
    check(found["containers.runtime"], "ok", "runc ")


@needs_root
def test_without_a_profile_of_system_calls(machine):
    _, found = doctor(machine, "containers",
                      ALIQUOT_RUNTIME_SECCOMP=str(machine.folder / "none.json"))
    check(found["containers.seccomp"], "warning", "system calls are not filtered",
          "may use every system call", "apt install golang-github-containers-common")


# ---- the kernel ----

@needs_root
def test_without_cgroups(machine):
    _, found = doctor(machine, "containers", script="umount --recursive --lazy /sys/fs/cgroup")
    check(found["containers.cgroups"], "warning", "nothing is limited: no cgroups are mounted",
          "more than their share", "mount -t cgroup2 none /sys/fs/cgroup")


@needs_root
def test_cgroups_that_are_hidden(machine):
    _, found = doctor(machine, "containers", script="mount -t tmpfs none /sys/fs/cgroup")
    check(found["containers.cgroups"], "warning", "cgroups cannot limit these: processor time",
          "more than their share", "/sys/fs/cgroup")


def overlay_at(folder):
    """The agent's state on an overlay, as inside of many containers."""
    return f"""mkdir {folder}/low {folder}/up {folder}/work {folder}/agent
        mount -t overlay overlay {folder}/agent \\
            -o lowerdir={folder}/low,upperdir={folder}/up,workdir={folder}/work
        """


def dev_without_loops(folder):
    dev = folder / "dev"
    return f"""mkdir {dev}; mount -t tmpfs none {dev}; mkdir {dev}/pts {dev}/shm
        cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty {dev}
        mount --bind /dev/pts {dev}/pts; mount --move {dev} /dev
        """


@needs_root
def test_without_loop_devices(machine):
    status, found = doctor(machine, "containers", script=dev_without_loops(machine.folder))
    check(found["containers.scratch"], "warning",
          "scratch space has no limit: there are no loop devices", "can fill the disk",
          "modprobe loop")
    check(found["containers.runtime"], "ok", "a trial container ran")
    assert status == 0


@needs_root
def test_images_that_may_leave_too_little(machine):
    if not containers.can_limit_scratch():
        pytest.skip("no loop devices, or no mkfs.ext4")
    status, found = doctor(machine, "containers", ALIQUOT_CONTAINER_SCRATCH_RESERVE="true",
                           ALIQUOT_CONTAINER_SCRATCH_SIZE="64m", ALIQUOT_IMAGE_KEEP_FREE="319m")
    check(found["containers.scratch"], "warning", "less than the 320 MiB", "no other one may find room",
          "keep-free")
    assert status == 0


@needs_root
def test_overlay_on_overlay(machine):
    status, found = doctor(machine, "containers", script=overlay_at(machine.folder))
    if containers.can_limit_scratch():
        check(found["containers.overlay"], "ok", "works on loop devices, though not at")
        assert status == 0, found
    script = overlay_at(machine.folder) + dev_without_loops(machine.folder)
    for folder in ("low", "up", "work", "agent"):
        shutil.rmtree(machine.folder / folder)
    status, found = doctor(machine, "containers", script=script)
    check(found["containers.overlay"], "missing", "containers cannot run: overlayfs ",
          "layers of images", f"modprobe loop, or mount ext4, xfs or btrfs at {machine.folder}")
    check(found["containers.runtime"], "missing", "containers cannot run: overlayfs ")
    assert status == UNFIT and not (machine.folder / "run").exists()


# ---- folders and ports ----

@needs_root
def test_full_disk(machine):
    script = "".join(f"""
        mkdir {machine.folder}/{name}; mount -t tmpfs -o size=512k none {machine.folder}/{name}
        head -c 1M /dev/zero > {machine.folder}/{name}/filler 2>/dev/null || true"""
                     for name in ("manager", "agent"))
    status, found = doctor(machine, script=script)
    assert status == UNFIT
    for name in ("manager", "agent"):
        check(found[name + ".state"], "missing", "cannot be written: No space left on device",
              f"aliquot-{name} serves stored data, but creates nothing",
              f"df -h {machine.folder}/{name}")
    assert found["containers.runtime"]["level"] == "ok", found["containers.runtime"]


@needs_root
def test_read_only_disk(machine):
    script = f"""mkdir {machine.folder}/manager
        mount -t tmpfs -o ro none {machine.folder}/manager"""
    status, found = doctor(machine, "manager", script=script)
    assert status == UNFIT
    check(found["manager.state"], "missing", "Read-only file system", remedy="remount,rw")


def test_port_in_use(machine):
    with socket.create_server(machine.address):
        status, found = doctor(machine, "manager")
    assert status == UNFIT
    check(found["manager.api"], "missing", "%s:%d is in use by python3" % machine.address,
          "aliquot-manager does not start", "aliquot-manager --listen")
    check(found["manager.api"], "missing", f"process {os.getpid()}",
          remedy=f"ss -ltnp 'sport = :{machine.address[1]}'")
    check(found["manager.link"], "ok", "is free")


def test_settings_file(machine):
    file = machine.folder / "manager.toml"
    port = free_port()
    del machine.env["ALIQUOT_MANAGER_LISTEN"]
    file.write_text(f'[manager]\nlisten = "127.0.0.1:{port}"\n')
    _, found = doctor(machine, "manager", "--config", file)
    check(found["manager.api"], "ok", f"127.0.0.1:{port} is free")
    file.write_text("[manager]\nlistne = 1\n")
    status, found = doctor(machine, "manager", "--config", file)
    assert status == UNFIT and list(found) == ["manager.program"]
    check(found["manager.program"], "missing", "listne")


# ---- another user ----

@needs_root
def test_user_without_rights(machine):
    machine.folder.chmod(0o777)
    status, found = doctor_of_nobody(machine)
    assert status == UNFIT
    check(found["containers.root"], "missing",
          "containers cannot run: the agent is not run by root",
          "sessions run as processes of this user", "sudo")
    check(found["containers.runtime"], "ok", "is installed; it was not tried without rights")
    status, found = doctor_of_nobody(machine, "manager", "agent")
    assert status == 0, found
    check(found["agent.user"], "ok", "run as nobody")


def doctor_of_nobody(machine, *parts):
    done = run(machine, ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                         BUILD / "aliquot", "doctor", *parts, "-o", "json"])
    return done.returncode, {found["id"]: found for found in json.loads(done.stdout)}


@needs_root
def test_sessions_of_a_user_without_rights(machine):
    """Processes run; a container is refused in a sentence that names doctor."""
    machine.start_manager()
    machine.join()
    subprocess.run(["chown", "-R", str(NOBODY), machine.folder / "agent"], check=True)
    machine.start_program("agent", "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}",
                          "--clear-groups", BUILD / "aliquot-agent", "--state",
                          machine.folder / "agent", ALIQUOT_ID="agent")
    share = ["-r", "cpu=1", "-r", "mem=64m"]
    done = machine.cli("run", *share, "--", "id", "-u")
    assert (done.returncode, done.stdout) == (0, f"{NOBODY}\n"), done
    done = machine.cli("run", "--image", "python:3.12", *share, "--", "true")
    assert done.returncode == 125, done
    assert ("this node runs no containers: the agent is not run by root; there, 'aliquot doctor "
            "containers' says what to do") in done.stderr
    machine.stop()


# ---- time ----

def test_certificate_that_expires(machine):
    machine.start_manager()
    machine.join()
    for days, level, text in ((0, "ok", "is valid until"), (810, "warning", "expires in 1"),
                              (830, "missing", "expired on")):
        machine.jump(wall=days * DAY)
        status, found = doctor(machine, "agent")
        check(found["agent.identity"], level, text,
              remedy=None if level == "ok" else "aliquot agent token; aliquot-agent join")
        assert status == (UNFIT if level == "missing" else 0)
    machine.jump()
    machine.stop()


def test_clocks_that_differ(machine):
    machine.start_manager()
    own = machine.folder / "own-clock"
    for seconds, level, text in ((0, "ok", "agree"), (100, "warning", "seconds ahead of"),
                                 (-100, "warning", "seconds behind"),
                                 (2000, "missing", "seconds ahead of")):
        own.write_text(f"{seconds} 0\n")
        status, found = doctor(machine, "cluster", ALIQUOT_CLOCK_FILE=str(own),
                               **machine.cli_env())
        check(found["cluster.clock"], level, text,
              remedy=None if level == "ok" else "apt install chrony")
        assert status == (UNFIT if level == "missing" else 0)
    machine.stop()


# ---- the cluster ----

def test_manager_that_is_not_there(machine):
    status, found = doctor(machine, "cluster", **machine.cli_env())
    assert status == UNFIT and list(found) == ["cluster.manager"]
    check(found["cluster.manager"], "missing", "cannot reach the manager", "no command",
          "aliquot doctor manager")


def test_without_a_login(machine):
    status, found = doctor(machine, "cluster")
    check(found["cluster.manager"], "absent", "not logged in", remedy="aliquot login")
    assert status == UNFIT  # as it was asked for
    status, found = doctor(machine, "manager")
    assert status == 0 and "cluster.manager" not in found


def test_cluster_that_is_frozen(machine):
    machine.start_manager()
    found = doctor(machine, "cluster", **machine.cli_env())[1]
    check(found["cluster.status"], "ok", "can be started and ended")
    assert machine.cli("admin", "freeze").returncode == 0
    status, found = doctor(machine, "cluster", **machine.cli_env())
    check(found["cluster.status"], "warning", "frozen", "cannot be started", "aliquot admin unfreeze")
    assert status == 0
    machine.stop()


def test_keypair_that_is_not_known(machine):
    machine.start_manager()
    status, found = doctor(machine, "cluster",
                           **{**machine.cli_env(), "ALIQUOT_SECRET_KEY": "x" * 40})
    assert status == UNFIT
    check(found["cluster.manager"], "ok", "answers")
    check(found["cluster.login"], "missing", "", "refused", "aliquot login")
    machine.stop()


# ---- GPUs ----

@pytest.mark.gate
def test_without_a_gpu(machine):
    root = machine.folder / "root"
    root.mkdir()
    status, found = doctor(machine, "gpu", ALIQUOT_ACCEL_ROOT=str(root))
    check(found["gpu.driver"], "absent", "there is no NVIDIA GPU")
    assert status == UNFIT and "gpu.plugins" not in found


def test_gpu_without_a_driver(machine):
    device = machine.folder / "root" / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030200\n")
    status, found = doctor(machine, "gpu", ALIQUOT_ACCEL_ROOT=str(machine.folder / "root"))
    check(found["gpu.driver"], "missing", "no driver has it", "get no GPU",
          "apt install nvidia-driver")
    assert status == UNFIT


def test_devices_of_a_plugin(machine):
    mock = machine.folder / "mock.toml"
    mock.write_text('slot_name = "cuda"\ndevice_plugin_name = "CUDADevice"\n'
                    '[[devices]]\nmother_uuid = "c59395cd-ac91-4cd3-a1b0-3d2568aa2d01"\n'
                    'model_name = "CUDA GPU"\nnuma_node = 0\nsubproc_count = 108\n'
                    'memory_size = "2G"\nis_mig_device = false\n')
    status, found = doctor(machine, "gpu", ALIQUOT_ACCELERATORS_MOCK=str(mock))
    check(found["gpu.plugins"], "ok", "1 by mock")
    mock.write_text("slot_name = 7\n")
    status, found = doctor(machine, "gpu", ALIQUOT_ACCELERATORS_MOCK=str(mock))
    check(found["gpu.plugins"], "missing", "mock: ", "do not get these devices", "--describe")
    assert status == UNFIT


# ---- how it is shown ----

def test_shown_to_accounts(machine):
    with socket.create_server(machine.address):
        done = run(machine, [BUILD / "aliquot", "doctor", "manager"])
    assert done.returncode == UNFIT and "\033" not in done.stdout
    lines = done.stdout.splitlines()
    assert lines[0] == "To run the manager here (manager)"
    at = next(i for i, line in enumerate(lines) if "missing" in line)
    assert lines[at].startswith("  ✗ missing  port of the API: ")
    assert lines[at + 1].startswith("             means: ")
    assert lines[at + 2].startswith("             mend:  ss -ltnp")
    assert "1 missing" in lines[-1]
    done = run(machine, [BUILD / "aliquot", "doctor", "manager", "--color", "always"])
    assert "\033[32m✓ ok     \033[0m  " in done.stdout


def test_each_part_has_a_heading(machine):
    parts = ["manager", "agent", "gpu", "proxy", "storage", "web", "cluster"]
    done = run(machine, [BUILD / "aliquot", "doctor", *parts])
    headings = [line for line in done.stdout.splitlines()[:-1] if line and line[0] != " "]
    assert [line.rpartition(" (")[2] for line in headings] == [f"{part})" for part in parts], done


@pytest.mark.gate
def test_formats(machine):
    for words, text in ((["-o", "name"], "manager.state\n"), (["-o", "yaml"], "- id: manager.state"),
                        (["-o", "csv"], "manager.state,manager,state folder,ok,"),
                        (["--columns", "id,level", "--no-header"], "manager.state  ok")):
        done = run(machine, [BUILD / "aliquot", "doctor", "manager", *words])
        assert done.returncode == 0 and text in done.stdout, done


def test_mistakes(machine):
    for words, text in ((["kitchen"], "there are: manager, agent, containers, gpu, proxy, storage, web, cluster"),
                        (["--config", "x"], "--config: name the parts")):
        done = run(machine, [BUILD / "aliquot", "doctor", *words])
        assert done.returncode == 2 and text in done.stderr, done


def test_programs_that_are_not_installed(machine):
    alone = machine.folder / "bin"
    alone.mkdir()
    shutil.copy(BUILD / "aliquot", alone)
    done = run(machine, [alone / "aliquot", "doctor", "manager", "-o", "json"])
    if os.path.exists("/usr/libexec/aliquot/aliquot-manager"):
        pytest.skip("it is installed")
    [found] = json.loads(done.stdout)
    check(found, "absent", "aliquot-manager is neither beside this one", remedy="apt install")
    assert done.returncode == UNFIT
