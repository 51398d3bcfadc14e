# SPDX-License-Identifier: Apache-2.0
"""aliquot-proxy is killed as it takes new routes of model services: what it has confirmed holds after
a restart without the manager."""

import contextlib
import subprocess
import sys

import pytest

from cluster import wait_for
from link_manager import Served, service_of, token_of
from world import ROOT

sys.path.insert(0, str(ROOT / "tests" / "system"))
from test_serving_proxy import OTHER, TOKEN, Handler, url  # noqa: E402

POINTS = subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                        check=True).stdout.split()
POINTS = [point for point in POINTS if point.startswith("serving.services.")]


def answers(served):
    with contextlib.suppress(OSError):
        return served.ask("GET", "/health")[0] in (200, 503)


@pytest.mark.parametrize("point", POINTS)
def test_a_revoked_token(point):
    with Served() as served:
        service = service_of("digits", served.replica(Handler()),
                             tokens=[token_of(TOKEN), token_of(OTHER)])
        served.manager.tell(service)
        assert served.ask("GET", url(service, "echo"), None, TOKEN)[0] == 200
        saved = served.state / "routes"
        wait_for(lambda: saved.exists() and service["id"] in saved.read_text(), 30, "the ticket")
        served.program.env["ALIQUOT_FAULT"] = f"{point}:2"
        served.restart()
        wait_for(served.is_up, 60, "the proxy")
        wait_for(lambda: served.manager.is_done(served.manager.version), 30, "the first routes")
        changed = {**service, "tokens": service["tokens"][1:]}
        version = served.manager.tell_routes(changed)
        served.program.process.wait(60)
        served.manager.stop()
        assert not served.manager.is_done(version)  # never said of what a restart would forget
        del served.program.env["ALIQUOT_FAULT"]
        served.program.start()
        wait_for(lambda: answers(served), 60, "the proxy")
        is_revoked = [t["id"] for t in served.file()["services"][0]["tokens"]] \
            == [changed["tokens"][0]["id"]]
        assert is_revoked == (point == "serving.services.written")
        assert served.ask("GET", url(service, "echo"), None, TOKEN)[0] == (401 if is_revoked else 200)
        assert served.ask("GET", url(service, "echo"), None, OTHER)[0] == 200
        served.manager.services = [changed]
        served.manager.start()
        wait_for(lambda: served.manager.is_done(version + 1), 60, "the routes to be confirmed")
        assert served.ask("GET", url(service, "echo"), None, TOKEN)[0] == 401
