# SPDX-License-Identifier: Apache-2.0
"""Queries of real clients and of the real web UI, as captured on the wire: the
GraphQL engine and graphql-js give the same reply over a fake data source, keys
in the same order.
"""

import json
import os
import pathlib
import subprocess

import pytest

import graphql_js
from world import BUILD, ROOT

CAPTURES = pathlib.Path(os.environ.get("ALIQUOT_CAPTURES", ROOT.parent / "shared" / "captures"))


@pytest.mark.skipif(not CAPTURES.is_dir(), reason="no captures of real clients")
def test_queries_of_real_clients():
    graphql_js.install()
    done = subprocess.run(["node", "clients.mjs", BUILD / "tests" / "compat" / "graphql-peer",
                           CAPTURES], cwd=graphql_js.HERE, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    figures = json.loads(lines[-1]) if lines else {}
    print(figures)
    assert done.returncode == 0, f"{done.stdout[-6000:]}{done.stderr[-3000:]}"
    assert figures["failed"] == 0 and figures["answered"] >= 70
