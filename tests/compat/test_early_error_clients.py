# SPDX-License-Identifier: Apache-2.0
"""Real HTTP clients: an error that is known before their body has come, then the next request."""

import pathlib
import shutil
import subprocess
import sys

import pytest

from cluster import Cluster

HERE = pathlib.Path(__file__).parent / "early_error"
SIZES = (0, 1, 1000, 65536, 65537, 1 << 20, 10 << 20)
EXPECTED = "".join(f"{size} 404\n{size} 200\n" * 3 for size in SIZES)


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        made.start_manager()
        yield made
        made.stop()


def check(cluster, *command):
    done = subprocess.run([*command, "http://%s:%d" % cluster.address, *map(str, SIZES)],
                          capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, EXPECTED), done.stderr[-3000:]


def python_with(folder, *packages):
    """An interpreter that has these packages, from the registry that pip is set up for."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    done = subprocess.run([folder / "bin" / "pip", "-q", "install", "--only-binary", ":all:",
                           *packages], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"no {' '.join(packages)}: {done.stderr[-300:]}")
    return folder / "bin" / "python"


# Not 3.9: it gives up when a server has said its last word before a large body is through.
@pytest.mark.parametrize("package", ("aiohttp==3.8.6", "aiohttp==3.12.15", "aiohttp"))
def test_aiohttp(cluster, tmp_path, package):
    check(cluster, python_with(tmp_path / "python", package), HERE / "aiohttp_client.py")


def test_requests(cluster, tmp_path):
    check(cluster, python_with(tmp_path / "python", "requests"), HERE / "requests_client.py")


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_node(cluster):
    check(cluster, "node", HERE / "client.mjs")


@pytest.mark.skipif(not shutil.which("curl"), reason="no curl")
@pytest.mark.parametrize("how", ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect:"],
                                 ["-H", "Expect: 100-continue"]),
                         ids=("plain", "chunked", "not-asking", "asking"))
def test_curl(cluster, tmp_path, how):
    base, body = "http://%s:%d" % cluster.address, tmp_path / "body"
    for size in SIZES:
        body.write_bytes(bytes(size))
        done = subprocess.run(["curl", "-sS", "-w", " %{http_code}\n", "--data-binary",
                               f"@{body}", *how, base + "/no/such/path", "--next", "-sS", "-w",
                               " %{http_code}\n", base + "/"],
                              capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, (size, done.stderr)
        assert [line.rpartition(" ")[2] for line in done.stdout.splitlines()] == ["404", "200"], \
            (size, done.stdout)
