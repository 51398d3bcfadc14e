#!/usr/bin/python3 -B
# SPDX-License-Identifier: Apache-2.0
"""Bare Debian machines to try things in: roots with nothing but apt.

    bare_root.py make SUITE FOLDER
    bare_root.py run FOLDER [--user NAME] [--bind SRC:DST]... [--offline] -- COMMAND

A command in such a root has its own processes, mounts, network, hostname, IPC
and cgroups, and a kernel that lets it make containers of its own. Its network has
loopback alone: packages come through package_proxy.py, whose cache and the
finished roots are in ~/.cache/aliquot. Whatever ends the run ends all that it
started. Needs root.
"""

import argparse
import contextlib
import ctypes
import fcntl
import os
import pathlib
import platform
import pwd
import re
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

import commands

PROXY_PORT = 3142
RENEW_SEC = 7 * 86400
SUITES = ("bullseye", "bookworm", "trixie")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROXY_CONF = "etc/apt/apt.conf.d/90proxy"
TOOLS = pathlib.Path(__file__).resolve().parent
CGROUPS = pathlib.Path("/sys/fs/cgroup")

CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS = 0x20000, 0x2000000, 0x4000000
CLONE_NEWIPC, CLONE_NEWPID, CLONE_NEWNET = 0x8000000, 0x20000000, 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND = 1, 2, 4, 8, 0x1000
MS_REC, MS_PRIVATE, MNT_DETACH = 0x4000, 0x40000, 2
PR_SET_PDEATHSIG = 1
SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
DEVICES = {"null": (1, 3), "zero": (1, 5), "full": (1, 7), "random": (1, 8), "urandom": (1, 9),
           "kmsg": (1, 11), "tty": (5, 0), "fuse": (10, 229), "net/tun": (10, 200),
           "loop-control": (10, 237)}
LOOP_DEVICES = 256

libc = ctypes.CDLL(None, use_errno=True)


def check(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)


def unshare(flags):
    check(libc.unshare(flags), "unshare")


def mount(source, target, kind=None, flags=0, data=None):
    words = [None if word is None else str(word).encode() for word in (source, target, kind, data)]
    check(libc.mount(words[0], words[1], words[2], ctypes.c_ulong(flags), words[3]),
          f"mount {source} {target}")


def end_with_parent():
    check(libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    path = pathlib.Path(base) / "aliquot"
    path.mkdir(parents=True, exist_ok=True)
    return path


@contextlib.contextmanager
def package_proxy():
    """A package proxy in the network of now; yields what makes it serve a listening socket."""
    near, far = socket.socketpair()
    with near:
        with far:
            proxy = subprocess.Popen([sys.executable, "-B", TOOLS / "package_proxy.py",
                                      cache_dir() / "packages", str(far.fileno())],
                                     pass_fds=[far.fileno()], start_new_session=True)

        def serve(listening):
            socket.send_fds(near, [b"1"], [listening.fileno()])
            if near.recv(1) != b"1":
                raise commands.Failed("package_proxy.py does not start")
        try:
            yield serve
        finally:
            near.close()
            proxy.wait()


# Making a root


def machine_sources(suite):
    """The lines of this machine's apt sources for a suite: it may have a mirror of its own."""
    if not shutil.which("apt-get"):
        return []
    said = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)",
         "Created-By: Packages"], capture_output=True, text=True).stdout
    wanted = (suite, f"{suite}-updates", f"{suite}-security")
    return sorted({f"deb {line}" for line in said.splitlines()
                   if line.startswith("http://") and line.split()[1] in wanted
                   and line.split()[2] == "main"})


def bootstrap(suite, target):
    """Make a root and leave it as the tar file 'target'."""
    lines = machine_sources(suite)
    mirror = lines if any(line.split()[2] == suite for line in lines) else []
    with socket.create_server(("127.0.0.1", 0)) as listening, package_proxy() as serve:
        serve(listening)
        port = listening.getsockname()[1]
        commands.run(["setpriv", "--pdeathsig", "TERM", "mmdebstrap", "--quiet",
                      "--variant=minbase", "--format=tar", suite, target, *mirror],
                     f"mmdebstrap {suite}", "see that Debian's package servers can be reached",
                     env={**os.environ, "http_proxy": f"http://127.0.0.1:{port}"})


