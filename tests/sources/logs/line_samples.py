"""Small texts in every line format and generation, with what they must be read as.

The numbers are made up; shapes and spacing are those of the programs.
"""

# ruff: noqa: E501, W291  (lines of logs)

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A text and its known answer.

    `requests` are (prompt, cached, processed, output tokens, prefill_s, decode_s, decode_steps,
    total_s), each None where the text does not tell.
    """

    text: str
    requests: tuple[tuple[Any, ...], ...] = ()
    runtime: str | None = None
    facts: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    signs: dict[str, Any] = field(default_factory=dict)
    """Of the first request."""
    end_to_end: int = 0


SERVER_2026 = """\
0.41.100.200 I slot get_availabl: id  2 | task -1 | selected slot by LCP similarity, sim_best = 0.640 (> 0.100 thold), f_keep = 0.910
0.41.100.290 I slot launch_slot_: id  2 | task 71 | processing task, is_child = 0
0.41.100.310 I slot update_slots: id  2 | task 71 | new prompt, n_ctx_slot = 16384, n_keep = 0, task.n_tokens = 5600
0.41.100.320 I slot update_slots: id  2 | task 71 | cached n_tokens = 600, memory_seq_rm [600, end)
0.42.900.000 I slot print_timing: id  2 | task 71 | prompt processing, n_tokens =   2648, progress = 0.47, t =   1.80 s / 1137.78 tokens per second
0.44.700.000 I slot print_timing: id  2 | task 71 | prompt processing, n_tokens =   4696, progress = 0.84, t =   3.60 s / 1137.78 tokens per second
0.44.900.000 I slot print_timing: id  2 | task 71 | prompt processing, n_tokens =   5600, progress = 1.00, t =   4.00 s / 1250.00 tokens per second
0.48.100.000 I slot print_timing: id  2 | task 71 | n_gen =    150, tg =  50.00 t/s, tg_3s =  50.00 t/s
0.49.100.520 I slot print_timing: id  2 | task 71 | prompt eval time =    4000.00 ms /  5000 tokens (    0.80 ms per token,  1250.00 tokens per second)
0.49.100.530 I slot print_timing: id  2 | task 71 |        eval time =    4000.25 ms /   201 tokens (   19.90 ms per token,    50.25 tokens per second)
0.49.100.540 I slot print_timing: id  2 | task 71 |       total time =    8000.25 ms /  5201 tokens
0.49.100.900 I slot      release: id  2 | task 71 | stop processing: n_tokens = 5800, truncated = 0
"""
SERVER_2025 = """\
slot launch_slot_: id  1 | task 8 | processing task
slot update_slots: id  1 | task 8 | new prompt, n_ctx_slot = 8192, n_keep = 0, task.n_tokens = 1500
slot update_slots: id  1 | task 8 | n_tokens = 500, memory_seq_rm [500, end)
slot update_slots: id  1 | task 8 | prompt processing progress, n_tokens = 1500, batch.n_tokens = 1000, progress = 1.000000
slot update_slots: id  1 | task 8 | prompt done, n_tokens = 1500, batch.n_tokens = 1000
slot print_timing: id  1 | task 8 | 
prompt eval time =    1250.50 ms /  1000 tokens (    1.25 ms per token,   799.68 tokens per second)
       eval time =    3300.75 ms /   101 tokens (   32.68 ms per token,    30.60 tokens per second)
      total time =    4551.25 ms /  1101 tokens
slot      release: id  1 | task 8 | stop processing: n_tokens = 1600, truncated = 0
"""
SERVER_2024 = """\
slot launch_slot_: id  0 | task 3 | processing task
slot update_slots: id  0 | task 3 | new prompt, n_ctx_slot = 4096, n_keep = 0, n_prompt_tokens = 700
slot update_slots: id  0 | task 3 | kv cache rm [0, end)
slot update_slots: id  0 | task 3 | prompt processing progress, n_past = 700, n_tokens = 700, progress = 1.000000
slot update_slots: id  0 | task 3 | prompt done, n_past = 700, n_tokens = 700
slot      release: id  0 | task 3 | stop processing: n_past = 749, truncated = 0
slot print_timing: id  0 | task 3 | 
prompt eval time =    1400.50 ms /   700 tokens (    2.00 ms per token,   499.82 tokens per second)
       eval time =    2450.75 ms /    50 tokens (   49.02 ms per token,    20.40 tokens per second)
      total time =    3851.25 ms /   750 tokens
