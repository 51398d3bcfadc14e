# SPDX-License-Identifier: Apache-2.0
"""The GraphQL engine answers as graphql-js does: data, errors, paths, places."""

import json
import os
import subprocess

import graphql_js
from world import BUILD


def test_same_answers_as_graphql_js():
    graphql_js.install()
    seed = int(os.environ.get("ALIQUOT_TEST_SEED", int.from_bytes(os.urandom(3), "big")))
    count = os.environ.get("ALIQUOT_GRAPHQL_DOCUMENTS", "20000")
    print("seed", seed)
    done = subprocess.run(["node", "compare.mjs", BUILD / "tests" / "compat" / "graphql-peer",
                           "schema.graphql", "--random", count, "--seed", str(seed)],
                          cwd=graphql_js.HERE, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    figures = json.loads(lines[-1]) if lines else {}
    print(figures)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"
    assert figures["compared"] >= int(count) and figures["failed"] == 0
    assert min(figures["accepted"], figures["refused"], figures["partial"]) > int(count) // 20
