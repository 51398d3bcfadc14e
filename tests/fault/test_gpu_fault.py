"""Whoever hands out a slice of a GPU dies in the middle of it: the program gets
no memory without it, the card is free again, and the next slice is whole."""

import subprocess
import time

import pytest

from cluster import ROOT
from gpu import BUILD, Card

CLIENTS = BUILD / "tests" / "gpu"
POINTS = [point for point in
          subprocess.run([ROOT / "tools" / "fault-points"], capture_output=True, text=True,
                         check=True).stdout.split() if point.startswith("gpuhost.")]


def is_free(card, seconds=10):
    deadline = time.monotonic() + seconds
    while card.show()[0]["used"] and time.monotonic() < deadline:
        time.sleep(0.02)
    return card.show()[0]["used"] == 0


@pytest.mark.parametrize("point", POINTS)
def test_point(point, tmp_path):
    faults = {"ALIQUOT_FAULT": point, "ALIQUOT_FAULT_ONCE": str(tmp_path / "died")}
    with Card() as card:
        first = card.run(CLIENTS / "gpu-entries", options=["--memory", "320m"], env=faults)
        assert (tmp_path / "died").exists(), f"no process has passed {point}"
        assert first.returncode
        assert is_free(card)
        again = card.run(CLIENTS / "gpu-entries", options=["--memory", "320m"], env=faults)
        assert again.returncode == 0, again.stdout + again.stderr
        assert is_free(card)
