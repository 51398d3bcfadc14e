"""The systemd units are read by systemd itself, and keep their promises."""

import configparser
import os
import pathlib
import re
import shutil
import socket
import subprocess

import pytest

from ports import free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ["ALIQUOT_BUILD"])
UNITS = sorted((ROOT / "packaging" / "systemd").glob("*.service"))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_verify(unit, tmp_path):
    """With a program that exists here: the units name the installed one."""
    copy = tmp_path / unit.name
    copy.write_text(re.sub(r"^ExecStart=\S+", "ExecStart=/bin/true", unit.read_text(), flags=re.M))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", copy], capture_output=True,
                          text=True)
    assert done.returncode == 0 and done.stdout + done.stderr == ""


def service(name):
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read(ROOT / "packaging" / "systemd" / name)
    return parser["Service"]


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_notifies(unit):
    assert service(unit.name)["Type"] == "notify" and service(unit.name)["WatchdogSec"]


def test_sessions_outlive_the_agent():
    assert service("aliquot-agent.service")["KillMode"] == "process"
    assert service("aliquot-agent.service")["Delegate"] == "yes"


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is not installed")
def test_the_manager_is_confined():
    done = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=20",
                           ROOT / "packaging" / "systemd" / "aliquot-manager.service"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-300:]


def heard(command, folder, env):
    """The first messages that a program sends to its service manager."""
    path = folder / "notify"
    path.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.bind(str(path))
        notify.settimeout(30)
        program = subprocess.Popen(
            command, env=dict(env, NOTIFY_SOCKET=str(path), WATCHDOG_USEC="200000"),
            stderr=subprocess.DEVNULL)
        return program, [notify.recv(256) for _ in range(4)]


def test_watchdog_is_fed(tmp_path):
    """What WatchdogSec= of the units asks for comes from both daemons."""
    api, link = (f"127.0.0.1:{free_port()}" for _ in range(2))
    state = tmp_path / "agent"
    env = dict(os.environ, ALIQUOT_ENDPOINT=f"http://{api}", HOME=str(tmp_path),
               ALIQUOT_RUNTIME_DRIVER="process",
               ALIQUOT_ACCESS_KEY="AKIAIOSFODNN7EXAMPLE",
               ALIQUOT_SECRET_KEY="wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")
    manager, said = heard([BUILD / "aliquot-manager", "--dev", "--state", tmp_path / "manager",
                           "--listen", api, "--link", link], tmp_path, env)
    try:
        assert b"READY=1" in said and said.count(b"WATCHDOG=1") >= 2
        token = subprocess.run([BUILD / "aliquot", "agent", "token", "-o", "name"], env=env,
                               capture_output=True, text=True, check=True).stdout.strip()
        subprocess.run([BUILD / "aliquot-agent", "join", "--state", state, link, token], env=env,
                       check=True, stderr=subprocess.DEVNULL)
        agent, said = heard([BUILD / "aliquot-agent", "--state", state], tmp_path, env)
        agent.kill()
        agent.wait()
        assert b"READY=1" in said and said.count(b"WATCHDOG=1") >= 2
    finally:
        manager.kill()
        manager.wait()
