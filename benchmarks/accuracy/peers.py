"""Other load tools: how they are called, and what they tell."""

from __future__ import annotations

import json
from typing import Any

from client import PROMPT_TOKENS, Client, Task
from environments import program, tokenizer
from stream import Stream, from_stamps

MODEL = "simulated-8b"


def peers() -> dict[str, Client]:
    """By name."""
    return {
        "servebench": Client(command=servebench_command, read=read_servebench, tool="servebench"),
        "aiperf": Client(command=aiperf_command, read=read_aiperf, tool="aiperf"),
        "guidellm": Client(command=guidellm_command, read=read_guidellm, tool="guidellm"),
    }


def servebench_command(task: Task) -> list[str]:
    words = [str(program("servebench")), "run", "--url", f"{task.url}/v1", "--model", MODEL]
    words += ["--concurrency", str(task.streams), "--num-requests", str(task.requests)]
    words += ["--input-len", str(PROMPT_TOKENS), "--output-len", str(task.tokens)]
    return [*words, "--out", str(task.folder / "out.json")]


def read_servebench(task: Task) -> list[Stream]:
    level = json.loads((task.folder / "out.json").read_text())["levels"][0]
    told = [one for one in level["requests"] if one["ok"]]
    return [from_stamps(one["start"], one["chunk_times"]) for one in told]


def aiperf_command(task: Task) -> list[str]:
    words = [str(program("aiperf")), "profile", "--model", MODEL, "--url", task.url, "--streaming"]
    words += ["--endpoint-type", "chat", "--tokenizer", tokenizer(), "--ui", "none"]
    words += ["--concurrency", str(task.streams), "--request-count", str(task.requests)]
    words += ["--synthetic-input-tokens-mean", str(PROMPT_TOKENS)]
    words += ["--synthetic-input-tokens-stddev", "0", "--output-tokens-stddev", "0"]
    words += ["--output-tokens-mean", str(task.tokens), "--extra-inputs", "ignore_eos:true"]
    return [*words, "--artifact-dir", str(task.folder / "aiperf")]


def read_aiperf(task: Task) -> list[Stream]:
    lines = (task.folder / "aiperf" / "profile_export.jsonl").read_text().splitlines()
    return [aiperf_stream(told) for told in map(json.loads, lines) if not told.get("error")]


def aiperf_stream(told: dict[str, Any]) -> Stream:
    metrics = told["metrics"]
    gaps_s = [gap_ms / 1e3 for gap_ms in metrics["inter_chunk_latency"]["value"]]
    ttft_s = metrics["time_to_first_token"]["value"] / 1e3
    return Stream(sent=told["metadata"]["request_start_ns"], ttft_s=ttft_s, gaps_s=gaps_s)


def guidellm_command(task: Task) -> list[str]:
    backend = f"kind=openai_http,target={task.url},model={MODEL},validate_backend=false"
    words = [str(program("guidellm")), "run", "--backend", backend, "--disable-progress"]
    words += ["--profile", f"kind=concurrent,streams={task.streams}"]
    words += ["--constraint", f"kind=max_requests,count={task.requests}"]
    lengths = f"prompt_tokens={PROMPT_TOKENS},output_tokens={task.tokens}"
    words += ["--data", f"kind=synthetic_text,{lengths}"]
    words += ["--tokenizer", f"kind=hf_auto,model={tokenizer()}"]
    return [*words, "--output", f"kind=json,path={task.folder / 'out.json'}"]


def read_guidellm(task: Task) -> list[Stream]:
    benchmark = json.loads((task.folder / "out.json").read_text())["benchmarks"][0]
    return [guidellm_stream(told) for told in benchmark["requests"]["successful"]]


def guidellm_stream(told: dict[str, Any]) -> Stream:
    """It tells no gaps, but the mean of each request."""
    gap_s = told["inter_token_latency_ms"] / 1e3
    gaps_s = [gap_s] * (told["output_tokens"] - 1)
    ttft_s = told["time_to_first_token_ms"] / 1e3
    return Stream(sent=told["request_start_time"], ttft_s=ttft_s, gaps_s=gaps_s)
