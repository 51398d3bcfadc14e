# SPDX-License-Identifier: Apache-2.0
"""Static files: those of the folder, and none beside it; the console without a folder."""

import gzip
import re
import subprocess
import tomllib

import pytest

from ports import free_port
from web import Browser, Webbed
from world import BUILD, World


@pytest.fixture(scope="module", name="cluster")
def cluster_fixture():
    with Webbed() as made:
        folder = made.folder / "static"
        (folder / "assets" / "deep").mkdir(parents=True)
        (folder / "index.html").write_text('<script nonce="{{nonce}}"></script><b nonce="{{nonce}}">')
        (folder / "assets" / "app.js").write_text("let a = 1;\n" * 1000)
        (folder / "assets" / "app.js.gz").write_bytes(gzip.compress(b"let a = 1;\n" * 1000))
        (folder / "assets" / "big.bin").write_bytes(b"0123456789" * 1_000_000)
        (folder / "assets" / "한글.txt").write_text("글")
        (made.folder / "secret.txt").write_text("secret")
        (folder / "out").symlink_to(made.folder / "secret.txt")
        made.start_manager()
        made.start_web("--static", folder)
        yield made
        made.stop()


@pytest.fixture(name="browser")
def browser_fixture(cluster):
    return cluster.browser()


@pytest.mark.gate
def test_first_page(browser):
    nonces = set()
    for path in ("/", "/index.html", "/job", "/some/where/else?x=1"):
        answer = browser.ask("GET", path)
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
        assert answer.headers["Cache-Control"] == "no-store"
        found = re.findall(r'nonce="([\w-]{24})"', answer.body.decode())
        assert len(found) == 2 and found[0] == found[1]
        policy = answer.headers["Content-Security-Policy"]
        assert f"'nonce-{found[0]}'" in policy and "frame-ancestors 'none'" in policy
        nonces.add(found[0])
    assert len(nonces) == 4


def test_file(browser):
    answer = browser.ask("GET", "/assets/app.js")
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/javascript; charset=utf-8")
    assert answer.body == b"let a = 1;\n" * 1000
    assert "Content-Encoding" not in answer.headers
    again = browser.ask("GET", "/assets/app.js", If_None_Match=answer.headers["ETag"])
    assert (again.status, again.body) == (304, b"")
    packed = browser.ask("GET", "/assets/app.js", Accept_Encoding="br, gzip")
    assert packed.headers["Content-Encoding"] == "gzip" and packed.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(packed.body) == answer.body
    assert packed.headers["ETag"] != answer.headers["ETag"]
    head = browser.ask("HEAD", "/assets/app.js")
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", "11000")
    assert browser.ask("GET", "/assets/%ED%95%9C%EA%B8%80.txt").body.decode() == "글"
    assert browser.ask("POST", "/assets/app.js").status == 405


@pytest.mark.parametrize("text, status, body", [
    ("bytes=0-9", 206, b"0123456789"), ("bytes=-3", 206, b"789"), ("bytes=9999995-", 206, b"56789"),
    ("bytes=10000000-", 416, b""), ("bytes=5-2", 200, None), ("lines=1-2", 200, None),
    ("bytes=0-1,5-6", 200, None), ("bytes=99999999999999999999-", 200, None)])
def test_ranges(browser, text, status, body):
    answer = browser.ask("GET", "/assets/big.bin", Range=text)
    assert answer.status == status
    assert answer.body == (b"0123456789" * 1_000_000 if body is None else body)


@pytest.mark.parametrize("path", ["/../secret.txt", "/assets/../../secret.txt", "/%2e%2e/secret.txt",
                                  "/..%2fsecret.txt", "/out", "//etc/passwd", "/assets/%00", "/%ff",
                                  "/assets", "/assets/", "/" + "a/" * 3000])
def test_nothing_beside_the_folder(browser, path):
    answer = browser.ask("GET", path)
    assert b"secret" not in answer.body and b"root:" not in answer.body
    assert answer.status in (200, 400, 414)
    if answer.status == 200:
        assert b"nonce" in answer.body


def test_settings_of_the_webui(cluster, browser):
    text = browser.ask("GET", "/config.toml").body.decode()
    settings = tomllib.loads(text)
    assert settings["general"]["apiEndpoint"] == cluster.origin
    assert settings["general"]["connectionMode"] == "SESSION"
    assert "pipeline" in settings["menu"]["blocklist"].split(",")
    assert '""' not in text


def test_console_beside_it(browser):
    moved = browser.ask("GET", "/aliquot")
    assert (moved.status, moved.headers["Location"]) == (302, "/aliquot/")
    page = browser.ask("GET", "/aliquot/")
    assert page.status == 200 and b'<base href="/aliquot/">' in page.body
    assert b"{{" not in page.body
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]


def test_files_of_a_cluster_of_one_machine():
    """'aliquot up' serves them, too."""
    with World() as world:
        (world.folder / "pages").mkdir()
        (world.folder / "pages" / "index.html").write_text("theirs")
        web = free_port()
        up = subprocess.Popen(
            [BUILD / "aliquot", "up", "--dev", "--state", "up", "--port", str(free_port()),
             "--link-port", str(free_port()), "--web-port", str(web), "--static", "pages"],
            cwd=world.folder, env={**world.env, "ALIQUOT_METRICS_LISTEN": "off"},
            stdout=subprocess.PIPE, text=True)
        try:
            said = "".join(iter(up.stdout.readline, "Ctrl-C ends the cluster and its sessions.\n"))
            assert f"http://127.0.0.1:{web}" in said, said
            browser = Browser(web)
            assert browser.ask("GET", "/").body == b"theirs"
            assert b"console.js" in browser.ask("GET", "/aliquot/").body
        finally:
            up.terminate()
        assert up.wait(60) == 0
