# SPDX-License-Identifier: Apache-2.0
"""Schedules in time zones, compared with Python's zoneinfo: around changes of clocks and elsewhere."""

import datetime
import random
import subprocess
import zoneinfo

from world import BUILD

ZONES = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia",
         "America/Sao_Paulo", "Africa/Casablanca", "Asia/Tehran", "Europe/Dublin", "Asia/Gaza",
         "America/St_Johns", "Pacific/Chatham", "Antarctica/Troll", "America/Caracas", "UTC"]
UTC = datetime.timezone.utc
DAYS = 5  # that are compared of each schedule
CASES = 200
FIELDS = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))


def field_of(chance, low, high):
    """A random field, and the values that it has."""
    kind = chance.choice(["star", "star", "one", "list", "range", "step", "range step"])
    first = chance.randint(low, high)
    last = chance.randint(first, high)
    step = chance.randint(1, min(high, 30))
    if kind == "star":
        return "*", set(range(low, high + 1))
    if kind == "one":
        return str(first), {first}
    if kind == "list":
        values = {chance.randint(low, high) for _ in range(4)}
        return ",".join(map(str, values)), values
    if kind == "range":
        return f"{first}-{last}", set(range(first, last + 1))
    if kind == "step":
        return f"*/{step}", set(range(low, high + 1, step))
    return f"{first}-{last}/{step}", set(range(first, last + 1, step))


def schedule_of(chance):
    texts, values = zip(*[field_of(chance, *bounds) for bounds in FIELDS])
    return " ".join(texts), texts, values


def matches(local, texts, values):
    minutes, hours, days, months, weekdays = values
    of_month, of_week = local.day in days, (local.weekday() + 1) % 7 in weekdays
    both = texts[2].startswith("*") or texts[4].startswith("*")
    return (local.minute in minutes and local.hour in hours and local.month in months
            and ((of_month and of_week) if both else (of_month or of_week)))


def expected(zone, begin, end, texts, values):
    """Walk each minute, with the clock that a wall in the zone shows."""
    due, minute = [], datetime.timedelta(minutes=1)
    follows_clock = len(values[1]) == 24
    latest = None  # the latest local time that was shown
    at = begin - datetime.timedelta(days=1)
    while at <= end:
        local = at.astimezone(zone).replace(tzinfo=None)
        is_due = matches(local, texts, values) and (follows_clock or latest is None or local > latest)
        if latest is not None and not follows_clock:
            skipped = latest + minute
            while skipped < local:
                is_due = is_due or matches(skipped, texts, values)
                skipped += minute
        if is_due and at > begin:
            due.append(int(at.timestamp()))
        latest = local if latest is None else max(latest, local)
        at += minute
    return due


def changes_of(zone):
    """Days at most two after a change of the zone's distance from UTC."""
    found, last = [], None
    for year in range(1990, 2051):
        for day in range(0, 365, 2):
            at = datetime.datetime(year, 1, 1, tzinfo=UTC) + datetime.timedelta(days=day)
            offset = at.astimezone(zone).utcoffset()
            if last is not None and offset != last:
                found.append(at)
            last = offset
    return found


def is_possible(texts, values):
    """Such a day comes: schedules without one are refused."""
    _, _, days, months, _ = values
    both = texts[2].startswith("*") or texts[4].startswith("*")
    longest = {2: 29, 4: 30, 6: 30, 9: 30, 11: 30}
    return not both or any(min(days) <= longest.get(month, 31) for month in months)


def test_due_times_are_those_of_zoneinfo():
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    zones = {name: zoneinfo.ZoneInfo(name) for name in ZONES}
    changes = {name: changes_of(zone) for name, zone in zones.items()}
    cases = []
    while len(cases) < CASES:
        name = chance.choice(ZONES)
        text, texts, values = schedule_of(chance)
        near = chance.choice(changes[name] or [datetime.datetime(2026, 6, 1, tzinfo=UTC)])
        begin = near - datetime.timedelta(days=3, minutes=chance.randrange(1440))
        if is_possible(texts, values):
            cases.append((name, text, texts, values, begin, begin + datetime.timedelta(days=DAYS)))
    lines = [f"{name} {int(begin.timestamp())} {int(end.timestamp())} {text}\n"
             for name, text, _, _, begin, end in cases]
    done = subprocess.run([BUILD / "tests/system/cron-next"], input="".join(lines), text=True,
                          capture_output=True, check=True)
    answers = done.stdout.splitlines()
    assert len(answers) == CASES
    found = 0
    for (name, text, texts, values, begin, end), answer in zip(cases, answers):
        due = [int(word) for word in answer.split()]
        assert due == expected(zones[name], begin, end, texts, values), (name, text, str(begin))
        found += len(due)
    assert found > CASES, "hardly any schedule was due"
