# SPDX-License-Identifier: Apache-2.0
"""Real HTTP clients: an error that is known before their body has come, then the next request."""

import os
import pathlib
import shutil
import subprocess

import pytest

import fetched

HERE = pathlib.Path(__file__).parent / "early_error"
SIZES = (0, 1, 1000, 65536, 65537, 1 << 20, 10 << 20)
GO = shutil.which("go", path=os.environ["PATH"] + ":/usr/local/go/bin")
EXPECTED = "".join(f"{size} 404\n{size} 200\n" * 3 for size in SIZES)


def check(cluster, *command, **env):
    done = subprocess.run([*command, "http://%s:%d" % cluster.address, *map(str, SIZES)],
                          env={**os.environ, **env}, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, EXPECTED), done.stderr[-3000:]


def check_python(cluster, package, script):
    """By an interpreter that has this package, from the registry that pip is set up for."""
    packages = fetched.python_packages("--only-binary=:all:", package)
    check(cluster, packages.parent / "venv/bin/python", HERE / script, PYTHONPATH=str(packages))


@pytest.mark.parametrize("package", ("aiohttp==3.8.6", "aiohttp==3.9.5", "aiohttp==3.12.15",
                                     "aiohttp"))
def test_aiohttp(cluster, package):
    check_python(cluster, package, "aiohttp_client.py")


def test_requests(cluster):
    check_python(cluster, "requests", "requests_client.py")


@pytest.mark.skipif(not shutil.which("node"), reason="no node")
def test_node(cluster):
    check(cluster, "node", HERE / "client.mjs")


@pytest.mark.skipif(not GO, reason="no go")
def test_go(cluster, tmp_path):
    subprocess.run([GO, "build", "-o", tmp_path / "client", HERE / "client.go"], check=True,
                   env={**os.environ, "GOCACHE": str(tmp_path / "cache"), "GO111MODULE": "off"})
    check(cluster, tmp_path / "client")


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
