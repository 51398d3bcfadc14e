# SPDX-License-Identifier: Apache-2.0
"""A world of a test's own: folder, settings, cgroups and, if it wants one, a network.

All that programs make is in one folder, and every process of theirs has that
folder's name in its environment, its command line or its working directory;
so what is left over can be found, and ended also when the test was killed:
run as a program, this file reads the folder's name from standard input, waits
for the end of it, then ends the processes and removes the folder.
"""

import contextlib
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import containers

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOREIGN = ("ALIQUOT_", "BACKEND_", "NOTIFY_", "WATCHDOG_", "XDG_")  # variables that stay outside

CLONE_NEWNET = 0x40000000


def find_build():
    """The build that is tested: the one in ALIQUOT_BUILD, else build-asan, else build."""
    named = os.environ.get("ALIQUOT_BUILD")
    candidates = [ROOT / name for name in ([named] if named else ["build-asan", "build"])]
    return next((path for path in candidates if (path / "aliquot").exists()), candidates[-1])


BUILD = find_build()


def why_not_built():
    """Why the programs cannot be tested and what to do, or ""."""
    if (BUILD / "aliquot").exists():
        return ""
    return (f"there are no programs in {BUILD}: run './check SUITE', which builds what it tests, "
            "or 'meson setup -Dtests=enabled build && ninja -C build all test-programs'")


def processes_of(folder):
    """{pid: command line} of living processes that have to do with a folder."""
    mark, found = str(folder).encode(), {}
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (proc / "cmdline").read_bytes()
            if (mark in command or mark in (proc / "environ").read_bytes()
                    or os.readlink(proc / "cwd").startswith(str(folder))):
                if command and int(proc.name) != os.getpid():
                    found[int(proc.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found | {pid: "in a container" for pid in containers.pids_of(folder) - found.keys()}


def end_processes(folder):
    """Kill until there are none: a dying agent may just have started a monitor."""
    while left := processes_of(folder):
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    containers.remove_cgroups(folder)


def database_of(folder):
    """The settings of a database of one's own, where ALIQUOT_TEST_POSTGRES names a server."""
    server = os.environ.get("ALIQUOT_TEST_POSTGRES")
    if not server:
        return {}
    subprocess.run(["psql", "-q", server.replace("%s", "postgres"),
                    "-c", f'CREATE DATABASE "{folder.name}"'], check=True)
    return {"ALIQUOT_MANAGER_DATABASE": server.replace("%s", folder.name)}


def drop_database(folder):
    server = os.environ.get("ALIQUOT_TEST_POSTGRES")
    if server:
        subprocess.run(["psql", "-q", server.replace("%s", "postgres"),
                        "-c", f'DROP DATABASE IF EXISTS "{folder.name}" WITH (FORCE)'], check=False)


def environment(folder, settings):
    """Variables for programs that neither the machine's settings nor other clusters reach."""
    home = folder / "home"
    config = home / ".config" / "aliquot"
    config.mkdir(parents=True)
    for name in ("agent", "manager"):
        (config / f"{name}.toml").touch()  # instead of those in /etc
    env = {key: value for key, value in os.environ.items() if not key.startswith(FOREIGN)}
    env.update({
        "HOME": str(home), "XDG_CONFIG_HOME": str(config.parent),
        "XDG_STATE_HOME": str(home / ".local" / "state"), "ALIQUOT_TEST_FOLDER": str(folder),
        "ALIQUOT_RUNTIME_FOLDER": str(folder / "run"),
        "ALIQUOT_RUNTIME_CGROUP_PARENT": containers.parent_of(folder),
        "ALIQUOT_ACCELERATORS_FOLDER": str(folder / "accelerators"),
        "ALIQUOT_METRICS_LISTEN": "off",
        "ALIQUOT_CONTAINER_SCRATCH_RESERVE": "false",  # many clusters on one disk
        **database_of(folder), **settings})
    return env


class World:
    """'settings' are environment variables of the programs: ALIQUOT_AGENTS_TIMEOUT="2s"."""

    def __init__(self, prefix="aliquot-test-", **settings):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix))
        self.folder.chmod(0o711)  # users of containers get to their part of it
        self.reaper = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE,
                                       text=True, start_new_session=True)
        print(self.folder, file=self.reaper.stdin, flush=True)
        self.env = environment(self.folder, settings)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def run(self, program, *words, timeout=60, says=None, **settings):
        """A program of the build to its end, with a text to read; texts of stdout and stderr."""
        given = {"stdin": subprocess.DEVNULL} if says is None else {"input": says}
        return subprocess.run([BUILD / program, *map(str, words)], env={**self.env, **settings},
                              capture_output=True, text=True, errors="replace", timeout=timeout,
                              **given)

    def end(self):
        """Kill and remove whatever is left."""
        end_processes(self.folder)
        drop_database(self.folder)
        self.reaper.stdin.close()
        self.reaper.wait()


class Space:
    """A network or mount namespace, or both, held by a sleeping process."""

    def __init__(self, mounts=False, network=True):
        flags = ["-n"] * network + ["-m"] * mounts
        self.flags = flags
        self.process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "unshare", *flags,
             "sh", "-c", "ip link set lo up; echo; exec sleep infinity"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def words(self, *words):
        """The command that runs these words inside."""
        return ["setpriv", "--pdeathsig", "KILL", "nsenter", "-t", str(self.process.pid),
                *self.flags, *map(str, words)]

    def run(self, *words, check=True):
        done = subprocess.run(self.words(*words), stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, check=False)
        assert not check or done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    @contextlib.contextmanager
    def entered(self):
        """Sockets that the calling thread makes meanwhile are in this network."""
        enter = ctypes.CDLL(None, use_errno=True).setns  # the calling thread alone
        with open("/proc/thread-self/ns/net") as ours, \
                open(f"/proc/{self.process.pid}/ns/net") as theirs:
            if enter(theirs.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                enter(ours.fileno(), CLONE_NEWNET)

    def connect(self, address):
        """A connection of TCP that is made inside, for us outside."""
        with self.entered():
            return socket.create_connection(address, 20)

    def close(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def own_network():
    """A function that turns a command into one whose ports, links and nftables nobody else has.

    Only root can have that; for others it is the machine's."""
    if os.geteuid() != 0:
        yield lambda *words: list(words)
        return
    space = Space()
    try:
        yield space.words
    finally:
        space.close()


def unmount_below(folder):
    """Mounts of a test that was killed; a loop device goes with its file system."""
    points = [line.split()[4] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in reversed([point for point in points if point.startswith(folder + "/")]):
        subprocess.run(["umount", "--lazy", point], check=False)


def reap():
    """Wait for the end of the test, however it comes."""
    folder = sys.stdin.readline().strip()
    sys.stdin.read()
    end_processes(folder)
    if not os.environ.get("ALIQUOT_TEST_KEEP"):
        unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    reap()
