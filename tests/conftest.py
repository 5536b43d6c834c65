"""Loads the made-up runs, which three rooms test with (tests are no packages)."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

RUNS = Path(__file__).parent / "report" / "runs.py"


@pytest.fixture(scope="session")
def runs() -> ModuleType:
    spec = spec_from_file_location("made_up_runs", RUNS)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module
