# SPDX-License-Identifier: Apache-2.0
"""Backend.AI's WebUI as it is on PyPI, in the wheels of its web server, and what people do in it."""

import re
import sys
import zipfile

import fetched
from browser import BrowserError
from cluster import wait_for

# Version of the wheel -> Python that it is for.
WHEELS = {"22.9.23": "3.10", "23.9.10": "3.11", "24.9.14": "3.12", "26.9.6": "3.13"}
# What can be read of a page, in its components, too.
TEXT = """(() => { const all = [document.body.innerText];
  const walk = root => { for (const it of root.querySelectorAll('*')) if (it.shadowRoot) {
    for (const part of it.shadowRoot.children)
      if (getComputedStyle(part).display !== 'none') all.push(part.innerText);
    walk(it.shadowRoot); } };
  walk(document); return all.join('\\n'); })()"""
# What it asks in vain, and what its policy forbids.
HOOK = """window.asked = []; const real = window.fetch; window.fetch = async (...words) => {
    const reply = await real(...words); const copy = reply.clone();
    copy.text().then(text => { if (!reply.ok || /^({|event:)/.test(text) && text.includes('"errors"'))
        window.asked.push(`${reply.status} ${reply.url} ${text.slice(0, 500)}`); }).catch(() => {});
    return reply; };
document.addEventListener('securitypolicyviolation', it =>
    it.blockedURI === 'eval' // the test's own questions
        || window.asked.push(`policy ${it.blockedURI} ${it.violatedDirective}`));"""
# Nobody has typed yet; there is no second factor.
EXPECTED = (r"400 \S*/server/login ", r"404 \S*/func/totp")


def install(version):
    """The folder of its files, made once; a test that cannot have it is skipped."""
    with fetched.folder(f"webui/{version}") as (folder, is_new):
        if is_new:
            fetched.run(f"backend.ai-webserver {version}", [
                sys.executable, "-m", "pip", "-q", "download", "--no-deps", "--only-binary=:all:",
                f"--python-version={WHEELS[version]}", f"backend.ai-webserver=={version}", "-d", folder])
            with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
                for name in wheel.namelist():
                    if name.startswith("ai/backend/web/static/") and not name.endswith(".map"):
                        wheel.extract(name, folder)
            next(folder.glob("*.whl")).unlink()
    return folder / "ai" / "backend" / "web" / "static"


def text_of(page):
    try:
        return page.evaluate(TEXT)
    except BrowserError:  # it goes to another page
        return ""


def wait_until(page, *texts):
    wait_for(lambda: all(text in text_of(page) for text in texts), 90,
             lambda: f"{texts} in {text_of(page)[-3000:]}; {mistakes(page)}")


def tried(function, *words):
    try:
        function(*words, {"timeout": 2000})
        return True
    except BrowserError:
        return False


def mistakes(page, *more):
    """What it asked in vain, but for what is expected, as regular expressions."""
    return [text for text in page.evaluate("window.asked")
            if not any(re.match(expected, text) for expected in EXPECTED + more)]


def log_in(browser, cluster, email, password, name, is_wrong_first=False):
    """A page of 25.14 or 26.9 of somebody with that name, who mistypes the password at first if so."""
    page = browser.page(viewport={"width": 1500, "height": 1000})
    page.setDefaultTimeout(90000)
    page.addInitScript(HOOK)
    page.goto(cluster.origin)
    for given in ["wrong", password] if is_wrong_first else [password]:
        wait_for(lambda: tried(page.fill, "input[type=text]:visible >> nth=0", email), 90, "the form")
        page.fill("input[type=password]:visible >> nth=0", given)
        page.keyboard.press("Enter")
        wait_until(page, "mismatch" if given == "wrong" else name)
    return page


def end_sessions(cluster):
    for session in cluster.live_sessions():
        cluster.client().delete("/aliquot/v1/sessions", {"sessions": [session["id"]], "forced": True})
    wait_for(lambda: not cluster.live_sessions(), 60, "the sessions to end")
