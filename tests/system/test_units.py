# SPDX-License-Identifier: Apache-2.0
"""The systemd units are read by systemd itself, and keep their promises."""

import configparser
import re
import socket
import subprocess
import sys

import pytest

from client import ADMIN
from cluster import Cluster, wait_for
from ports import free_port
from world import BUILD, ROOT, World

pytestmark = pytest.mark.gate

UNITS = [BUILD / "packaging" / f"aliquot-{name}.service" 
         for name in ("agent", "manager", "proxy", "storage", "web")]
BACKUP = BUILD / "packaging" / "aliquot-backup.service"
TIMER = ROOT / "packaging" / "systemd" / "aliquot-backup.timer"


@pytest.mark.parametrize("unit", [*UNITS, BACKUP, TIMER], ids=lambda unit: unit.name)
def test_verify(unit, tmp_path):
    """With a program that exists here: the units name the installed one."""
    (tmp_path / BACKUP.name).write_text("[Service]\nExecStart=/bin/true\n")  # the timer's
    copy = tmp_path / unit.name
    copy.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.M))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True,
                          text=True)
    assert done.returncode == 0 and done.stdout + done.stderr == ""


def service(name):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string((BUILD / "packaging" / name).read_text())
    return parser["Service"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_notifies(unit):
    assert service(unit.name)["Type"] == "notify" and service(unit.name)["WatchdogSec"]


def test_sessions_outlive_the_agent():
    assert service("aliquot-agent.service")["KillMode"] == "process"
    assert service("aliquot-agent.service")["Delegate"] == "yes"


# tenths of an exposure level; the agent makes containers as root
EXPOSURES = {"agent": 94, "backup": 20, "manager": 20, "proxy": 20, "storage": 20, "web": 20}


def exposure(name, limit):
    """Whether systemd-analyze finds a unit within the limit, and what it prints."""
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", f"--threshold={limit}",
                           BUILD / "packaging" / f"aliquot-{name}.service"],
                          capture_output=True, text=True)
    return done.returncode == 0, done.stdout[-300:] + done.stderr


@pytest.mark.parametrize("name", EXPOSURES)
def test_units_are_confined(name):
    is_within, said = exposure(name, EXPOSURES[name])
    assert is_within and "Overall exposure level" in said, said
    assert not exposure(name, 5)[0], "the limit has no effect"


def test_daemons_have_users_of_their_own():
    """None reads the state of another, but for the backup of the manager's."""
    users, folders = {}, {}
    for name in ("manager", "proxy", "storage", "web"):
        unit = service(f"aliquot-{name}.service")
        assert unit["User"] == unit["Group"] and unit["StateDirectoryMode"] == "0700"
        users[name], folders[name] = unit["User"], unit["StateDirectory"]
        declared = (ROOT / "packaging" / "systemd" / f"aliquot-{name}.sysusers").read_text()
        assert f"\nu {unit['User']} " in declared
    assert len(set(users.values())) == len(set(folders.values())) == 4 and "root" not in users
    assert service("aliquot-backup.service")["User"] == users["manager"]


def test_the_manager_lists_its_addresses_within_its_unit():
    """Without AF_NETLINK it would refuse every callback: any address may be its own."""
    with Cluster() as cluster:
        cluster.start_program(
            "manager", sys.executable, "-B", ROOT / "tests" / "lib" / "families.py",
            service("aliquot-manager.service")["RestrictAddressFamilies"],
            BUILD / "aliquot-manager", "--dev", "--state", cluster.folder / "manager",
            "--listen", "%s:%d" % cluster.address, "--link", cluster.link)
        wait_for(cluster.is_serving, 60, "the manager")
        reply = cluster.client().post("/notifications/channels", {
            "name": "public", "channel_type": "webhook", "spec": {"url": "http://203.0.114.1/"}})
        assert reply.status == 201, reply  # nothing is sent there
        cluster.stop()


def check_notifies(world, *command):
    """It tells its service manager that it is ready, and that it lives; in any order."""
    said = []
    path = world.folder / "notify"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(path))
        notify.settimeout(60)
        subprocess.Popen(command, env={**world.env, "NOTIFY_SOCKET": str(path),
                                       "WATCHDOG_USEC": "200000"}, stderr=subprocess.DEVNULL)
        while b"READY=1" not in said or said.count(b"WATCHDOG=1") < 2:
            assert len(said) < 1000
            said.append(notify.recv(256))


def test_watchdog_is_fed():
    """What WatchdogSec= of the units asks for comes from both daemons."""
    api, link = (f"127.0.0.1:{free_port()}" for _ in range(2))
    with World(ALIQUOT_ENDPOINT=f"http://{api}", ALIQUOT_RUNTIME_DRIVER="process",
               ALIQUOT_PROCESS_USER="root",
               ALIQUOT_NETWORK_ENABLED="false", ALIQUOT_ACCESS_KEY=ADMIN[0],
               ALIQUOT_SECRET_KEY=ADMIN[1]) as world:
        check_notifies(world, BUILD / "aliquot-manager", "--dev", "--state",
                       world.folder / "manager", "--listen", api, "--link", link)
        state = world.folder / "agent"
        token = world.run("aliquot", "agent", "token", "-o", "name").stdout.strip()
        joined = world.run("aliquot-agent", "join", "--state", state, link, token)
        assert joined.returncode == 0, joined.stderr
        check_notifies(world, BUILD / "aliquot-agent", "--state", state)
