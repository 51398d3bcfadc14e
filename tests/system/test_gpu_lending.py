# SPDX-License-Identifier: Apache-2.0
"""Memory that several processes of a slice hold: charged once, and until the last of them."""

import contextlib
import ctypes
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time

import pytest

from gpu import BUILD, Card, wait_until

CLIENTS = BUILD / "tests" / "gpu"
MIB = 1 << 20
CONTEXT = 64
PIDFD_GETFD = 438


@pytest.fixture
def card():
    with Card() as made:
        yield made


@pytest.fixture
def card_of_many():
    with Card(context="2M", memory="16G") as made:
        yield made


class Talker:
    """A program that does with memory what it is told (tests/gpu/talk.c)."""

    def __init__(self, part):
        self.process = part.start(CLIENTS / "gpu-talk", stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)
        assert self.process.stdout.readline() == "ready\n"

    def __call__(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def kill(self):
        self.process.kill()
        self.process.wait()


@contextlib.contextmanager
def talkers(part, count):
    made = [Talker(part) for _ in range(count)]
    try:
        yield made
    finally:
        for one in made:
            one.kill()


def is_used(card, part, mib, contexts):
    """The counter and the card's truth, both; contexts have 64 MiB."""
    want = (mib + contexts * CONTEXT) * MIB
    wait_until(lambda: (part.charged(), card.show()[0]["used"]) == (want, want))


# What a maker does to lend 100 MiB, and a borrower to have it: the last word of either gives back.
def lend_handle(maker):
    handle = maker("create", 100)
    descriptor = maker("export", handle)
    return descriptor, lambda: (maker("shut", descriptor.split()[1]), maker("release", handle))


def borrow_handle(borrower, descriptor):
    handle = borrower("import", descriptor)
    place = borrower("map", handle, 100)
    borrower("release", handle)
    return lambda: borrower("unmap", place, 100)


def lend_plain(maker):
    pointer = maker("alloc", 100)
    return maker("get", pointer), lambda: maker("free", pointer)


def borrow_plain(borrower, handle):
    pointer = borrower("open", handle)
    return lambda: borrower("close", pointer)


KINDS = {"handle": (lend_handle, borrow_handle), "plain": (lend_plain, borrow_plain)}


@pytest.mark.gate
@pytest.mark.parametrize("first_ends", ["frees", "dies"])
@pytest.mark.parametrize("last_ends", ["frees", "dies"])
@pytest.mark.parametrize("order", ["maker first", "borrowers first"])
@pytest.mark.parametrize("kind", KINDS)
def test_charged_once_until_the_last_holder(card, kind, order, first_ends, last_ends):
    lend, borrow = KINDS[kind]
    with card.slice("--memory", "1g") as part, talkers(part, 3) as (maker, *borrowers):
        letter, maker_gives = lend(maker)
        is_used(card, part, 100, 3)
        holders = [(maker, maker_gives)]
        holders += [(borrower, borrow(borrower, letter)) for borrower in borrowers]
        is_used(card, part, 100, 3)
        if order == "borrowers first":
            holders.reverse()
        alive = 3
        for place, (holder, gives) in enumerate(holders):
            if (last_ends if place == 2 else first_ends) == "dies":
                holder.kill()
                alive -= 1
            else:
                gives()
            is_used(card, part, 0 if place == 2 else 100, alive)


def test_an_importer_of_what_is_left_pays(card):
    """The maker has died, and nobody has its memory but an open descriptor: it lives, and
    the importer pays, the first of two for both."""
    with card.slice("--memory", "1g") as part, talkers(part, 3) as (maker, first, second):
        pid, fd = map(int, maker("export", maker("create", 100)).split())
        pidfd = os.pidfd_open(pid)
        kept = ctypes.CDLL(None).syscall(PIDFD_GETFD, pidfd, fd, 0)
        os.close(pidfd)
        maker.kill()
        wait_until(lambda: part.charged() == 2 * CONTEXT * MIB)
        assert card.show()[0]["shared"] == 100 * MIB
        letter = f"{os.getpid()} {kept}"
        handles = [one("import", letter) for one in (first, second)]
        assert all(one("map", handle, 100) != "" for one, handle in zip((first, second), handles))
        os.close(kept)
        is_used(card, part, 100, 2)
        first.kill()
        is_used(card, part, 100, 1)
        second.kill()
        is_used(card, part, 0, 0)


def test_borrowed_memory_is_no_way_to_more(card):
    """A slice that is full stays full when memory changes hands, and what is of another slice
    is charged to who imports it."""
    with card.slice("--memory", "512m") as part, card.slice("--memory", "1g") as other:
        with talkers(part, 2) as (maker, borrower), talkers(other, 1) as (stranger,):
            handle = maker("create", 300)
            descriptor = maker("export", handle)
            borrow = borrower("import", descriptor)
            maker("release", handle)
            assert maker("create", 100) == "error 2"
            assert int(borrower("free-bytes")) == (512 - 300 - 2 * CONTEXT) * MIB
            foreign = stranger("export", stranger("create", 100))
            assert borrower("import", foreign) == "error 2"
            borrower("release", borrow)
            maker("shut", descriptor.split()[1])
            theirs = borrower("import", foreign)
            assert part.charged() == (100 + 2 * CONTEXT) * MIB
            assert borrower("release", theirs) == "0"
            assert part.charged() == 2 * CONTEXT * MIB


def test_own_memory_imported_twice(card):
    with card.slice("--memory", "1g") as part, talkers(part, 1) as (one,):
        handle = one("create", 100)
        descriptor = one("export", handle)
        again = [one("import", descriptor) for _ in range(2)]
        one("shut", descriptor.split()[1])
        is_used(card, part, 100, 1)
        assert one("release", handle) == one("release", again[0]) == "0"
        is_used(card, part, 100, 1)
        assert one("release", again[1]) == "0"
        is_used(card, part, 0, 1)


def test_code_is_loaded_once(card):
    with card.slice("--memory", "1g") as part, talkers(part, 1) as (one,):
        assert one("load") == "0"
        is_used(card, part, 2, 1)


def test_opened_twice_and_code_loaded_meanwhile(card):
    """An open counts as often as it was asked for; code is not mistaken for borrowed memory."""
    with card.slice("--memory", "1g") as part, talkers(part, 2) as (maker, borrower):
        pointer = maker("alloc", 100)
        letter = maker("get", pointer)
        opened = [borrower("open", letter) for _ in range(2)]
        assert opened[0] == opened[1] and letter == maker("get", pointer)
        assert borrower("load") == "0"
        is_used(card, part, 102, 2)
        borrower("close", opened[0])
        maker("free", pointer)
        is_used(card, part, 102, 2)
        borrower("close", opened[1])
        is_used(card, part, 2, 2)


def test_memory_of_other_interfaces_is_charged_once(card, tmp_path):
    """Vulkan's, say, which no ledger has: to the first that imports it, by its descriptor."""
    with card.slice("--memory", "512m") as part, talkers(part, 2) as (first, second):
        with open(tmp_path / "vulkan", "w+") as file:
            letter = f"{os.getpid()} {file.fileno()}"
            one, two = first("external", letter, 200), second("external", letter, 200)
            assert part.charged() == (200 + 2 * CONTEXT) * MIB
        with open(tmp_path / "more", "w+") as file:
            assert second("external", f"{os.getpid()} {file.fileno()}", 300) == "error 2"
        first("destroy", one)
        assert part.charged() == (200 + 2 * CONTEXT) * MIB
        second("destroy", two)
        assert part.charged() == 2 * CONTEXT * MIB


def test_nobody_is_accused_of_what_is_lent(card):
    """The driver shows the memory at both; more of it than was granted, if one adds."""
    with card.slice("--memory", "512m") as part, talkers(part, 3) as (maker, *borrowers):
        letter, _ = lend_handle(maker)
        more = [borrow_handle(one, letter) for one in borrowers]
        time.sleep(3)
        is_used(card, part, 100, 3)
        assert more and part.run.poll() is None


@contextlib.contextmanager
def nobody_answers(part):
    path = part.env["ALIQUOT_GPU_SOCKET"]
    os.rename(path, path + ".gone")
    yield
    os.rename(path + ".gone", path)


def comes_to(part, mib, *programs):
    """Programs tell what they had to tell when they wait for the device; contexts besides."""
    def charged():
        assert all(one("sync") == "0" for one in programs)
        return part.charged() == (mib + 2 * CONTEXT) * MIB
    wait_until(charged)


def test_lent_while_nobody_answers(card):
    """Without the server nothing is written down: both pay, and nothing is free too early."""
    with card.slice("--memory", "1g") as part, talkers(part, 2) as (maker, borrower):
        handle = maker("create", 100)
        descriptor = maker("export", handle)
        borrowed = borrower("import", descriptor)
        with nobody_answers(part):
            maker("release", handle)
            maker("shut", descriptor.split()[1])
            assert part.charged() == (100 + 2 * CONTEXT) * MIB
        borrower("release", borrowed)
        comes_to(part, 0, maker)


@pytest.mark.parametrize("kind", KINDS)
def test_both_pay_only_until_somebody_answers(card, kind):
    lend, borrow = KINDS[kind]
    with card.slice("--memory", "1g") as part, talkers(part, 2) as (maker, borrower):
        with nobody_answers(part):
            letter, maker_gives = lend(maker)
            borrower_gives = borrow(borrower, letter)
            assert part.charged() == (200 + 2 * CONTEXT) * MIB
        comes_to(part, 100, maker, borrower)
        maker_gives()
        is_used(card, part, 100, 2)
        borrower_gives()
        is_used(card, part, 0, 2)


def test_what_failed_while_nobody_answered_is_not_held(card):
    """An order whose answer is missing may have been followed. It is taken back."""
    with card.slice("--memory", "1g") as part, talkers(part, 2) as (maker, borrower):
        pointer = maker("alloc", 100)
        letter = maker("get", pointer)
        with nobody_answers(part):
            maker("free", pointer)
            assert borrower("open", letter) == "error 1"
            assert part.charged() == (100 + 2 * CONTEXT) * MIB
        comes_to(part, 0, maker, borrower)


COUNT = 64


def named(folder, programs):
    """Of those who have begun to lend: each has a socket of its pid's name."""
    return [one for one in programs if os.path.exists(os.path.join(folder, str(one.pid)))]


def is_exact(card, part):
    wait_until(lambda: part.charged() == card.show()[0]["used"])


def test_many_lenders_and_kills(card_of_many):
    """64 processes lend and borrow at random, and are killed at any moment, also while they
    start: what is charged is what lives."""
    card = card_of_many
    seed = random.randrange(1 << 30)
    print("seed", seed)
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory(dir="/tmp") as folder, \
            card.slice("--memory", "8g") as part, contextlib.ExitStack() as stack:
        programs = [part.start(CLIENTS / "gpu-ipc", folder) for _ in range(COUNT)]
        stack.callback(lambda: [(one.kill(), one.wait()) for one in programs])
        wait_until(lambda: len(named(folder, programs)) >= COUNT // 2, 60)
        for _ in range(40):
            victim = programs.pop(chance.randrange(COUNT))
            victim.send_signal(signal.SIGKILL)
            victim.wait()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(os.path.join(folder, str(victim.pid)))
            programs.append(part.start(CLIENTS / "gpu-ipc", folder))
            time.sleep(0.02)
        wait_until(lambda: len(named(folder, programs)) == COUNT, 60)
        pathlib.Path(folder, "hold").touch()
        wait_until(lambda: len([n for n in os.listdir(folder) if n.startswith("held")]) == COUNT, 60)
        assert all(one.poll() is None for one in programs)
        is_exact(card, part)
        assert part.charged() > COUNT * 2 * MIB and card.show()[0]["shared"] > 0
        chance.shuffle(programs)
        while programs:
            one = programs.pop()
            one.kill()
            one.wait()
            if len(programs) % 8 == 0:
                is_exact(card, part)
        wait_until(lambda: part.charged() == card.show()[0]["used"] == 0)