"""
SERVER_2023 = """\
slot 0 is processing [task id: 4]
slot 0 : in cache: 120 tokens | to process: 380 tokens
slot 0 : kv cache rm - [120, end)

print_timings: prompt eval time =    7600.50 ms /   380 tokens (   20.00 ms per token,    50.00 tokens per second)
print_timings:        eval time =    6060.75 ms /    61 runs   (   99.36 ms per token,    10.06 tokens per second)
print_timings:       total time =   13661.25 ms
slot 0 released (561 tokens in cache)
"""
SERVER_JSON = """\
{"function":"update_slots","id_slot":1,"id_task":6,"level":"INFO","line":1840,"msg":"kv cache rm [p0, end)","p0":90,"tid":"140001","timestamp":1713000001}
{"function":"print_timings","id_slot":1,"id_task":6,"level":"INFO","line":313,"msg":"prompt eval time     =     505.50 ms /   410 tokens (    1.23 ms per token,   811.08 tokens per second)","n_prompt_tokens_processed":410,"n_tokens_second":811.08,"t_prompt_processing":505.5,"t_token":1.2329,"tid":"140001","timestamp":1713000009}
{"function":"print_timings","id_slot":1,"id_task":6,"level":"INFO","line":327,"msg":"generation eval time =    4000.75 ms /   101 runs   (   39.61 ms per token,    25.25 tokens per second)","n_decoded":101,"n_tokens_second":25.245,"t_token":39.611,"t_token_generation":4000.75,"tid":"140001","timestamp":1713000009}
{"function":"print_timings","id_slot":1,"id_task":6,"level":"INFO","line":337,"msg":"          total time =    4506.25 ms","t_prompt_processing":505.5,"t_token_generation":4000.75,"t_total":4506.25,"tid":"140001","timestamp":1713000009}
"""
SERVER_TEXT = """\
INFO [           print_timings] prompt eval time     =    9000.50 ms /  1800 tokens (    5.00 ms per token,   199.99 tokens per second) | tid="99001" timestamp=1748000001 id_slot=0 id_task=2 t_prompt_processing=9000.500 n_prompt_tokens_processed=1800 t_token=5.0002 n_tokens_second=199.98
INFO [           print_timings] generation eval time =   10000.75 ms /   101 runs   (   99.02 ms per token,    10.10 tokens per second) | tid="99001" timestamp=1748000001 id_slot=0 id_task=2 t_token_generation=10000.750 n_decoded=101 t_token=99.017 n_tokens_second=10.099
INFO [           print_timings]           total time =   19001.25 ms | tid="99001" timestamp=1748000001 id_slot=0 id_task=2 t_prompt_processing=9000.500 t_token_generation=10000.750 t_total=19001.250
"""
TIMINGS_V0 = """\
llama_print_timings:        load time =  3100.20 ms
llama_print_timings:      sample time =    40.50 ms /   101 runs   (    0.40 ms per run)
llama_print_timings: prompt eval time =  2000.50 ms /    25 tokens (   80.02 ms per token)
llama_print_timings:        eval time = 15000.75 ms /   100 runs   (  150.01 ms per run)
llama_print_timings:       total time = 18150.00 ms
"""
TIMINGS_V1 = """\
llama_print_timings:        load time =  4100.25 ms
llama_print_timings:      sample time =    60.25 ms /   301 runs   (    0.20 ms per token,  4995.85 tokens per second)
llama_print_timings: prompt eval time =  5000.50 ms /   250 tokens (   20.00 ms per token,    49.99 tokens per second)
llama_print_timings:        eval time = 45000.75 ms /   300 runs   (  150.00 ms per token,     6.67 tokens per second)
llama_print_timings:       total time = 50200.25 ms
"""
TIMINGS_V2 = TIMINGS_V1.replace("50200.25 ms", "50200.25 ms /   550 tokens")
PERF = """\
llama_perf_sampler_print:    sampling time =     120.25 ms /   431 runs   (    0.28 ms per token,  3584.20 tokens per second)
llama_perf_context_print:        load time =    1500.25 ms
llama_perf_context_print: prompt eval time =     200.50 ms /    30 tokens (    6.68 ms per token,   149.63 tokens per second)
llama_perf_context_print:        eval time =    5000.75 ms /   400 runs   (   12.50 ms per token,    79.99 tokens per second)
llama_perf_context_print:       total time =    5400.25 ms /   430 tokens
llama_perf_context_print:    graphs reused =        398
"""
SPECULATIVE = """\
encoded   24 tokens in    0.120 seconds, speed:  200.000 t/s
decoded  400 tokens in   10.000 seconds, speed:   40.000 t/s

