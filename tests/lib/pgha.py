# SPDX-License-Identifier: Apache-2.0
"""Highly available PostgreSQL, as sites have it: a primary with a standby that may take its place,
a pooler before them, Patroni that decides by itself. All of it unprivileged, in folders that go
with the test."""

import contextlib
import json
import os
import shutil
import signal
import subprocess

from cluster import wait_for
from ports import free_port
from postgres import SETTINGS, USER, Server, program, unprivileged
from switch import NETWORK


def uri_of(hosts, database):
    """Of whichever of the hosts' servers takes writes."""
    addresses = ",".join(f"{host.address}:5432" for host in hosts)
    return (f"postgresql://aliquot@{addresses}/{database}?target_session_attrs=read-write"
            "&connect_timeout=2")


class Pair:
    """A primary and a standby on a switch. A synchronous standby has all that was acknowledged;
    an asynchronous one may lack the last commits. 'prepare' is called with each server and its host
    before it is started."""

    def __init__(self, switch, is_synchronous=True, prepare=None):
        self.hosts = [switch.add(mounts=True), switch.add(mounts=True)]
        self.primary, self.standby = (
            Server(within=host.words(), address=host.address, network=NETWORK)
            for host in self.hosts)
        if prepare:
            prepare(self.primary, self.hosts[0])
            prepare(self.standby, self.hosts[1])
        self.primary.start()
        self.standby.clone(self.primary)
        self.standby.start()
        self.wait_streaming()
        if is_synchronous:
            self.primary.run("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.primary.run("SELECT pg_reload_conf()")
            wait_for(lambda: self.state() == ["sync"], 30, "the standby to be synchronous")

    def state(self):
        """Of the standbys that stream: "async", "sync"."""
        return self.primary.run("SELECT sync_state FROM pg_stat_replication "
                                "WHERE state = 'streaming'")

    def wait_streaming(self):
        wait_for(self.state, 30, "the standby to stream")

    def hold_back(self):
        """The standby gets nothing from here on, and the primary does not wait for it."""
        self.standby.stop()

    def fail_over(self):
        """The primary dies, and the standby takes its place."""
        self.primary.stop(signal.SIGKILL)
        if not self.standby.process:
            self.standby.start()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def uri(self, database):
        return uri_of(self.hosts, database)

    def close(self):
        self.primary.__exit__()
        self.standby.__exit__()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextlib.contextmanager
def pooler(server, mode, host=None):
    """pgbouncer before the server, on a host of a switch or at a Unix socket alone; its URI for
    the database "cluster"."""
    port = 6432 if host else free_port()
    conf = server.folder / f"pgbouncer-{mode}.ini"
    conf.write_text(f"""[databases]
cluster = host={server.address if host else server.folder} user=aliquot
[pgbouncer]
listen_addr = {host.address if host else ""}
listen_port = {port}
unix_socket_dir = {server.folder}
auth_type = any
pool_mode = {mode}
ignore_startup_parameters = extra_float_digits
""")
    process = subprocess.Popen([*(host.words() if host else []),
                                *unprivileged("/usr/sbin/pgbouncer", "-q", conf)],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for((server.folder / f".s.PGSQL.{port}").exists, 10, "pgbouncer")
    try:
        yield (f"postgresql://aliquot@{host.address}:{port}/cluster" if host else
               f"postgresql:///cluster?host={server.folder}&port={port}&user=aliquot")
    finally:
        process.kill()
        process.wait()


class Patroni:
    """Two servers that Patroni runs on a switch, with an etcd that decides which of them is the
    primary. It needs some twenty seconds to notice that one is gone."""

    TTL_S = 20

    def __init__(self, switch):
        self.keeper = Server(within=())  # its folder, reaper and owner, for all of them
        self.folder = self.keeper.folder
        self.etcd_host, self.hosts = switch.add(), [switch.add(), switch.add()]
        self.etcd = self.spawn(
            self.etcd_host, "etcd", "/usr/bin/etcd", "--data-dir", self.folder / "etcd",
            "--listen-client-urls", f"http://{self.etcd_host.address}:2379",
            "--advertise-client-urls", f"http://{self.etcd_host.address}:2379",
            "--listen-peer-urls", "http://127.0.0.1:2380", "--unsafe-no-fsync")
        self.processes = [self.start(number) for number in range(2)]
        wait_for(lambda: self.primary() is not None, 120, self.log)
        wait_for(lambda: len([m for m in self.members() if m["State"] in ("running", "streaming")])
                 == 2, 120, self.log)

    def spawn(self, host, name, *words):
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen([*host.words(), *unprivileged(*words)], stdin=subprocess.DEVNULL,
                                    stdout=log, stderr=log, start_new_session=True)

    def log(self):
        return "\n".join(path.read_text()[-1500:] for path in self.folder.glob("*.log"))

    def start(self, number):
        host, name = self.hosts[number], f"db{number + 1}"
        home = self.folder / name
        if not home.exists():
            home.mkdir()
            shutil.chown(home, USER)
        conf = self.folder / f"{name}.yml"
        conf.write_text(json.dumps({
            "scope": "lab", "name": name,
            "restapi": {"listen": f"{host.address}:8008", "connect_address": f"{host.address}:8008"},
            "etcd3": {"hosts": [f"{self.etcd_host.address}:2379"]},
            "bootstrap": {
                "dcs": {"ttl": self.TTL_S, "loop_wait": 1, "retry_timeout": 5,
                        "synchronous_mode": True,
                        "postgresql": {"use_pg_rewind": False, "parameters": {
                            name: value for name, value in SETTINGS.items()
                            if name != "listen_addresses"}}},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, "no-sync",
                           {"auth": "trust"}],
                "pg_hba": ["local all all trust", f"host all all {NETWORK} trust",
                           f"host replication all {NETWORK} trust"]},
            "postgresql": {
                "listen": f"{host.address}:5432", "connect_address": f"{host.address}:5432",
                "data_dir": str(home / "data"), "bin_dir": str(program("postgres").parent),
                "pgpass": str(home / "pgpass"),
                "parameters": {"unix_socket_directories": str(home)},
                "authentication": {"superuser": {"username": "aliquot"},
                                   "replication": {"username": "replicator", "password": "lab"}}}}))
        return self.spawn(host, name, "/usr/bin/patroni", conf)

    def control(self, *words):
        return subprocess.run([*self.hosts[0].words(),
                               *unprivileged("/usr/bin/patronictl", "-c", self.folder / "db1.yml",
                                             *words)],
                              capture_output=True, text=True, check=False)

    def members(self):
        done = self.control("list", "-f", "json")
        return json.loads(done.stdout) if done.returncode == 0 and done.stdout else []

    def primary(self):
        """Its number, None while there is none."""
        return next((int(member["Member"].removeprefix("db")) - 1 for member in self.members()
                     if member["Role"] == "Leader" and member["State"] == "running"), None)

    def switch_over(self):
        """In good order, as before maintenance."""
        former = self.primary()
        done = self.control("switchover", "--force", "lab")
        assert done.returncode == 0, done.stdout + done.stderr
        wait_for(lambda: self.primary() == 1 - former, 60, self.log)

    def kill_primary(self):
        """Patroni and its server at once."""
        former = self.primary()
        server = Server.processes_in(self.folder / f"db{former + 1}" / "data")
        self.processes[former].kill()
        for pid in server:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.processes[former].wait()
        wait_for(lambda: self.primary() == 1 - former, 120, self.log)

    def uri(self, database):
        return uri_of(self.hosts, database)

    def run(self, script, database="postgres"):
        done = subprocess.run([*self.hosts[0].words(), "psql", "-XqAt", "-d", self.uri(database),
                               "-c", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.split("\n")[:-1]

    def close(self):
        for process in (*self.processes, self.etcd):
            process.kill()
            process.wait()
        for name in ("db1", "db2"):
            for pid in Server.processes_in(self.folder / name / "data"):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.keeper.__exit__()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
