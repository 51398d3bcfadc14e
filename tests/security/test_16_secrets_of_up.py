# SPDX-License-Identifier: Apache-2.0
"""What `aliquot up` signs its own requests with is in no environment but its own."""

import pathlib
import signal
import subprocess

import pytest

from cluster import wait_for
from ports import free_port
from world import BUILD, World, processes_of

SECRETS = (b"ALIQUOT_SECRET_KEY=", b"BACKEND_SECRET_KEY=", b"ALIQUOT_ACCESS_KEY=")


@pytest.mark.parametrize("options", [["--dev"], []])
def test_daemons_do_not_have_the_administrators_key(options):
    with World(ALIQUOT_NETWORK_ENABLED="false", BACKEND_SECRET_KEY="of the one who typed it") as world:
        log = world.folder / "log"
        with log.open("wb") as out:
            up = subprocess.Popen([BUILD / "aliquot-up", *options, "--state", world.folder / "state",
                                   "--port", str(free_port()), "--link-port", str(free_port())],
                                  env=world.env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
        try:
            wait_for(lambda: "is ready" in log.read_text() or up.poll() is not None, 60, log.read_text)
            daemons = [pid for pid, command in processes_of(world.folder).items()
                       if pid != up.pid and "aliquot-" in command]
            assert up.poll() is None and len(daemons) >= 2, log.read_text()
            for pid in daemons:
                environ = pathlib.Path(f"/proc/{pid}/environ").read_bytes()
                assert not [name for name in SECRETS if name in environ], pid
            assert ("development only" in log.read_text()) == bool(options)
        finally:
            up.send_signal(signal.SIGINT)
            assert up.wait(60) == 0, log.read_text()
