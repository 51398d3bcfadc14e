# SPDX-License-Identifier: Apache-2.0
"""Who may call what: the program's own tables against the reviewed ones of this folder.

A new route or field changes a line of a reviewed file, which somebody reads.
"""

import pathlib

from cluster import Cluster

HERE = pathlib.Path(__file__).parent


def test_every_route_asks_for_the_role_that_was_reviewed():
    with Cluster() as cluster:
        cluster.start_manager()
        routes = cluster.client(None).get("/aliquot/v1/routes").json["routes"]
        cluster.stop()
    there = [f"{route['access']:<10} {route['method']:<6} {route['path']}" for route in routes]
    reviewed = (HERE / "routes.txt").read_text().splitlines()
    assert there == [line for line in reviewed if not line.startswith("#")]
