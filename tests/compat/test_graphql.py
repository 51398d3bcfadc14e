"""The GraphQL engine answers as graphql-js does: data, errors, paths, places."""

import json
import os
import pathlib
import subprocess

import pytest

HERE = pathlib.Path(__file__).resolve().parent / "graphql"
BUILD = pathlib.Path(os.environ["ALIQUOT_BUILD"])


@pytest.fixture(scope="module")
def node_modules():
    subprocess.run(["npm", "ci", "--silent"], cwd=HERE, check=True, capture_output=True)


def test_same_answers_as_graphql_js(node_modules):
    seed = int(os.environ.get("ALIQUOT_TEST_SEED", int.from_bytes(os.urandom(3), "big")))
    count = os.environ.get("ALIQUOT_GRAPHQL_DOCUMENTS", "20000")
    print("seed", seed)
    done = subprocess.run(["node", "compare.mjs", BUILD / "tests" / "compat" / "graphql-peer",
                           "schema.graphql", "--random", count, "--seed", str(seed)],
                          cwd=HERE, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    figures = json.loads(lines[-1]) if lines else {}
    print(figures)
    assert done.returncode == 0, f"seed {seed}\n{done.stdout[-6000:]}{done.stderr[-3000:]}"
    assert figures["compared"] >= int(count) and figures["failed"] == 0
    assert min(figures["accepted"], figures["refused"], figures["partial"]) > int(count) // 20
