# SPDX-License-Identifier: Apache-2.0
"""Containers have what was asked and no more, and leave nothing behind."""

import base64
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time
import uuid

import pytest

import containers
from cluster import Cluster, wait_for
from runtimes import Session, exit_code, run, settings_of
from world import BUILD, processes_of

RUNTIMES = ("crun", "runc")
MIB = 1 << 20


@pytest.fixture(params=RUNTIMES, scope="module")
def cluster(request):
    small = {"ALIQUOT_CONTAINER_SCRATCH_SIZE": "48m", "ALIQUOT_CONTAINER_MAX_PROCESSES": "64",
             "ALIQUOT_IMAGE_ALLOW": "* host rootfs:*"}
    with Cluster(**settings_of(request.param), **small) as cluster:
        cluster.runtime = request.param
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.check_audits()
        cluster.stop()


def resources(**slots):
    return {"resources": {"cpu": "1", "mem": "64m", **slots}}


HUNGRY = "python3 -c 'x = bytearray(200 << 20)'"


def why(cluster, shown):
    return cluster.cli("session", "why", shown["id"]).stdout


def has(lines, pattern):
    return re.search(pattern, lines, re.M)


# ---- limits ----

@pytest.mark.gate
def test_memory(cluster):
    """The kernel ends what takes more, and the session says why."""
    shown, log = run(cluster, f"exec {HUNGRY}")
    assert (shown["reason"], exit_code(shown)) == ("out-of-memory", 137), (shown, log)
    assert shown["result"] == "FAILURE"


@pytest.mark.gate
def test_memory_of_a_child(cluster):
    """Who was killed is not who ends: the failure is told by its cause, success as such."""
    shown, log = run(cluster, f"{HUNGRY}; exit 3")
    assert (shown["reason"], exit_code(shown)) == ("out-of-memory", 3), (shown, log)
    assert "its memory was used up" in why(cluster, shown)
    shown, log = run(cluster, f"{HUNGRY}; exit 0")
    assert (shown["reason"], shown["result"], exit_code(shown)) == ("task-finished", "SUCCESS", 0)
    assert "A process was killed because the memory was used up; the limit was 64 MiB." \
        in why(cluster, shown)
    shown, log = run(cluster, "exit 3")
    assert (shown["reason"], exit_code(shown)) == ("task-failed", 3), (shown, log)


def test_memory_of_a_bootstrap_script(cluster):
    """It is the script that failed, and for want of memory."""
    shown, log = run(cluster, "true", bootstrap_script=f"{HUNGRY}; exit 4", config=resources())
    assert (shown["reason"], exit_code(shown)) == ("bootstrap-failed", 4), (shown, log)
    assert "the bootstrap script failed with exit status 4" in why(cluster, shown)
    assert "A process was killed because the memory was used up" in why(cluster, shown)


@pytest.mark.gate
def test_memory_of_a_command(cluster):
    """Of exec: its standard error says it, and why does when the session has ended."""
    session = Session(cluster, "echo ready; sleep 1000", config=resources())
    session.wait_log("ready")
    done = cluster.cli("exec", session.id, "--", "sh", "-c", f"exec {HUNGRY}")
    assert (done.returncode, done.stderr.splitlines()[-1:]) == \
        (137, ["aliquot: a process was killed: out of memory, limit 64 MiB"]), done
    done = cluster.cli("exec", session.id, "--", "false")
    assert (done.returncode, done.stderr) == (1, ""), done
    session.end(forced=True)
    shown = session.wait()
    assert shown["reason"] == "force-terminated"
    assert "A process was killed because the memory was used up" in why(cluster, shown)


def test_memory_too_small_to_start(cluster):
    shown, _ = run(cluster, "true", config=resources(mem="1m"))
    assert "1 MiB of memory is too little to start a container: ask for at least 8 MiB" \
        in why(cluster, shown)


