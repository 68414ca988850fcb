"""Paths and the hypothesis profile of the package's tests."""

import os
import pathlib

import hypothesis

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("TILEWRIGHT_BIN_DIR", ROOT / "build/bin"))

# Every run tests the same examples, so that a new failure is caused by a change of the code.
hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True, database=None, max_examples=200)
hypothesis.settings.load_profile("fixed")
