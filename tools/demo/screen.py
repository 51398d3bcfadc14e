# SPDX-License-Identifier: Apache-2.0
"""What users see: titles, results, and bars that move on a terminal."""

import shutil
import sys
import threading

ON_TERMINAL = sys.stdout.isatty()
_lock = threading.Lock()
_bar_open = False


def colour(text, code):
    return f"\033[{code}m{text}\033[0m" if ON_TERMINAL else text


def line(text=""):
    """A line of its own; ends a bar that is being drawn."""
    global _bar_open
    with _lock:
        print(("\r\033[K" if _bar_open else "") + text, flush=True)
        _bar_open = False


def title(text):
    line()
    line(colour(text, "1"))


def good(text):
    line(f"  {colour('✓', '32')} {text}")


def note(text):
    for part in text.rstrip().splitlines():
        line(f"    {part}")


def command(words):
    line("  " + colour("$ aliquot " + " ".join(words), "36"))


def bar(what, done, total, unit=""):
    """Draw how far something is; elsewhere than on a terminal, nothing."""
    global _bar_open
    if not ON_TERMINAL or total <= 0:
        return
    width = max(10, min(40, shutil.get_terminal_size().columns - len(what) - 30))
    full = int(width * min(done / total, 1))
    with _lock:
        print(f"\r\033[K  {what} [{'█' * full}{'·' * (width - full)}] {done}/{total}{unit}",
              end="", flush=True)
        _bar_open = True
