"""What the tests of the package share."""

import os
import pathlib

import hypothesis

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARIES = pathlib.Path(os.environ.get("TILEWRIGHT_BIN_DIR", ROOT / "build/bin"))

# The same examples in every run: a failure is a change of ours.
hypothesis.settings.register_profile("fixed", deadline=None, derandomize=True, database=None, max_examples=200)
hypothesis.settings.load_profile("fixed")
