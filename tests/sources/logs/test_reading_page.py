"""docs/reading-logs.md names every format, and its examples are read as what they are."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from twospeed.sources.logs.content import Content
from twospeed.sources.logs.reading import read_text

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "reading-logs.md").read_text("utf-8")
EXAMPLES = dict(re.findall(r"^(\S[^\n]*):\n\n```\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
FOLDER = ROOT / "src" / "twospeed" / "sources" / "logs" / "documents"
TABLE = re.compile(r"^\| text \|.*\n\|---.*\n((?:\|.*\n?)+)", re.MULTILINE)


@pytest.mark.parametrize("module", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_documents_have_the_row_and_the_example_of_their_module(module):
    told = ast.get_docstring(ast.parse(module.read_text("utf-8"))) or ""
    for row in TABLE.findall(told):
        assert row.strip() in PAGE
        example = "\n".join(line[4:] for line in told.split("\n") if line.startswith("    "))
        assert example in PAGE


NOTHING_TO_KEEP = {"llama.cpp speculative tools"}
"""Of which the example shows only the end."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_logs_are_recognised(name):
    content = read_text(EXAMPLES[name])
    if name not in NOTHING_TO_KEEP and "..." not in EXAMPLES[name]:
        assert content != Content(), name
    assert content.unread == 0, name