n_draft   = 8
n_predict = 400
n_drafted = 480
n_accept  = 310
accept    = 64.583%
"""
NITRO = """\
[1707000001] [/srv/nitro/llamaCPP.h:  477][           print_timings] print_timings: prompt eval time =    6000.50 ms /  1200 tokens (    5.00 ms per token,   199.98 tokens per second)
[1707000001] [/srv/nitro/llamaCPP.h:  482][           print_timings] print_timings:        eval time =   20000.75 ms /   401 runs   (   49.88 ms per token,    20.05 tokens per second)
[1707000001] [/srv/nitro/llamaCPP.h:  488][           print_timings] print_timings:       total time =   26001.25 ms
"""
OLLAMA_BLOCK = """\
total duration:       12.5s
load duration:        20.5ms
prompt eval count:    900 token(s)
prompt eval duration: 2.25s
prompt eval rate:     400.00 tokens/s
eval count:           250 token(s)
eval duration:        10.125s
eval rate:            24.69 tokens/s
"""
OLLAMA_GIN = """\
[GIN] 2026/06/01 - 10:00:05 | 200 | 14.250125s |       127.0.0.1 | POST     "/api/chat"
[GIN] 2026/06/01 - 10:00:06 | 200 |      45.2µs |       127.0.0.1 | GET      "/api/version"
[GIN] 2026/06/01 - 10:00:07 | 200 |      21.2µs |       127.0.0.1 | HEAD     "/"
[GIN] 2026/06/01 - 10:01:30 | 200 |         1m2s |       127.0.0.1 | POST     "/v1/chat/completions"
"""
OLLAMA_SERVER = """\
time=2026-06-01T09:59:50.100Z level=INFO source=server.go:105 msg=offload library=cuda layers.requested=-1 layers.model=33 layers.offload=20 layers.split=""
time=2026-06-01T10:00:00.500Z level=WARN source=runner.go:128 msg="truncating input prompt" limit=4096 prompt=6100 keep=4 new=4096
[GIN] 2026/06/01 - 10:00:05 | 200 | 14.250125s |       127.0.0.1 | POST     "/api/chat"
"""
OLLAMA_PS = """\
NAME            ID              SIZE      PROCESSOR          CONTEXT    UNTIL
heron:8b        0123456789ab    10 GB     25%/75% CPU/GPU    8192       4 minutes from now
"""
KOBOLD_2023_04 = "Time Taken - Processing:2.5s, Generation:5.5s, Total:8.0s\n"
KOBOLD_2023_06 = (
    "Time Taken - Processing:2.5s (5ms/T), Generation:5.5s (55ms/T), Total:8.0s (12.5T/s)\n"
)
KOBOLD_2024_01 = """\
Processing Prompt [BLAS] (800 / 800 tokens)
Generating (512 / 512 tokens)
ContextLimit: 900/8192, Processing:2.50s (3.1ms/T), Generation:5.50s (55.0ms/T)
Total:8.00s (12.50T/s)
"""
KOBOLD_2024_07 = (
    "CtxLimit:900/8192, Amt:100/512, Init:0.10s, Process:2.50s (3.1ms/T = 320.00T/s), "
    "Generate:5.50s (55.0ms/T = 18.18T/s), Total:8.00s (12.50T/s)\n"
)
KOBOLD_2025 = (
    "[11:22:33] CtxLimit:900/8192, Amt:100/512, Init:0.00s, Process:2.50s (320.00T/s), "
    "Generate:5.50s (18.18T/s), Total:8.00s\n"
)
KOBOLD_CUT = (
    "CtxLimit:8192/8192, Amt:100/512, Init:0.00s, Process:25.29s (320.00T/s), "
    "Generate:5.50s (18.18T/s), Total:30.79s\n"
)
TEXTGEN = (
    "11:22:33-123456 INFO     Output generated in 25.00 seconds (4.00 tokens/s, 100 tokens, "
    "context 640, seed 123456)\n"
)
TABBY_OLD = (
    "INFO:     Metrics: 120 tokens generated in 14.0 seconds (Queue: 0.5 s, "
    "Process: 500.0 T/s, Generate: 12.0 T/s, Context: 1500 tokens) \n"
)
TABBY_NEW = (
    "INFO:     Metrics (ID: 0a1b2c3d4e5f60718293a4b5c6d7e8f9): 120 tokens generated in 11.0 "
    "seconds (Queue: 0.0 s, Process: 1000 cached tokens and 500 new tokens at 500.0 T/s, "
    "Generate: 12.0 T/s, Context: 1500 tokens) Draft: 60 / 90 tokens accepted\n"
)
LMSTUDIO = """\
2026-06-01 10:00:20  [INFO]
 [heron-8b-q4_k_m] Running chat completion on conversation with 1 messages.