def test_memory_has_no_swap(cluster):
    session = Session(cluster, "echo ready; sleep 1000")
    session.wait_log("ready")
    limits = {name: (path / name).read_text().strip()
              for path in cgroups_of(cluster, session)
              for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max",
                           "memory.swap.max") if (path / name).exists()}
    session.end(forced=True)
    session.wait()
    assert set(limits.values()) <= {str(64 * MIB), "0"} and limits, limits


def cgroups_of(cluster, session):
    return [path for path in containers.cgroups_of(cluster.folder)
            if path.name == session.kernel["id"]]


@pytest.mark.gate
def test_memory_within_its_limit(cluster):
    shown, _ = run(cluster, "exec python3 -c 'x = bytearray(30 << 20)'")
    assert shown["result"] == "SUCCESS", shown


@pytest.mark.gate
def test_cores(cluster):
    """As many as were asked for, if the node has them."""
    session = Session(cluster, "echo ready; sleep 1000")
    session.wait_log("ready")
    found = {name: (path / name).read_text().split()
             for path in cgroups_of(cluster, session)
             for name in ("cpu.cfs_quota_us", "cpu.max") if (path / name).exists()}
    session.end(forced=True)
    session.wait()
    assert found in ({"cpu.cfs_quota_us": ["100000"]}, {"cpu.max": ["100000", "100000"]})


@pytest.mark.gate
def test_core_set(cluster):
    """Cores that the node really has are the container's own."""
    _, log = run(cluster, "cat /proc/self/status | grep Cpus_allowed_list")
    assert has(log, r"^Cpus_allowed_list:\t[-0-9,]+$"), log


@pytest.mark.gate
def test_fork_bomb(cluster):
    shown, log = run(cluster, "i=0; while [ $i -lt 200 ]; do sleep 20 & i=$((i+1)); done; echo $i")
    assert "fork" in log.lower() or "unavailable" in log, (shown, log)
    # in a process of its own: a shell that cannot fork any more ends
    session = Session(cluster, "exec 2>/dev/null; bomb() { bomb | bomb & }; bomb & "
                               "echo armed; exec sleep 1000")
    session.wait_log("armed")
    assert run(cluster, "echo unharmed")[1] == "unharmed\n"
    session.end(forced=True)
    session.wait()


@pytest.mark.gate
def test_scratch_is_full(cluster):
    _, log = run(cluster, "dd if=/dev/zero of=/tmp/big bs=1M count=100; echo $?; "
                          "dd if=/dev/zero of=$HOME/big bs=1M count=100; echo $?; rm -f /tmp/big")
    assert log.count("No space left on device") == 2, log
    assert run(cluster, "echo x > $HOME/file && cat $HOME/file")[1] == "x\n"


def test_scratch_device_has_the_blocks_of_its_file_system(cluster):
    """So that its mount reads what was filled in from memory."""
    session = Session(cluster, "stat -f -c 'blocks %S.' $HOME; exec sleep 1000")
    session.wait_log(".")
    files = {path.read_text().strip(): path.parent.parent
             for path in pathlib.Path("/sys/block").glob("loop*/loop/backing_file")}
    [device] = [device for file, device in files.items() if session.kernel["id"] in file]
    blocks = (device / "queue/logical_block_size").read_text().strip()
    assert f"blocks {blocks}." in session.log, (blocks, session.log)
    session.end(forced=True)
    session.wait()


def test_shared_memory(cluster):
    _, log = run(cluster, "df -k --output=size /dev/shm",
                 config={**resources(), "resource_opts": {"shmem": "8m"}})
    assert log.split()[-1] == "8192", log
    assert run(cluster, "df -k --output=size /dev/shm")[1].split()[-1] == "65536"


def test_open_files_and_core_dumps(cluster):
    _, log = run(cluster, "ulimit -n; ulimit -c")
    files, core = log.split()
    assert int(files) >= 1024 and core == "0"


# ---- rights ----

