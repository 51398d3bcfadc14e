# SPDX-License-Identifier: Apache-2.0
"""The systemd units are read by systemd itself, and keep their promises."""

import configparser
import re
import socket
import subprocess

import pytest

from client import ADMIN
from ports import free_port
from world import BUILD, ROOT, World

pytestmark = pytest.mark.gate

UNITS = [BUILD / "packaging" / f"aliquot-{name}.service" for name in ("agent", "manager")]
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


@pytest.mark.parametrize("name", ["backup", "manager"])
def test_the_manager_is_confined(name):
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20",
                           BUILD / "packaging" / f"aliquot-{name}.service"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:]


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
