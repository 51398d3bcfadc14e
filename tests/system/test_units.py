"""The systemd units are read by systemd itself, and keep their promises."""

import configparser
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
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
