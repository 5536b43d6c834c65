"""A comparison as JUnit XML: one test case for each phase, for continuous integration.

Source: https://github.com/testmoapp/junitxml (there is no official definition).
"""

from __future__ import annotations

from collections.abc import Collection
from xml.etree import ElementTree as ET

from twospeed.fits.paired import PHASES, Phase
from twospeed.report import verdict_words as words
from twospeed.report.plain import plain
from twospeed.report.verdict import Verdict

CLASS = "twospeed.verify"


def render_junit(verdict: Verdict, failed: Collection[Phase]) -> str:
    """The comparison as one test suite.

    Args:
        verdict: the document.
        failed: phases that --fail-on refuses.
    """
    parts = {phase: getattr(verdict.phases, phase) for phase in PHASES}
    unknown = [phase for phase, part in parts.items() if part.verdict == "cannot tell"]
    suite = ET.Element(
        "testsuite",
        name="twospeed verify",
        tests=str(len(PHASES)),
        failures=str(len(failed)),
        skipped=str(len([phase for phase in unknown if phase not in failed])),
        timestamp=plain(verdict.made_at),
    )
    for phase, part in parts.items():
        case = ET.SubElement(suite, "testcase", classname=CLASS, name=words.THING[phase])
        said = words.clause(phase, part, sure=words.SURE)
        if phase in failed:
            ET.SubElement(case, "failure", message=said, type=part.verdict)
        elif phase in unknown:
            ET.SubElement(case, "skipped", message=said)
        ET.SubElement(case, "system-out").text = f"ratio of seconds {words.ratio_range(part)}"
    ET.SubElement(suite, "system-out").text = plain(verdict.verdict, longest=500)
    ET.indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(suite, encoding="unicode")}\n'
