# SPDX-License-Identifier: Apache-2.0
"""The command line and a manager that speaks https: the module for it is loaded when it is needed."""

import pathlib
import shutil
import ssl
import subprocess

import pytest

from cluster import ADMIN, Cluster, wait_for
from wire import Wire
from world import BUILD


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        cert, key = made.folder / "api.crt", made.folder / "api.key"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                        "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=api",
                        "-addext", "subjectAltName=IP:127.0.0.1", "-out", cert, "-keyout", key],
                       check=True, capture_output=True)
        made.start_program("manager", BUILD / "aliquot-manager", "--dev", "--state",
                           made.folder / "manager", "--listen", "%s:%d" % made.address, "--link",
                           made.link, ALIQUOT_MANAGER_TLS_CERT=str(cert),
                           ALIQUOT_MANAGER_TLS_KEY=str(key))
        wait_for(lambda: ask(made).returncode == 0, 60, "the manager")
        yield made
        made.stop()


def ask(cluster, program=BUILD / "aliquot", **settings):
    env = {**cluster.env, "ALIQUOT_ENDPOINT": "https://%s:%d" % cluster.address,
           "ALIQUOT_ACCESS_KEY": ADMIN[0], "ALIQUOT_SECRET_KEY": ADMIN[1],
           "ALIQUOT_CA_FILE": str(cluster.folder / "api.crt"), **settings}
    return subprocess.run([program, "agent", "ls", "-o", "json"], env=env,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)


@pytest.mark.gate
def test_a_trusted_manager_is_asked(cluster):
    done = ask(cluster)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip() == "[]"


@pytest.mark.gate
def test_a_stranger_is_refused_unless_one_asks_for_it(cluster):
    refused = ask(cluster, ALIQUOT_CA_FILE="")
    assert refused.returncode != 0
    assert "certificate refused: self-signed certificate" in refused.stderr
    assert ask(cluster, ALIQUOT_CA_FILE="", ALIQUOT_SKIP_SSLCERT_VALIDATION="yes").returncode == 0


def test_without_the_module_the_error_names_it(cluster):
    folder = cluster.folder / "alone"
    folder.mkdir()
    shutil.copy(BUILD / "aliquot", folder)
    done = ask(cluster, folder / "aliquot")
    assert done.returncode != 0
    assert "https needs aliquot-tls.so, which is neither beside this program nor in" in done.stderr


def test_plain_http_loads_no_openssl():
    shown = subprocess.run(["ldd", BUILD / "aliquot"], capture_output=True, text=True, check=True)
    names = {pathlib.Path(line.split()[0]).name for line in shown.stdout.splitlines()}
    assert not {name for name in names if name.startswith(("libssl", "libcrypto"))}, names


@pytest.mark.parametrize("size", (0, 1, 65536, 65537, 1 << 20, 10 << 20))
def test_an_early_error_leaves_the_connection_in_order(cluster, size):
    trusted = ssl.create_default_context(cafile=cluster.folder / "api.crt")
    with Wire(cluster.address, trusted) as wire:
        status, headers, body = wire.ask("POST", "/no/such/path", body=bytes(size))
        assert (status, b"/no/such/path" in body) == (404, True)
        assert wire.check_next(headers) == (size <= 65536)