@pytest.mark.gate
def test_privileges(cluster):
    _, log = run(cluster, "id -u; id -g; whoami >/dev/null && cat /proc/self/status /proc/self/uid_map")
    assert log.startswith("1000\n1000\n"), log
    for line in (r"^CapEff:\t0+$", r"^CapPrm:\t0+$", r"^NoNewPrivs:\t1$", r"^Seccomp:\t2$"):
        assert has(log, line), (line, log)
    assert not has(log, r"^ +0 +0 +4294967295$"), "users are the node's own"


def test_setuid_programs_gain_nothing(cluster):
    _, log = run(cluster, "cp /usr/bin/id /tmp/id; chmod u+s /tmp/id; /tmp/id -u; su -c id; echo $?")
    assert log.splitlines()[0] == "1000" and "uid=0" not in log, log


def test_system_calls(cluster):
    """io_pgetevents (333) is refused by the profile; without it, it would say EINVAL."""
    _, log = run(cluster, "python3 -c 'import ctypes; l = ctypes.CDLL(None, use_errno=True); "
                          "print(l.syscall(333, 0, 0, 0, 0, 0, 0), ctypes.get_errno())'")
    assert log == "-1 1\n", log


@pytest.mark.gate
def test_devices(cluster):
    _, log = run(cluster, "ls /dev; mknod /tmp/disk b 254 0; echo x > /dev/null && echo null; "
                          "head -c 4 /dev/urandom | wc -c")
    assert "not permitted" in log and "null\n4\n" in log, log
    assert not {"vda", "sda", "kmsg", "mem", "loop0", "loop-control"} & set(log.split())


def test_device_cgroup(cluster):
    """Even its root cannot use a node that it has not got."""
    session = Session(cluster, "echo ready; sleep 1000")
    session.wait_log("ready")
    lists = [(path / "devices.list").read_text() for path in cgroups_of(cluster, session)
             if (path / "devices.list").exists()]
    session.end(forced=True)
    session.wait()
    if not lists:
        pytest.skip("devices are filtered by cgroup version 2 here")
    assert "a *:* rwm" not in lists[0] and "c 1:3 rwm" in lists[0], lists


@pytest.mark.gate
def test_read_only_and_hidden_paths(cluster):
    _, log = run(cluster, "echo 1 > /proc/sys/kernel/hostname; "
                          "cat /proc/kcore 2>/dev/null | wc -c; cat /etc/shadow; touch /home/config/x; "
                          "touch /sys/x; mount -t tmpfs x /mnt")
    assert log.count("ead-only file system") == 3, log
    assert "root:" not in log and "0" in log.splitlines() and "must be superuser" in log, log


@pytest.mark.gate
def test_its_own_namespaces(cluster):
    _, log = run(cluster, "hostname; ls /proc | grep -c '^[0-9]'; cat /proc/net/dev; echo $$; "
                          "ls -d /proc/1/root/* 2>&1 | head -1")
    lines = log.splitlines()
    assert lines[0] == "main1" and int(lines[1]) < 10, log


@pytest.mark.gate
def test_node_is_not_changed(cluster):
    """The node's own root is the image, but what is written there stays inside."""
    mark = pathlib.Path("/tmp") / f"aliquot-{uuid.uuid4().hex}"
    _, log = run(cluster, f"touch {mark} && ls {mark}; ls {cluster.folder}")
    assert str(mark) in log and not mark.exists()
    assert "manager" not in log, "the agent's folder can be seen"


def test_processes_of_others_are_out_of_reach(cluster):
    session = Session(cluster, "echo ready; exec sleep 1234")
    session.wait_log("ready")
    _, log = run(cluster, "ps -e -o args; kill -9 -1; echo still here")
    assert "sleep 1234" not in log, log
    assert session.wait("RUNNING")
    session.end(forced=True)
    session.wait()


# ---- images ----