@contextlib.contextmanager
def locked(path):
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def root_tar(suite):
    """The tar file of a suite's root, made when there is none or it is old."""
    folder = cache_dir() / "roots"
    folder.mkdir(exist_ok=True)
    tar, new = folder / f"{suite}.tar", folder / f"{suite}.new.tar"
    with locked(folder / f"{suite}.lock"):
        if not tar.exists() or time.time() - tar.stat().st_mtime > RENEW_SEC:
            try:
                bootstrap(suite, new)
                new.rename(tar)
            except commands.Failed:
                if not tar.exists():
                    raise
    return tar


# Running in a root


def hierarchies():
    """(name, type, options) of what is mounted below /sys/fs/cgroup; the name of v2 alone is ''."""
    found = []
    for line in pathlib.Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, options = line.split()[:4]
        if kind in ("cgroup", "cgroup2") and pathlib.Path(where).is_relative_to(CGROUPS):
            names = [word for word in options.split(",") if word not in ("rw", "ro", "relatime")]
            name = str(pathlib.Path(where).relative_to(CGROUPS)).removeprefix(".")
            found.append((name, kind, ",".join(names) if kind == "cgroup" else None))
    return found


class Cgroups:
    """One cgroup of this run in each hierarchy, removed when the run is over, even by kill -9."""

    def __init__(self):
        self.folders = []
        for name, kind, _ in hierarchies():
            folder = CGROUPS / name / f"aliquot-bare-{os.getpid()}"
            folder.mkdir()
            self.folders.append(folder)
            inherited = {file: folder.parent / file for file in ("cpuset.cpus", "cpuset.mems")}
            if kind == "cgroup" and inherited["cpuset.cpus"].exists():
                for file, parent in inherited.items():
                    (folder / file).write_text(parent.read_text())
                (folder / "cgroup.clone_children").write_text("1")
        alive, self.alive = os.pipe()
        self.remover = os.fork()
        if self.remover == 0:
            os.close(self.alive)
            self.remove_after(alive)
        os.close(alive)

    def remove_after(self, alive):
        """In a process of its own: remove the cgroups when the run's end of a pipe is closed."""
        os.setsid()
        null = os.open("/dev/null", os.O_RDWR)
        for fd in range(3):
            os.dup2(null, fd)
        os.read(alive, 1)
        for _ in range(100):
            self.remove()
            if not any(folder.exists() for folder in self.folders):
                break
            time.sleep(0.05)
        os._exit(0)

    def remove(self):
        for folder in self.folders:
            for path, _, _ in os.walk(folder, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)

    def join(self):
        for folder in self.folders:
            (folder / "cgroup.procs").write_text(str(os.getpid()))

    def close(self):
        os.close(self.alive)
        os.waitpid(self.remover, 0)


def loopback_up():
    with socket.socket() as s:
        fcntl.ioctl(s, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))


def mount_devices(dev):
    mount("tmpfs", dev, "tmpfs", MS_NOSUID, "mode=755")
    for name in ("pts", "shm", "net"):
        (dev / name).mkdir()
    old = os.umask(0)
    for name, number in DEVICES.items():
        os.mknod(dev / name, 0o20666, os.makedev(*number))
    for number in range(LOOP_DEVICES):
        os.mknod(dev / f"loop{number}", 0o60660, os.makedev(7, number))
    os.umask(old)
    mount("devpts", dev / "pts", "devpts", MS_NOSUID | MS_NOEXEC,
          "newinstance,ptmxmode=0666,mode=0620,gid=5")
    mount("tmpfs", dev / "shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777")
    for name, target in {"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0",
                         "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2"}.items():
        (dev / name).symlink_to(target)


