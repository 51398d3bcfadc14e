# SPDX-License-Identifier: Apache-2.0
"""A Debian machine on which packages are installed, with systemd as process 1 if wanted."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import time

from bare_root import PATH, Root

QUIET = {"DEBIAN_FRONTEND": "noninteractive"}


def wait_for(condition, seconds, what):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"waited {seconds} s for {what}"
        time.sleep(0.1)
    return value


class Machine:
    def __init__(self, folder):
        self.root = Root.make("bookworm", folder)
        self.runner = None
        self.pid = None  # of systemd, seen from here

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.shut_down()
        self.root.remove()

    # ---- commands ----

    def words(self, text):
        script = ["sh", "-ec", text]
        if self.pid is None:
            return self.root.words(script, env=QUIET)
        return ["nsenter", "-t", str(self.pid), "-m", "-u", "-i", "-n", "-p", "-C", "--",
                "env", "-i", f"PATH={PATH}", "HOME=/root", "DEBIAN_FRONTEND=noninteractive",
                *script]

    def try_sh(self, text, timeout=300):
        """A line of shell to its end; both streams are in its stdout."""
        return subprocess.run(self.words(text), stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)

    def sh(self, text, timeout=300):
        done = self.try_sh(text, timeout)
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{self.journal()}"
        return done.stdout

    def journal(self):
        if self.pid is None:
            return ""
        return self.try_sh("journalctl --no-pager -n 60 -u 'aliquot*'").stdout

    # ---- packages ----

    def put(self, debs, folder):
        """Copy packages to a folder of the machine; without those of debug symbols."""
        target = self.root.folder / folder.lstrip("/")
        target.mkdir(parents=True)
        for path in sorted(debs.glob("*.deb")):
            if "-dbgsym_" not in path.name:
                shutil.copy(path, target)

    def install(self, words):
        return self.sh(f"apt-get -qy install {words}")

    # ---- systemd ----

    def boot(self):
        self.sh("apt-get -q update")
        self.install("--no-install-recommends systemd-sysv")
        # it would set what belongs to the real machine; 'container' keeps systemd from that
        self.sh("systemctl mask -q systemd-sysctl.service")
        self.runner = self.root.popen(["/sbin/init"], init=True, stdin=subprocess.DEVNULL,
                                      env={"container": "aliquot-test"})
        self.pid = wait_for(self.find_systemd, 30, "systemd to start")
        wait_for(lambda: self.try_sh("systemctl is-system-running").stdout.strip() == "running",
                 60, "the machine to be up")

    def find_systemd(self):
        assert self.runner.poll() is None, "systemd does not start"
        with contextlib.suppress(OSError):
            children = pathlib.Path(f"/proc/{self.runner.pid}/task/{self.runner.pid}/children")
            for pid in children.read_text().split():
                if os.readlink(f"/proc/{pid}/exe").endswith("/systemd"):
                    return int(pid)
        return None

    def shut_down(self):
        """All processes of the machine end with its process 1."""
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            self.pid = None
        if self.runner:
            self.runner.wait()
            self.runner = None
