# SPDX-License-Identifier: Apache-2.0
"""What people do with the tables and forms of Backend.AI's WebUI 25.14."""

from cluster import wait_for
from webui import log_in, mistakes, text_of, wait_until

MODAL = ".ant-modal-content >> visible=true >> "
YES = (".ant-popover:not(.ant-popover-hidden) .ant-popconfirm-buttons button:last-child,"
       " .ant-modal-confirm-btns button:last-child")
# What it would have the browser save goes to window.saved.
SAVED = """(() => { window.saved = null; const real = URL.createObjectURL; URL.createObjectURL = it => {
    if (it instanceof Blob) it.text().then(text => window.saved = text); return real.call(URL, it); };
})()"""


class Page:
    """One of somebody who has logged in; it is loaded once, and goes on by its own menus."""

    def __init__(self, cluster, browser, email, password, name="Lablup", **more):
        self.cluster = cluster
        self.page = log_in(browser, cluster, email, password, name, **more)

    def see(self, *texts):
        wait_until(self.page, *texts)

    def see_in(self, row, what):
        wait_for(lambda: self.page.evaluate(
            f"[...document.querySelectorAll('tr')].some(it => it.innerText.includes({row!r})"
            f" && it.querySelector({what!r}))"), 60, lambda: f"{what} of {row}: {text_of(self.page)}")

    def go(self, path, text, tab=None):
        self.page.click(f".ant-menu a[href='{path}']")
        self.see(text)
        if tab:
            self.page.click(f"[role=tab]:has-text('{tab}')")

    def go_by_name(self, item, text):
        """By the menu behind the person's name."""
        self.page.click("button:has(.anticon-user) >> visible=true")
        self.page.click(f".ant-dropdown-menu-item:has-text('{item}') >> visible=true")
        self.see(text)

    def press(self, text):
        self.page.click(f"button:has-text('{text}') >> visible=true")

    def press_in(self, row, icon):
        self.page.click(f"tr:has-text('{row}') button:has(.{icon})")

    def fill(self, **fields):
        for name, value in fields.items():
            self.page.fill(f"{MODAL}[id='{name.replace('__', '.')}'] >> visible=true", value)

    def choose(self, name, value):
        self.page.click(f".ant-select:has(#{name})")
        self.page.click(".ant-select-dropdown:not(.ant-select-dropdown-hidden)"
                        f" .ant-select-item-option[title='{value}']")

    def closed(self):
        wait_for(lambda: self.page.evaluate("![...document.querySelectorAll('.ant-modal-content')]"
                                            ".some(it => it.getClientRects().length)"), 60,
                 lambda: f"the form to close: {mistakes(self.page)} {text_of(self.page)[-500:]}")

    def done(self):
        """It is sent, and the form closes."""
        self.page.click(MODAL + ".ant-modal-footer .ant-btn-primary")
        self.closed()

    def saved(self, *clicks):
        """What they save."""
        self.page.evaluate(SAVED)
        for click in clicks:
            self.page.click(click)
        return wait_for(lambda: self.page.evaluate("window.saved"), 60, "the file")
