"""What vLLM tells about itself in `/metrics`: the counters and gauges that show its two phases."""

from __future__ import annotations

from collections.abc import Mapping

from twospeed.simulator.bench import Bench
from twospeed.simulator.dialect import Facts

VERSION = "0.32.0"
FINGERPRINT = "vllm-0.32.0-simulated"
BLOCK_TOKENS = 16


def metrics_page(facts: Facts, bench: Bench) -> str:
    """The answer of `/metrics`; of histograms only sum and count."""
    totals = bench.totals
    labels = f'engine="0",model_name="{facts.model}"'
    values: Mapping[str, float] = {
        "num_requests_running": len(bench.running),
        "num_requests_waiting": len(bench.waiting),
        "prefix_cache_queries_total": totals.prompt_tokens,
        "prefix_cache_hits_total": totals.cached_tokens,
        "num_preemptions_total": 0,
        "prompt_tokens_total": totals.prompt_tokens,
        "prompt_tokens_cached_total": totals.cached_tokens,
        "generation_tokens_total": totals.output_tokens,
        "request_queue_time_seconds_count": totals.requests,
        "request_queue_time_seconds_sum": totals.queue_ns / 1e9,
        "request_prefill_time_seconds_count": totals.requests,
        "request_prefill_time_seconds_sum": totals.prefill_ns / 1e9,
        "request_decode_time_seconds_count": totals.requests,
        "request_decode_time_seconds_sum": totals.decode_ns / 1e9,
    }
    lines = [f"vllm:{name}{{{labels}}} {float(value)}" for name, value in values.items()]
    cache = (
        f'block_size="{BLOCK_TOKENS}",cache_dtype="auto",'
        f'enable_prefix_caching="{facts.cache_on}",engine="0"'
    )
    lines.append(f"vllm:cache_config_info{{{cache}}} 1.0")
    return "".join(f"{line}\n" for line in lines)