@pytest.fixture
def bare(cluster):
    """A root file system with one static program and nothing else."""
    root = pathlib.Path(cluster.folder) / "bare"
    root.mkdir(exist_ok=True)
    shutil.copy(BUILD / "aliquot-runner", root / "hello")
    yield f"rootfs:{root}"
    shutil.rmtree(root)


@pytest.mark.gate
def test_image_without_a_shell(cluster, bare):
    shown, log = run(cluster, "/hello --version", image=bare)
    assert shown["result"] == "SUCCESS" and log.startswith("aliquot-runner "), (shown, log)


def test_command_that_needs_a_shell_the_image_has_not(cluster, bare):
    session = Session(cluster, "/hello | /hello", image=bare)
    shown = session.wait()
    assert shown["status"] == "ERROR", shown
    why = session.client.get(f"/aliquot/v1/sessions/{session.id}/why").body.decode()
    assert "no shell" in why, why


def test_image_that_is_not_there(cluster):
    session = Session(cluster, "true", image="rootfs:/no/such/folder")
    shown = session.wait()
    assert shown["status"] == "ERROR", shown
    why = session.client.get(f"/aliquot/v1/sessions/{session.id}/why").body.decode()
    assert "/no/such/folder" in why, why


def test_session_that_wants_no_container(cluster):
    session = Session(cluster, "true", image="process")
    assert session.wait()["status"] == "ERROR"


# ---- bad days ----

def test_runtime_is_killed(cluster):
    session = Session(cluster, "echo ready; sleep 1000")
    session.wait_log("ready")
    for pid, command in processes_of(cluster.folder).items():
        if f"{cluster.runtime} --" in command and session.kernel["id"] in command:
            os.kill(pid, signal.SIGKILL)
    assert exit_code(session.wait()) == 137
    cluster.check_nothing_left()


def test_process_1_is_killed(cluster):
    session = Session(cluster, "echo ready; sleep 1000")
    session.wait_log("ready")
    for pid in containers.pids_of(cluster.folder):
        with contextlib.suppress(OSError):
            if b"aliquot-runner" in pathlib.Path(f"/proc/{pid}/cmdline").read_bytes():
                os.kill(pid, signal.SIGKILL)
    assert exit_code(session.wait()) == 137
    cluster.check_nothing_left()


