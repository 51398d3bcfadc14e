# SPDX-License-Identifier: Apache-2.0
"""The image "host" shows the node's programs, and nothing that not everybody on it may read."""

import os
import pathlib

import pytest

from cluster import Cluster
from runtimes import run, settings_of

pytestmark = pytest.mark.gate


@pytest.fixture(params=("crun", "runc"), scope="module")
def cluster(request):
    with Cluster(**settings_of(request.param)) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        yield cluster
        cluster.check_nothing_left()
        cluster.stop()


@pytest.fixture
def private():
    """Files of the node's user 1000 and of root, in a folder that containers see, for them alone."""
    folder = pathlib.Path("/opt") / f"aliquot-test-{os.getpid()}"
    folder.mkdir()
    try:
        for name, owner in (("users", 1000), ("roots", 0)):
            (folder / name).write_text("secret\n")
            (folder / name).chmod(0o600)
            os.chown(folder / name, owner, owner)
        (folder / "everybodys").write_text("open\n")
        yield folder
    finally:
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def test_only_what_everybody_may_read_is_read(cluster, private):
    shown, log = run(cluster, f"cd {private}; id -u; cat everybodys users roots; ls -ln users")
    assert log.splitlines()[:2] == ["1000", "open"] and "secret" not in log, shown
    assert " 65534 65534 " in log.splitlines()[-1], log  # the node's user 1000 is nobody inside


def test_homes_and_temporary_files_of_the_node_are_hidden(cluster):
    shown, log = run(cluster, "ls /home /root /srv /mnt /media /tmp /var/tmp")
    there = {line for line in log.splitlines() if line and not line.endswith(":")}
    assert there == {"config", "work"}, (shown, log)


def test_it_is_not_admitted_unless_listed():
    with Cluster(**settings_of("crun")) as cluster:
        del cluster.env["ALIQUOT_IMAGE_ALLOW"]
        cluster.start_manager()
        cluster.start_agent()
        shown, _ = run(cluster, "true")
        assert shown["status"] == "ERROR" and "allow" in str(shown), shown
        cluster.check_nothing_left()
        cluster.stop()


@pytest.mark.parametrize("setting", ("UID", "GID"))
def test_nobody_is_root_or_of_its_group_inside(setting):
    with Cluster(**settings_of("crun"), **{f"ALIQUOT_CONTAINER_{setting}": "0"}) as cluster:
        cluster.start_manager()
        cluster.start_agent()
        shown, log = run(cluster, "cat /etc/gshadow-; id")
        assert shown["status"] == "ERROR" and "not to root" in str(shown), (shown, log)
        cluster.check_nothing_left()
        cluster.stop()