def mount_all(root, binds, offline):
    """Put a root together in the mount namespace of this process, and enter it."""
    mounted = hierarchies()
    mount(None, "/", None, MS_REC | MS_PRIVATE)
    mount(root, root, None, MS_BIND | MS_REC)
    mount("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount("sysfs", root / "sys", "sysfs", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    mount_devices(root / "dev")
    mount("tmpfs", root / "run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=755")
    (root / "run" / "lock").mkdir(mode=0o1777)
    if mounted and mounted[0][0]:
        mount("tmpfs", root / "sys/fs/cgroup", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
              "mode=755")
    for name, kind, options in mounted:
        folder = root / "sys/fs/cgroup" / name
        folder.mkdir(exist_ok=True)
        mount("cgroup", folder, kind, MS_NOSUID | MS_NODEV | MS_NOEXEC, options)
    for source, target in binds:
        inside = root / target.lstrip("/")
        if stat.S_ISDIR(os.stat(source).st_mode):
            inside.mkdir(parents=True, exist_ok=True)
        else:
            inside.parent.mkdir(parents=True, exist_ok=True)
            inside.touch()
        mount(source, inside, None, MS_BIND | MS_REC)
    if offline:
        mount("/dev/null", root / PROXY_CONF, None, MS_BIND)
    os.chdir(root)
    check(libc.syscall(SYS_PIVOT_ROOT[platform.machine()], b".", b"."), "pivot_root")
    check(libc.umount2(b".", MNT_DETACH), "umount of the old root")
    os.chdir("/")


def account(root, name):
    """The line of a user in a root's passwd."""
    for line in (root / "etc/passwd").read_text().splitlines():
        words = line.split(":")
        if words[0] == name:
            return pwd.struct_passwd((words[0], words[1], int(words[2]), int(words[3]), *words[4:]))
    raise commands.Failed(f"{root} has no user {name}")


def groups_of(root, user):
    lines = [line.split(":") for line in (root / "etc/group").read_text().splitlines()]
    return [int(words[2]) for words in lines if user.pw_name in words[3].split(",")]


def environment(user, offline, extra):
    env = {"PATH": PATH, "HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name,
           "SHELL": user.pw_shell}
    if "TERM" in os.environ:
        env["TERM"] = os.environ["TERM"]
    if not offline:
        env["http_proxy"] = f"http://127.0.0.1:{PROXY_PORT}"
    return {**env, **extra}


def start_command(args, user, groups, env):
    """Become the command (of the child, or of process 1 itself)."""
    os.setgroups(sorted({user.pw_gid, *groups}))
    os.setgid(user.pw_gid)
    os.setuid(user.pw_uid)
    with contextlib.suppress(OSError):
        os.chdir(user.pw_dir)
    try:
        os.execvpe(args.command[0], args.command, env)
    except OSError as e:
        print(f"bare_root: {args.command[0]}: {e.strerror}", file=sys.stderr, flush=True)
        os._exit(127)


def status_of(waited):
    code = os.waitstatus_to_exitcode(waited)
    return code if code >= 0 else 128 - code


def pass_signals_to(pid):
    """Signals to this process go to its child, but not those of a terminal: it has them, too."""
    def pass_on(number, _):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGINT,
                   signal.SIGQUIT):
        terminal = number in (signal.SIGINT, signal.SIGQUIT) and os.isatty(0)
        signal.signal(number, signal.SIG_IGN if terminal else pass_on)


def be_process_one(args, cgroups):
    """Process 1 of the root: starts the command, reaps, and ends as it did."""
    end_with_parent()
    os.close(cgroups.alive)
    root = args.folder
    user = account(root, args.user)
    groups = groups_of(root, user)
    env = environment(user, args.offline, dict(word.split("=", 1) for word in args.env))
    cgroups.join()
    unshare(CLONE_NEWCGROUP | CLONE_NEWNS)
    mount_all(root, [word.split(":", 1) for word in args.bind], args.offline)
    if args.init:
        start_command(args, user, groups, env)
    command = os.fork()
    if command == 0:
        start_command(args, user, groups, env)
    pass_signals_to(command)
    while True:
        pid, waited = os.wait()
        if pid == command:
            os._exit(status_of(waited))