def test_filter_of_system_calls(cluster, tmp_path):
    """The filter that crun is given is the one that it makes of the profile; runc gets none."""
    session = Session(cluster, "echo ready; sleep 1000")
    session.wait_log("ready")
    bundle = cluster.folder / "agent/kernels" / session.kernel["id"] / "run/1/config.json"
    config = json.loads(bundle.read_text())
    if cluster.runtime == "runc":
        session.end()
        session.wait()
        assert "run.oci.seccomp_bpf_data" not in config["annotations"]
        assert config["linux"]["seccomp"]["syscalls"]
        return
    [pid] = [pid for pid, command in processes_of(cluster.folder).items()
             if "crun --" in command and session.kernel["id"] in command]
    given = base64.b64decode(config["annotations"].pop("run.oci.seccomp_bpf_data"))
    config["process"]["args"] = ["/bin/true"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    crun = ["nsenter", "--target", str(pid), "--mount", "--", "crun", "--cgroup-manager=disabled",
            "--root", tmp_path / "root"]
    with (tmp_path / "said").open("wb") as said:  # crun gives these away: not /dev/null
        subprocess.run([*crun, "create", "--bundle", tmp_path, "peer"], input=b"",
                       stdout=said, stderr=said, check=True)
    made = (tmp_path / "root" / "peer" / "seccomp.bpf").read_bytes()
    subprocess.run([*crun, "delete", "--force", "peer"], check=True)
    session.end()
    session.wait()
    assert given == made and len(made) > 1000


def test_unknown_containers_are_ended(cluster):
    """A cgroup of ours for which there is no kernel."""
    [agents] = {path for mount in containers.hierarchies()
                for path in (mount / containers.parent_of(cluster.folder)[1:]).glob("*")
                if path.is_dir() and "pids" in mount.name} or [None]
    if agents is None:
        pytest.skip("there is no hierarchy of its own for processes")
    stranger = agents / str(uuid.uuid4())
    stranger.mkdir()
    with subprocess.Popen(["sleep", "1000"]) as process:
        (stranger / "cgroup.procs").write_text(str(process.pid))
        cluster.programs["agent"].kill()
        cluster.programs["agent"].start()
        assert process.wait(30) == -signal.SIGKILL
    wait_for(lambda: not stranger.exists(), 30, "the cgroup to go")
    wait_for(lambda: cluster.agent().get("connected"), 60, "the agent")


def test_restart_of_the_machine(cluster):
    """Nothing runs any more and the run folder is empty; kernels are lost, and said to be."""
    sessions = [Session(cluster, "echo ready; sleep 1000") for _ in range(3)]
    for session in sessions:
        session.wait_log("ready")
    cluster.programs["agent"].kill()
    own = {program.pid for program in cluster.programs.values()}
    for pid in [*processes_of(cluster.folder), *containers.pids_of(cluster.folder)]:
        if pid not in own:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    containers.remove_cgroups(cluster.folder)
    shutil.rmtree(cluster.folder / "run")
    cluster.programs["agent"].start()
    assert {session.wait()["reason"] for session in sessions} == {"monitor-lost"}
    assert run(cluster, "echo works")[1] == "works\n"
    cluster.check_nothing_left()


# ---- one after another ----

def test_a_folder_is_used_again(cluster):
    """The next container has the folder of the one before, and nothing of what was in it."""
    agent = cluster.folder / "agent"
    assert exit_code(run(cluster, "head -c 20M /dev/urandom > left && cp left /tmp/left")[0]) == 0
    wait_for(lambda: not list((agent / "kernels").iterdir()), 30, "the kernel's folder to go")
    spares = {spare.stat().st_ino: spare for spare in (agent / "spares").iterdir()}
    assert spares
    written = [file for file in agent.glob("spares/**/*") if file.stat().st_blocks * 512 > MIB]
    assert written == [], "what a container has written takes no room when it has ended"

    session = Session(cluster, "find / -xdev -name left 2> /dev/null; echo ready; sleep 1000")
    session.wait_log("ready")
    [folder] = (agent / "kernels").iterdir()
    assert folder.stat().st_ino in spares
    assert session.log == "ready\n"
    session.end(forced=True)
    session.wait()


# ---- many ----

@pytest.mark.parametrize("runtime", ("crun",))
def test_two_hundred_at_once(runtime):
    """All of them run, at the same time, and all of them go."""
    settings = {**settings_of(runtime), "ALIQUOT_RESOURCE_CPUS": "400",
                "ALIQUOT_RESOURCE_MEM": "40g", "ALIQUOT_CONTAINER_SCRATCH_SIZE": "48m"}
    with Cluster(**settings) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        sessions = [Session(cluster, "echo ready; exec sleep 1000", config=resources(mem="16m"))
                    for _ in range(200)]
        for session in sessions:
            session.wait("RUNNING", seconds=300)
        assert len(containers.pids_of(cluster.folder)) >= 200
        for session in sessions:
            session.end(forced=True)
        for session in sessions:
            session.wait(seconds=120)
        cluster.check_nothing_left(60)
        cluster.check_audits()
        cluster.stop()


def test_no_mounts_on_the_node(cluster):
    """The node's own mount table never has any of a container's."""
    session = Session(cluster, "echo ready; sleep 1000")
    session.wait_log("ready")
    assert containers.mounts_of(cluster.folder) == []
    session.end(forced=True)
    session.wait()
    cluster.check_nothing_left()


def test_runtime_is_said_at_the_start(cluster):
    assert f"containers by {cluster.runtime} " in cluster.log_of("agent")
    assert cluster.agent()["runtime"].startswith(cluster.runtime + " ")
    assert cluster.runtime in cluster.cli("agent", "info", "agent").stdout
