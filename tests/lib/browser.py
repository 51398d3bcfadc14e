# SPDX-License-Identifier: Apache-2.0
"""Debian's Chromium without a screen, driven by playwright-core.

    with Browser(cluster.folder) as browser:
        page = browser.page(colorScheme="dark", viewport={"width": 390, "height": 844})
        page.goto(url)
        page.click("button")
        page.keyboard.type("text")
        page.wait_for("document.title === 'ready'")
        assert page.evaluate("1 + 1") == 2
        page.screenshot({"path": str(file)})
        assert not page.problems()

A page has the methods of Playwright's Page, by their own names; an error of one is a BrowserError.
"""

import hashlib
import json
import os
import shutil
import subprocess

import fetched
from cluster import wait_for
from world import ROOT

HERE = ROOT / "tests" / "lib" / "chromium"
FILES = ("package.json", "package-lock.json", "drive.mjs")


class BrowserError(Exception):
    pass


def install():
    """The folder of the driver, made once; a test that cannot have it is skipped."""
    groups = ["browser"] if shutil.which("npm") else ["browser", "node"]
    fetched.run("chromium", [ROOT / "tools" / "install-packages", *groups])
    mark = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()[:16]
    with fetched.folder(f"browser-{mark}") as (folder, is_new):
        if is_new:
            for name in FILES:
                shutil.copy(HERE / name, folder / name)
            fetched.run("playwright-core", ["npm", "ci", "--silent", "--ignore-scripts"], cwd=folder)
    return folder


class Page:
    """One in a context of its own: no cookies of others. The name of a method may have dots."""

    def __init__(self, browser, number, method=None):
        self._browser, self._number, self._method = browser, number, method

    def __getattr__(self, name):
        method = f"{self._method}.{name}" if self._method else name
        return Page(self._browser, self._number, method)

    def __call__(self, *args):
        return self._browser.ask(self._number, self._method, args)

    def problems(self):
        """What went wrong by itself so far: errors in the console, violations of its policy."""
        return self._browser.ask(self._number, "problems", [])

    def opened(self):
        """Tabs that it has opened, as pages."""
        return [Page(self._browser, number) for number in self._browser.ask(self._number, "opened", [])]

    def violations(self):
        """What axe finds, with its places: rules of accessibility."""
        axe = install() / "node_modules/axe-core/axe.min.js"
        self.evaluate(axe.read_text())
        return self.evaluate("axe.run().then((found) => found.violations.map((rule) =>"
                             " [rule.id, ...rule.nodes.map((node) => node.html)]))")

    def wait_for(self, expression, seconds=60):
        """The first true value of an expression of JavaScript, or of a function without arguments.

        Asked again and again from here: Playwright's own waiting needs eval(), which a page's
        policy may forbid."""
        asked = f"(it => typeof it === 'function' ? it() : it)({expression})"
        def look():
            try:
                return self.evaluate(asked)
            except BrowserError as e:
                if "context was destroyed" not in str(e):  # it went on to another page
                    raise
                return None
        return wait_for(look, seconds, expression)


class Browser:
    """'folder' is that of a World, which ends what is left in it, and short enough for Chromium's
    sockets, as those of pytest are not; it has the profile. 'words' turns a command into one that
    runs in a network of its own, as world.own_network() has them."""

    def __init__(self, folder, words=lambda *command: list(command)):
        self.folder = folder / "browser"
        self.folder.mkdir(exist_ok=True)
        self.pages = []
        driver = install()
        self.process = subprocess.Popen(
            words("node", driver / "drive.mjs", HERE / "chromium.sh"), cwd=self.folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "HOME": str(self.folder), "TMPDIR": str(self.folder)})

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.communicate()  # the end of its input ends it

    def ask(self, page, method, args):
        print(json.dumps([page, method, args]), file=self.process.stdin, flush=True)
        reply = json.loads(self.process.stdout.readline() or '{"error": "the browser has ended"}')
        if "error" in reply:
            raise BrowserError(f"{method}{tuple(args)}: {reply['error']}")
        return reply["value"]

    def page(self, **options):
        """A new one; 'options' are those of Playwright's newContext()."""
        self.pages.append(Page(self, self.ask(None, "open", [options])))
        return self.pages[-1]

    def close_pages(self):
        """All with their tabs: they would go on to work beside the next test."""
        while self.pages:
            self.pages.pop().close()