def run(args):
    if os.geteuid() != 0:
        raise commands.Failed("a bare root needs root", "", "run this as root or with sudo")
    end_with_parent()
    args.folder = args.folder.resolve()
    with contextlib.ExitStack() as stack:
        cgroups = Cgroups()
        stack.callback(cgroups.close)
        serve = None if args.offline else stack.enter_context(package_proxy())
        unshare(CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWPID)
        loopback_up()
        socket.sethostname((args.folder / "etc/hostname").read_text().strip())
        if serve:
            with socket.create_server(("127.0.0.1", PROXY_PORT)) as listening:
                serve(listening)
        one = os.fork()
        if one == 0:
            try:
                commands.main("bare_root", lambda: be_process_one(args, cgroups))
            except SystemExit as e:
                print(e, file=sys.stderr, flush=True)
            finally:
                os._exit(125)
        pass_signals_to(one)
        return status_of(os.waitpid(one, 0)[1])


class Root:
    """A bare root in a folder.

    make() takes a second or two where the suite's root is in the cache, else as long as
    mmdebstrap. run() and popen() take what subprocess.run() and Popen() take, and besides:
    user, binds [(source, target)], env (added to that of a fresh login), offline (no way to
    packages), init (the command is process 1 itself). All that a command started ends with it,
    or with the thread that called.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    @classmethod
    def make(cls, suite, folder):
        if os.geteuid() != 0:
            raise commands.Failed("a bare root needs root", "", "run this as root or with sudo")
        folder = pathlib.Path(folder)
        tar = root_tar(suite)
        folder.mkdir(parents=True)
        try:
            commands.run(["tar", "-C", folder, "--numeric-owner", "--xattrs",
                          "--xattrs-include=*", "-xpf", tar], f"unpacking {tar}")
        except BaseException:
            cls(folder).remove()
            raise
        (folder / "etc/hostname").write_text(f"{suite}\n")
        (folder / "etc/hosts").write_text(f"127.0.0.1 localhost\n127.0.1.1 {suite}\n")
        (folder / "etc/resolv.conf").write_text("")
        (folder / PROXY_CONF).write_text(
            f'Acquire::http::Proxy "http://127.0.0.1:{PROXY_PORT}";\n')
        return cls(folder)

    def words(self, command, user="root", binds=(), env=None, offline=False, init=False):
        return ["/usr/bin/python3", "-B", str(TOOLS / "bare_root.py"), "run", str(self.folder),
                "--user", user, *[f"--bind={source}:{target}" for source, target in binds],
                *[f"--env={name}={value}" for name, value in (env or {}).items()],
                *["--offline"] * offline, *["--init"] * init, "--", *map(str, command)]

    def popen(self, command, user="root", binds=(), env=None, offline=False, init=False, **kwargs):
        return subprocess.Popen(self.words(command, user, binds, env, offline, init), **kwargs)

    def run(self, command, user="root", binds=(), env=None, offline=False, init=False, **kwargs):
        return subprocess.run(self.words(command, user, binds, env, offline, init),
                              **{"stdin": subprocess.DEVNULL, **kwargs})

    def remove(self):
        subprocess.run(["rm", "-rf", "--one-file-system", self.folder], check=True)


def parse():
    parser = argparse.ArgumentParser(prog="bare_root.py", description=__doc__.splitlines()[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    make = verbs.add_parser("make", help="make a root")
    make.add_argument("suite", choices=SUITES)
    make.add_argument("folder", type=pathlib.Path)
    enter = verbs.add_parser("run", help="run a command in a root")
    enter.add_argument("folder", type=pathlib.Path)
    enter.add_argument("--user", default="root")
    enter.add_argument("--bind", action="append", default=[], metavar="SRC:DST")
    enter.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    enter.add_argument("--offline", action="store_true", help="no way to packages")
    enter.add_argument("--init", action="store_true", help="the command is process 1 itself")
    enter.add_argument("command", nargs="+")
    return parser.parse_args()


def main():
    args = parse()
    if args.verb == "run":
        sys.exit(run(args))
    Root.make(args.suite, args.folder)


if __name__ == "__main__":
    commands.main("bare_root", main)
