"""The shared helpers of tests/lib are there however pytest is started."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent / "lib"))
