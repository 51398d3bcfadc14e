# SPDX-License-Identifier: Apache-2.0
"""PostgreSQL servers of a test's own, unprivileged, in folders of their own.

Run as a program with a command, it starts one, names it to the command in
ALIQUOT_TEST_POSTGRES (a URI with %s for the database's name) and ends it.
"""

import contextlib
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import world

USER = "postgres"  # Debian's package makes it; without root: ours
SETTINGS = {"listen_addresses": "", "max_connections": 100, "shared_buffers": "32MB",
            "log_min_messages": "fatal"}


def program(name):
    """One of the server's programs, of the newest version that is installed."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob(f"*/bin/{name}"),
                   key=lambda path: int(path.parts[-3]))
    assert found, "PostgreSQL is not installed: tools/install-packages postgres"
    return found[-1]


def unprivileged(*words):
    """The command as somebody whom the server accepts, who ends when we do."""
    prefix = ["setpriv", "--pdeathsig", "KILL"]
    if os.geteuid() == 0:
        who = pwd.getpwnam(USER)
        prefix += [f"--reuid={who.pw_uid}", f"--regid={who.pw_gid}", "--clear-groups"]
    return [*prefix, "env", "LC_ALL=C.UTF-8", *map(str, words)]


class Server:
    """Started by start(), or by 'with'. It goes, and its folder, when the test was killed, too.

    'init' are further words for initdb, 'settings' more of the server's, 'within' what stands
    before each command, to run it in a namespace. With an 'address' it listens there, too, and
    lets all of 'network' in, who work and who stream."""

    def __init__(self, init=(), settings=None, within=(), address="", network=""):
        self.init_words, self.within = init, within
        self.clock = None  # a WallClock of the server's own
        self.address, self.network = address, network
        settings = {"listen_addresses": address, **(settings or {})}
        self.settings = {**SETTINGS, **(settings or {})}
        self.port = self.settings.get("port", 5432)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="aliquot-postgres-"))
        self.reaper = subprocess.Popen([sys.executable, world.__file__], stdin=subprocess.PIPE,
                                       text=True, start_new_session=True)
        print(self.folder, file=self.reaper.stdin, flush=True)
        self.process = None
        self.folder.chmod(0o755)
        if os.geteuid() == 0:
            shutil.chown(self.folder, USER)

    @property
    def data(self):
        return self.folder / "data"

    def uri(self, database="%s"):
        return f"postgresql:///{database}?host={self.folder}&port={self.port}&user=aliquot"

    def init(self):
        subprocess.run([*self.within,
                        *unprivileged(program("initdb"), "-D", self.data, "-U", "aliquot",
                                      "--auth=trust", "-E", "UTF8", "--locale=C.UTF-8", "-N",
                                      *self.init_words)],
                       check=True, stdout=subprocess.DEVNULL)
        if self.network:
            with (self.data / "pg_hba.conf").open("a") as rules:
                for database in ("all", "replication"):
                    rules.write(f"host {database} all {self.network} trust\n")

    def start(self):
        if not self.data.exists():
            self.init()
        options = [word for name, value in self.settings.items()
                   for word in ("-c", f"{name}={value}")]
        words = [program("postgres"), "-D", self.data, "-k", self.folder, *options]
        if self.clock:
            words = self.clock.words(*words)
        with (self.folder / "log").open("a") as log:
            self.process = subprocess.Popen(
                [*self.within, *unprivileged(*words)], stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True)
        self.await_ready()

    def await_ready(self, seconds=60):
        end = time.monotonic() + seconds
        while subprocess.run([program("pg_isready"), "-q", "-h", self.folder, "-p", str(self.port),
                               "-t", "5"],
                             check=False).returncode:
            assert self.process.poll() is None and time.monotonic() < end, \
                (self.folder / "log").read_text()[-2000:]
            time.sleep(0.05)

    def clone(self, source):
        """Take the data of a server that runs: this one streams from it once it is started."""
        where = f"host={source.address or source.folder} port={source.port} user=aliquot " \
                f"application_name={self.folder.name}"
        subprocess.run([*self.within,
                        *unprivileged(program("pg_basebackup"), "-d", where, "-D", self.data, "-R",
                                      "-X", "stream", "-c", "fast")], check=True)

    def promote(self):
        """A standby becomes a primary of its own."""
        subprocess.run(unprivileged(program("pg_ctl"), "promote", "-w", "-D", self.data),
                       check=True, stdout=subprocess.DEVNULL)

    def run(self, script, database="postgres"):
        """Rows of a script's last statement, as lines with '|' between columns."""
        done = subprocess.run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-d", self.uri(database)],
                              input=script, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]

    def stop(self, how=signal.SIGINT):
        """SIGINT: at once, in order. SIGKILL: the server and all its processes, which have
        sessions of their own and would go on to answer for a moment."""
        if not self.process:
            return
        if how == signal.SIGKILL:
            self.kill_all()
        self.process.send_signal(how)
        self.process.wait()
        self.process = None

    def processes(self):
        return self.processes_in(self.data)

    @staticmethod
    def processes_in(data):
        """All that work in the folder of the data, which are the server's."""
        found = []
        for proc in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if os.readlink(proc / "cwd") == str(data):
                    found.append(int(proc.name))
        return found

    def kill_all(self):
        """Until none is left: one that was just made still has the memory that they share, and
        the next server does not start beside it."""
        while left := self.processes():
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(0.01)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.stop()
        self.reaper.stdin.close()
        self.reaper.wait()


def main(command):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with Server() as server:
        env = {**os.environ, "ALIQUOT_TEST_POSTGRES": server.uri()}
        return subprocess.run(["setpriv", "--pdeathsig", "TERM", *command], env=env,
                              check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
