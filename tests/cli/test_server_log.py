"""The server's log beside a live run."""

from __future__ import annotations

LOAD = """\
load_tensors: offloaded 20/33 layers to GPU
load_tensors:   CPU_Mapped model buffer size =  1900.00 MiB
load_tensors:        CUDA0 model buffer size =  2900.00 MiB
llama_context: n_ctx         = 99999
llama_context: flash_attn    = enabled
"""


def test_the_log_tells_what_the_endpoint_does_not(fake, twospeed, tmp_path):
    log = tmp_path / "server.log"
    log.write_text(LOAD)
    server = fake()
    facts = twospeed.diagnose(server.url, "--json", "--log", log).report["facts"]
    assert (facts["layers_offloaded"], facts["layers_total"]) == (20, 33)
    assert facts["flash_attn"] is True
    assert facts["n_ctx"] != 99999, "what the endpoint told stays"


def test_a_log_without_a_load_is_named(fake, twospeed, tmp_path):
    log = tmp_path / "server.log"
    log.write_text("nothing of note\n")
    report = twospeed.diagnose(fake().url, "--json", "--log", log).report
    assert any("the log tells nothing" in blind["what"] for blind in report["unknown"])


def test_a_log_that_is_not_there_is_refused_before_anything_is_sent(fake, twospeed, tmp_path):
    found = twospeed("diagnose", fake().url, "--log", tmp_path / "no.log")
    assert found.status == 3
    assert "no such file" in found.complaint
