# SPDX-License-Identifier: Apache-2.0
"""Installed on a machine with systemd: services, upgrade and removal."""

import json
import re

import pytest

from machine import wait_for

INIT = """
aliquot-manager init --json > /root/admin.json
systemctl start aliquot-manager
"""
# The first packages had the manager run at once, 'init' as root made a database that it could not
# open, and their agent could run no containers.
INIT_OLDER = """
mkdir /etc/systemd/system/aliquot-agent.service.d
printf '[Service]\\nProtectKernelLogs=no\\nProtectHostname=no\\n' \
    > /etc/systemd/system/aliquot-agent.service.d/older.conf
systemctl daemon-reload
systemctl stop aliquot-manager
setpriv --reuid aliquot --regid aliquot --clear-groups \
    aliquot-manager init --state /var/lib/aliquot/manager --json > /root/admin.json
systemctl start aliquot-manager
"""
# What the sessions of these tests need; an agent does not offer them by itself.
JOIN = """
mkdir /run/systemd/system/aliquot-agent.service.d
printf '[Service]\\nEnvironment=ALIQUOT_PROCESS_USER=root "ALIQUOT_IMAGE_ALLOW=* host"\\n' \
    > /run/systemd/system/aliquot-agent.service.d/offers.conf
systemctl daemon-reload
aliquot-agent join 127.0.0.1:8082 "$(aliquot agent token -o name)"
systemctl start aliquot-agent
"""
STATE = "set +e; exec 2> /dev/null; ps -e -o comm= | grep -E '^(aliquot|crun|runc|sleep)';" \
        " mount | grep aliquot; find /sys/fs/cgroup -type d -name '*aliquot*';" \
        " ip -o link | grep 'aq[0-9a-f]*-'; nft list tables | grep aliquot; find /run/aliquot; true"
FILES = "find / -xdev -name '*aliquot*' -not -path '/root/*' -not -path '/var/lib/apt/*'" \
        " -not -path '/var/log/*' -not -path '/tmp/*'"


@pytest.fixture
def booted(machine):
    machine.boot()
    machine.install("--no-install-recommends procps")
    machine.before = machine.sh(FILES), machine.sh(STATE)
    return machine


def with_keys(machine, text):
    """Lines of shell as the administrator whom 'init' has made."""
    admin = json.loads((machine.root.folder / "root/admin.json").read_text())
    return machine.sh(f"export ALIQUOT_ENDPOINT=http://127.0.0.1:8081"
                      f" ALIQUOT_ACCESS_KEY={admin['access_key']}"
                      f" ALIQUOT_SECRET_KEY={admin['secret_key']}\n{text}")


def start_cluster(machine, init):
    machine.sh(init)
    with_keys(machine, JOIN)


def show(machine, unit, name):
    return machine.sh(f"systemctl show -p {name} --value {unit}").strip()


def status(machine, session):
    return json.loads(with_keys(machine, f"aliquot session info {session} -o json"))["status"]


def pids(machine, mark):
    """Of the programs of sessions, which are started with a number of seconds to sleep."""
    return machine.try_sh(f"pgrep -f '^sleep {mark}$'").stdout.split()


def wait_running(machine, name):
    said = wait_for(lambda: (said := status(machine, name)) in ("RUNNING", "ERROR", "TERMINATED")
                    and said, 60, f"{name} to run")
    assert said == "RUNNING", with_keys(machine, f"aliquot session why {name}")


def start_sessions(machine):
    for name, image, mark in (("plain", "process", 11111), ("boxed", "host", 22222)):
        with_keys(machine, f"aliquot session create --name {name} --image {image} -r cpu=1"
                  f" -r mem=64m -- sleep {mark}")
        wait_running(machine, name)
    return wait_for(lambda: pids(machine, 11111) and pids(machine, 22222) and
                    (pids(machine, 11111), pids(machine, 22222)), 30, "both programs")