2026-06-01 10:00:21  [INFO]
 [heron-8b-q4_k_m] Prompt processing progress: 12.5%
"""
MLX = """\
==========
Prompt: 1500 tokens, 500.000 tokens-per-sec
Generation: 200 tokens, 40.000 tokens-per-sec
Peak memory: 6.100 GB
"""
MLX_SERVER = "2026-06-01 10:00:43,304 - INFO - Prompt processing progress: 2048/9000\n"
VLLM_V0 = (
    "INFO 06-01 10:00:26 metrics.py:349] Avg prompt throughput: 0.0 tokens/s, Avg generation "
    "throughput: 312.5 tokens/s, Running: 5 reqs, Swapped: 0 reqs, Pending: 2 reqs, GPU KV cache "
    "usage: 33.5%, CPU KV cache usage: 0.0%.\n"
)
VLLM_V1 = """\
(APIServer pid=311) INFO 06-01 10:00:41 [loggers.py:259] Engine 000: Avg prompt throughput: 120.5 tokens/s, Avg generation throughput: 210.5 tokens/s, Running: 3 reqs, Waiting: 1 reqs, GPU KV cache usage: 12.5%, Prefix cache hit rate: 40.0%
(APIServer pid=311) INFO 06-01 10:00:51 [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 290.5 tokens/s, Running: 6 reqs, Waiting: 0 reqs, GPU KV cache usage: 10.5%, Prefix cache hit rate: 40.0%
"""
SGLANG = """\
[2026-06-01 10:00:50 TP0] Decode batch. #running-req: 1, #token: 900, token usage: 0.01, gen throughput (token/s): 0.52, #queue-req: 0
[2026-06-01 10:00:58 TP0] Prefill batch. #new-seq: 2, #new-token: 1100, #cached-token: 30, cache hit rate: 2.50%, token usage: 0.17, #running-req: 3, #queue-req: 4
[2026-06-01 10:00:59 TP0] Decode batch. #running-req: 5, #token: 9100, token usage: 0.05, gen throughput (token/s): 9.25, #queue-req: 0
[2026-06-01 10:01:03 TP0] Decode batch. #running-req: 5, #token: 9300, token usage: 0.05, cuda graph: False, gen throughput (token/s): 250.50, #queue-req: 1, 
"""
SGLANG_2026 = """\
[2026-06-01 10:01:14 TP0] Prefill batch, #new-seq: 8, #new-token: 8000, #cached-token: 0, full token usage: 0.17, mamba usage: 0.23, #running-req: 30, #queue-req: 90, #pending-token: 100000, cuda graph: False, input throughput (token/s): 9000.55
[2026-06-01 10:01:15 TP0] Decode batch, #running-req: 32, #token: 120000, full token usage: 0.67, cuda graph: True, gen throughput (token/s): 901.25, #queue-req: 85, 
[2026-06-01 10:01:19 TP0] Decode batch, #running-req: 32, #token: 121000, full token usage: 0.68, cuda graph: True, gen throughput (token/s): 980.25, #queue-req: 80, 
"""
TGI = (
    '2026-06-01T10:00:48.169537Z  INFO chat_completions{total_time="4.25s" validation_time="2.5ms" '
    'queue_time="150.5ms" inference_time="4.0s" time_per_token="40ms" seed="Some(45)"}: '
    "text_generation_router::server: router/src/server.rs:622: Success\n"
)
LOAD = """\
load_backend: loaded CUDA backend from /app/libggml-cuda.so
load_tensors: offloaded 20/33 layers to GPU
load_tensors:        CUDA0 model buffer size =  2600.50 MiB
load_tensors:   CPU_Mapped model buffer size =  2100.25 MiB
llama_context: n_ctx         = 8192
llama_context: n_batch       = 2048
llama_context: n_ubatch      = 256
llama_context: flash_attn    = disabled
llama_kv_cache:      CUDA0 KV buffer size =   640.00 MiB
llama_kv_cache:        CPU KV buffer size =   384.00 MiB
llama_kv_cache: size = 1024.00 MiB (  8192 cells,  32 layers,  1/1 seqs), K (q8_0):  512.00 MiB, V (f16):  512.00 MiB
llama_context: graph splits = 26
system_info: n_threads = 6 (n_threads_batch = 6) / 12 | CUDA : ARCHS = 890
"""
CARD = """\
    Clocks Event Reasons
        SW Power Cap                      : Active
        HW Thermal Slowdown               : Not Active
        SW Thermal Slowdown               : Active
        GPU Current Temp                  : 88 C
"""

SAMPLES: dict[str, Sample] = {
    "llama-server 2026": Sample(
        text=SERVER_2026,
        requests=((5600, 600, 5000, 201, 4.0, 4.00025, 200, 8.00025),),
        runtime="llama-server",
        facts={"n_ctx": 16384},
        signs={"slot": 2, "chosen_by": "similarity", "similarity_frac": 0.64, "kept_frac": 0.91},
    ),
    "llama-server 2025": Sample(
        text=SERVER_2025,
        requests=((1500, 500, 1000, 101, 1.2505, 3.30075, 100, 4.55125),),
        runtime="llama-server",
        facts={"n_ctx": 8192},
    ),
    "llama-server 2024, released before it is timed": Sample(
        text=SERVER_2024,
        requests=((700, 0, 700, 50, 1.4005, 2.45075, 49, 3.85125),),
        runtime="llama-server",
        facts={"n_ctx": 4096},
    ),
    "llama-server 2023": Sample(
        text=SERVER_2023,
        requests=((500, 120, 380, 61, 7.6005, 6.06075, 60, 13.66125),),
        runtime="llama-server",
    ),
    "llama-server JSON": Sample(
        text=SERVER_JSON,
        requests=((500, 90, 410, 101, 0.5055, 4.00075, 100, 4.50625),),
        runtime="llama-server",
    ),
    "llama-server text logger": Sample(
        text=SERVER_TEXT,
        requests=((None, None, 1800, 101, 9.0005, 10.00075, 100, 19.00125),),
        runtime="llama-server",
    ),
    "timings v0": Sample(
        text=TIMINGS_V0,
        requests=((25, None, 25, 101, 2.0005, 15.00075, 100, 18.15),),
        signs={"sampling_s": 0.0405},
    ),
    "timings v1": Sample(
        text=TIMINGS_V1, requests=((250, None, 250, 301, 5.0005, 45.00075, 300, 50.20025),)
    ),
    "timings v2": Sample(
        text=TIMINGS_V2, requests=((250, None, 250, 301, 5.0005, 45.00075, 300, 50.20025),)
    ),
    "timings after a prefix hit": Sample(
        text="Llama.generate: prefix-match hit\n" + TIMINGS_V1,
        requests=((None, None, 250, 301, 5.0005, 45.00075, 300, 50.20025),),
    ),
    "perf": Sample(
        text=PERF, requests=((30, None, 30, 401, 0.2005, 5.00075, 400, 5.40025),)
    ),
    "speculative": Sample(
        text=SPECULATIVE,
        requests=((24, None, 24, 400, 0.12, 10.0, 400, None),),
        signs={"drafted_tokens": 480, "accepted_tokens": 310},
    ),
    "nitro": Sample(
        text=NITRO, requests=((None, None, 1200, 401, 6.0005, 20.00075, 400, 26.00125),)
    ),
    "ollama block": Sample(
        text=OLLAMA_BLOCK,
        requests=((900, None, 900, 250, 2.25, 10.125, 249, 12.5),),
        runtime="ollama",
    ),
    "ollama access lines": Sample(
        text=OLLAMA_GIN,
        requests=(
            (None, None, None, None, None, None, None, 14.250125),
            (None, None, None, None, None, None, None, 62.0),
        ),
        runtime="ollama",
        end_to_end=2,
    ),
    "ollama server": Sample(
        text=OLLAMA_SERVER,
        requests=((None, None, None, None, None, None, None, 14.250125),),
        runtime="ollama",
        facts={"layers_total": 33, "layers_offloaded": 20, "n_ctx": 4096},
        signs={"context_cut": True},
        end_to_end=1,
    ),
    "ollama ps": Sample(
        text=OLLAMA_PS,
        runtime="ollama",
        facts={"size_bytes": 10**10, "size_vram_bytes": 75 * 10**8, "n_ctx": 8192},
    ),
    "koboldcpp April 2023": Sample(
        text=KOBOLD_2023_04,
        requests=((None, None, None, None, 2.5, None, None, 8.0),),
        runtime="koboldcpp",
    ),
    "koboldcpp June 2023": Sample(
        text=KOBOLD_2023_06,
        requests=((None, None, 500, 100, 2.5, 5.5, 100, 8.0),),
        runtime="koboldcpp",
    ),
    "koboldcpp January 2024": Sample(
        text=KOBOLD_2024_01,
        requests=((800, 0, 800, 100, 2.5, 5.5, 100, 8.0),),
        runtime="koboldcpp",
        facts={"n_ctx": 8192},
    ),
    "koboldcpp July 2024": Sample(
        text=KOBOLD_2024_07,
        requests=((800, 0, 800, 100, 2.5, 5.5, 100, 8.0),),
        runtime="koboldcpp",
        facts={"n_ctx": 8192},
    ),
    "koboldcpp 2025": Sample(
        text=KOBOLD_2025,
        requests=((800, 0, 800, 100, 2.5, 5.5, 100, 8.0),),
        runtime="koboldcpp",
        facts={"n_ctx": 8192},
    ),
    "koboldcpp full context": Sample(
        text=KOBOLD_CUT,
        requests=((8092, 0, 8092, 100, 25.29, 5.5, 100, 30.79),),
        runtime="koboldcpp",
        facts={"n_ctx": 8192},
        signs={"context_cut": True},
    ),
    "text-generation-webui": Sample(
        text=TEXTGEN,
        requests=((640, None, None, 100, None, None, None, 25.0),),
        end_to_end=1,
    ),
    "tabbyAPI old": Sample(
        text=TABBY_OLD,
        requests=((1500, None, None, 120, 3.0, 10.0, 120, 14.0),),
        runtime="tabbyapi",
    ),
    "tabbyAPI new": Sample(
        text=TABBY_NEW,
        requests=((1500, 1000, 500, 120, 1.0, 10.0, 120, 11.0),),
        runtime="tabbyapi",
        signs={"accepted_tokens": 60, "drafted_tokens": 90},
    ),
    "LM Studio": Sample(text=LMSTUDIO, runtime="lmstudio"),
    "mlx_lm": Sample(
        text=MLX, requests=((1500, None, 1500, 200, 3.0, 5.0, 200, None),), runtime="mlx_lm"
    ),
    "vLLM v0": Sample(
        text=VLLM_V0,
        runtime="vllm",
        summary={
            "generation_tps_max": 312.5,
            "running_max": 5,
            "waiting_max": 2,
            "kv_cache_usage_max_pct": 33.5,
        },
    ),
    "vLLM v1": Sample(
        text=VLLM_V1,
        runtime="vllm",
        summary={
            "generation_tps_max": 290.5,
            "running_max": 6,
            "waiting_max": 1,
            "kv_cache_usage_max_pct": 12.5,
        },
    ),
    "SGLang": Sample(
        text=SGLANG,
        runtime="sglang",
        facts={"cuda_graph": False},
        summary={"generation_tps_max": 250.5, "running_max": 5, "queue_max": 4},
    ),
    "SGLang 2026": Sample(
        text=SGLANG_2026,
        runtime="sglang",
        summary={"generation_tps_max": 980.25, "running_max": 32, "queue_max": 90},
    ),
    "TGI": Sample(
        text=TGI,
        requests=((None, None, None, 100, None, None, None, 4.25),),
        end_to_end=1,
    ),
    "llama.cpp load": Sample(
        text=LOAD,
        facts={
            "layers_offloaded": 20,
            "layers_total": 33,
            "n_ctx": 8192,
            "n_batch": 2048,
            "n_ubatch": 256,
            "flash_attn": False,
            "kv_type_k": "q8_0",
            "kv_type_v": "f16",
            "kv_cache_on_cpu": True,
            "graph_splits": 26,
            "threads": 6,
            "threads_hw": 12,
            "backend": "cuda",
            "devices": 1,
        },
    ),
}  # fmt: skip
WITH_REQUESTS = {name: one for name, one in SAMPLES.items() if one.requests}