def test_services(booted, debs):
    """Commands that users of Backend.AI type."""
    booted.put(debs, "/root/debs")
    booted.install("/root/debs/*.deb")
    assert show(booted, "aliquot-manager", "ActiveState") == "inactive"
    start_cluster(booted, INIT)
    assert booted.sh("stat -c '%U %a' /var/lib/aliquot/manager /var/lib/aliquot/agent"
                     ).splitlines() == ["aliquot 700", "root 700"]
    assert booted.sh("stat -c %U /var/lib/aliquot/manager/aliquot.db") == "aliquot\n"
    for unit in ("aliquot-manager", "aliquot-agent"):
        for verb in ("status", "start", "stop", "restart", "status"):
            said = booted.try_sh(f"systemctl {verb} {unit}")
            assert said.returncode == 0, said.stdout
        assert "active (running)" in said.stdout
        assert show(booted, unit, "UnitFileState") == "enabled"
        log = booted.sh(f"journalctl --output cat -u {unit}")
        assert re.search("serving http|connected to the manager", log), log
    for image in ("process", "host"):
        said = with_keys(booted, f"aliquot run --image {image} -r cpu=1 -r mem=64m -- echo hello")
        assert "hello" in said
    # a manager that hangs is replaced
    booted.sh("mkdir /run/systemd/system/aliquot-manager.service.d\n"
              "printf '[Service]\\nWatchdogSec=1s\\n'"
              " > /run/systemd/system/aliquot-manager.service.d/quick.conf\n"
              "systemctl daemon-reload; systemctl restart aliquot-manager")
    hung = show(booted, "aliquot-manager", "MainPID")
    booted.sh(f"kill -STOP {hung}")
    wait_for(lambda: show(booted, "aliquot-manager", "MainPID") not in ("0", hung)
             and show(booted, "aliquot-manager", "ActiveState") == "active", 60,
             "the watchdog to replace the manager")


def test_nightly_backup(booted, debs):
    booted.put(debs, "/root/debs")
    booted.install("/root/debs/*.deb")
    assert show(booted, "aliquot-backup.timer", "ActiveState") == "active"
    assert show(booted, "aliquot-backup.timer", "UnitFileState") == "enabled"
    booted.sh("systemctl start aliquot-backup")  # without a passphrase there is nothing to do
    assert booted.sh("stat -c '%U %a' /var/backups/aliquot; ls /var/backups/aliquot"
                     ) == "aliquot 700\n"
    booted.sh(INIT)
    booted.sh("umask 077; echo 'correct horse' > /etc/aliquot/backup-passphrase")
    booted.sh("mkdir /run/systemd/system/aliquot-backup.service.d\n"
              "printf '[Service]\\nEnvironment=KEEP=1\\n'"
              " > /run/systemd/system/aliquot-backup.service.d/keep.conf\n"
              "systemctl daemon-reload; systemctl start aliquot-backup")
    first, = booted.sh("ls /var/backups/aliquot").split()
    booted.sh("sleep 1; systemctl start aliquot-backup")
    made, = booted.sh("ls /var/backups/aliquot").split()
    assert made != first  # their names have the second
    file = f"/var/backups/aliquot/{made}"
    assert booted.sh(f"stat -c '%U %a' {file}") == "aliquot 600\n"
    verify = f"aliquot-manager backup verify {file} --passphrase-file -"
    verified = booted.sh(f"{verify} < /etc/aliquot/backup-passphrase")
    assert "the ledger is clean" in verified, verified
    refused = booted.try_sh(f"echo wrong | {verify}")
    assert refused.returncode == 1 and "the passphrase is wrong" in refused.stdout, refused
    booted.sh("apt-get -qy purge '*aliquot*'")
    kept = booted.sh("ls /etc/aliquot /var/backups/aliquot").split()
    assert made in kept and "backup-passphrase" in kept, kept


def test_upgrade_and_removal(booted, older_debs, debs):
    booted.put(older_debs, "/root/older")
    booted.put(debs, "/root/debs")
    booted.install("/root/older/*.deb")
    start_cluster(booted, INIT_OLDER)
    programs = start_sessions(booted)

    managers = show(booted, "aliquot-manager", "MainPID"), show(booted, "aliquot-agent", "MainPID")
    booted.install("/root/debs/*.deb")
    now = show(booted, "aliquot-manager", "MainPID"), show(booted, "aliquot-agent", "MainPID")
    assert "0" not in now and managers[0] != now[0] and managers[1] != now[1]
    wait_for(lambda: "yes" in with_keys(booted, "aliquot agent ls --columns connected"), 60,
             "the agent to be back")
    assert [status(booted, name) for name in ("plain", "boxed")] == ["RUNNING", "RUNNING"]
    assert (pids(booted, 11111), pids(booted, 22222)) == programs
    assert "42" in with_keys(booted, "aliquot exec boxed sh -c 'echo $((6 * 7))'")

    versions = booted.sh("dpkg-query -W 'aliquot*' libaliquot-dev")
    refused = booted.try_sh("dpkg -i /root/older/aliquot*.deb")
    assert refused.returncode and "is older than" in refused.stdout, refused.stdout
    assert booted.sh("dpkg-query -W 'aliquot*' libaliquot-dev") == versions
    assert (pids(booted, 11111), pids(booted, 22222)) == programs

    booted.sh("apt-get -qy remove '*aliquot*'")
    assert booted.sh(STATE) == booted.before[1]
    booted.sh("rm -r /etc/systemd/system/aliquot-agent.service.d")
    assert booted.sh("ls /var/lib/aliquot/manager/aliquot.db /etc/aliquot/agent.toml")
    booted.sh("apt-get -qy purge '*aliquot*'")
    assert booted.sh(FILES) == booted.before[0]
