"""Benchmark tables and exports: every row a point, with what it says about its set-up."""

from __future__ import annotations

import pytest

from twospeed.sources.logs.documents.bench_rows import parse_test
from twospeed.sources.logs.documents.registry import read_document


def rows(content):
    return [(p.phase, p.tokens, p.depth_tokens, p.tps, p.sd) for p in content.points]


def test_llama_bench_markdown(told):
    content = told("llama_bench.md")
    assert rows(content) == [
        ("prefill", 512, 0, 3021.55, 12.5),
        ("decode", 128, 0, 88.21, 0.3),
        ("prefill", 512, 8192, 1804.1, 20.0),
        ("decode", 128, 8192, 61.02, 0.25),
        ("mixed", 640, 0, 390.4, 1.1),
    ]
    assert content.points[0].settings == {
        "model": "wren 7B Q5_K - Medium",
        "size_bytes": 5 * 2**30,
        "parameters": 7_200_000_000,
        "backend": "cuda",
        "layers_offloaded": 99,
        "n_ubatch": 1024,
        "flash_attn": True,
        "test": "pp512",
    }
    assert [point.line for point in content.points] == [7, 8, 10, 11, 12]
    assert content.runtime_version == "b6123"


def test_what_all_rows_say_alike_is_a_fact_and_99_layers_are_none(told):
    facts = told("llama_bench.md").facts
    assert (facts.n_ubatch, facts.flash_attn, facts.backend) == (1024, True, "cuda")
    assert facts.quantization == "Q5_K"
    assert facts.layers_offloaded is None
    assert facts.n_batch is None


def test_rows_of_an_old_csv_that_forgot_a_column_name_are_read_from_the_right(told):
    content = told("llama_bench.csv")
    assert rows(content) == [
        ("prefill", 512, 0, 2560.0, 8.9),
        ("decode", 128, 0, 128.0, 0.37),
    ]
    assert content.facts.model_path == "models/wren-7b.gguf"
    assert (content.facts.n_batch, content.facts.threads) == (512, 16)


def test_llama_bench_json_takes_the_time_where_the_speed_is_no_number(told):
    content = told("llama_bench.json")
    assert rows(content) == [("prefill", 1024, 0, 1024.5, 2.25), ("decode", 64, 2048, 32.0, None)]
    assert content.facts.n_batch == 2048
    assert content.facts.n_ubatch is None, "it differs between the rows"
    assert [point.settings["n_ubatch"] for point in content.points] == [512, 256]
    assert (content.facts.backend, content.facts.kv_type_k) == ("metal", "q8_0")
    assert content.facts.kv_cache_on_cpu is None


def test_a_cache_kept_off_the_device_is_a_fact():
    content = read_document(
        '{"n_prompt": 8, "n_gen": 0, "avg_ts": 5.0, "no_kv_offload": true, "flash_attn": 0}'
    )
    assert content is not None
    assert content.facts.kv_cache_on_cpu is True
    assert content.facts.flash_attn is False


def test_llama_bench_sql_with_quoted_numbers_and_brackets_in_a_name(told):
    content = told("llama_bench.sql")
    assert rows(content) == [("prefill", 256, 0, 640.125, 3.5), ("mixed", 288, 512, 88.0, 0.5)]
    assert content.model == "wren's 7B (Q4_0)"


@pytest.mark.parametrize("sign", ["±", "Â±", "+-", "+/-", "\ufffd", ""])
@pytest.mark.parametrize("mark", [".", ","])
def test_speed_and_spread_in_every_disguise(sign, mark):
    cell = f"4454.16 {sign} 13.74".replace(".", mark)
    content = read_document(f"| model | test | t/s |\n|---|--:|--:|\n| a | pp 512 | {cell} |\n")
    assert content is not None
    assert rows(content) == [("prefill", 512, 0, 4454.16, 13.74)]


def test_rows_of_a_test_that_is_not_known_are_counted():
    content = read_document("| model | test | t/s |\n| a | pp512 | 9.5 |\n| a | xx99 | 8.5 |")
    assert content is not None
    assert (len(content.points), content.unread) == (1, 1)


@pytest.mark.parametrize("cell", ["inf ± nan", "nan", "0.00 ± 0.00", "-5.0", "", "1e300"])
def test_a_speed_that_cannot_be_one_is_no_point(cell):
    assert read_document(f"| model | test | t/s |\n| a | pp512 | {cell} |") is None


def test_a_table_with_marks_around_its_lines_and_folded_spaces():
    content = read_document(
        "> | model | backend | test | t/s |\r\n> | --- | --- | ---: | ---: |\r\n"
        "> **| a | Metal,BLAS | tg128 | 20.5 ± 0.1 |** <----\r\n"
    )
    assert content is not None
    assert rows(content) == [("decode", 128, 0, 20.5, 0.1)]
    assert content.facts.backend == "metal"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("pp512", ("prefill", 512, 0)),
        ("pp 512", ("prefill", 512, 0)),
        ("tg128 @ d4096", ("decode", 128, 4096)),
        ("tg64@pp2048", ("decode", 64, 2048)),
        ("pp512+tg128 @ d10", ("mixed", 640, 10)),
        ("ctx_pp @ d2048", ("prefill", 2048, 0)),
        ("ctx_tg @ d2048", ("decode", None, 2048)),
    ],
)
def test_names_of_tests(name, expected):
    test = parse_test(name)
    assert test is not None
    assert (test.phase, test.tokens, test.depth_tokens) == expected


@pytest.mark.parametrize("name", ["", "pp", "pp0x", "xpp512", "tg1+tg2", "pp512 tg128", "fim"])
def test_no_other_word_is_a_test(name):
    assert parse_test(name) is None


def test_sweep_gives_both_phases_at_each_depth(told):
    assert rows(told("sweep_bench.md")) == [
        ("prefill", 512, 0, 500.0, None),
        ("decode", 128, 0, 20.0, None),
        ("prefill", 512, 4096, 400.0, None),
        ("decode", 128, 4096, 16.0, None),
    ]


def test_settings_above_the_table_of_a_sweep_are_its_settings(told):
    facts = told("sweep_bench.md").facts
    assert (facts.n_batch, facts.n_ubatch, facts.flash_attn) == (2048, 512, True)


def test_sweep_as_json_tells_its_settings(told):
    content = told("sweep_bench.jsonl")
    assert rows(content) == [("prefill", 512, 512, 500.0, None), ("decode", 128, 512, 20.0, None)]
    assert (content.facts.n_batch, content.facts.threads) == (2048, 8)
    assert content.facts.flash_attn is True


def test_a_speed_that_contradicts_count_and_time_is_computed():
    content = read_document(
        '{"pp": 100, "tg": 10, "n_kv": 0, "t_pp": 2.0, "speed_pp": 999.0, "t_tg": 1.0}'
    )
    assert content is not None
    assert rows(content) == [("prefill", 100, 0, 50.0, None), ("decode", 10, 0, 10.0, None)]


def test_a_batch_decodes_once_for_all_and_may_share_its_prompt(told):
    content = told("batched_bench.md")
    assert rows(content) == [
        ("prefill", 128, 0, 1280.0, None),
        ("decode", 128, 128, 40.0, None),
        ("prefill", 128, 0, 1280.0, None),
        ("decode", 128, 128, 20.0, None),
        ("prefill", 256, 0, 1280.0, None),
        ("decode", 64, 256, 20.0, None),
    ]
    assert [point.settings["slots"] for point in content.points] == [1, 1, 4, 4, 4, 4]


def test_llama_benchy_markdown(told):
    assert rows(told("llama_benchy.md")) == [
        ("prefill", 2048, 0, 2000.5, 10.0),
        ("decode", 32, 0, 60.25, 0.5),
        ("prefill", 4096, 0, 1900.0, 9.0),
        ("decode", None, 4096, 50.0, 0.4),
        ("prefill", 2048, 4096, 1500.0, 8.0),
    ]


def test_llama_benchy_exports_keep_the_decode_of_one_answer(told):
    content = told("llama_benchy.json")
    assert rows(content) == [
        ("prefill", 2048, 4096, 2000.0, 10.0),
        ("decode", 32, 4096, 48.0, 0.5),
    ]
    assert (content.model, content.facts.prefix_cache_enabled) == ("wren-7b", True)
    assert rows(told("llama_benchy.csv")) == [
        ("prefill", 512, 0, 1800.5, 9.5),
        ("decode", 64, 0, 31.5, 0.25),
    ]


def test_steps_of_tgi_per_batch_size(told):
    assert rows(told("tgi_benchmark.md")) == [
        ("prefill", 500, 0, pytest.approx(10_000.0), None),
        ("prefill", 500, 0, pytest.approx(1000 / 0.09), None),
        ("decode", 8, 500, pytest.approx(50.0), None),
        ("decode", 8, 500, pytest.approx(40.0), None),
    ]


def test_exllama_lists(told):
    assert rows(told("exllama_perf.txt")) == [
        ("prefill", 256, 0, 150.5, None),
        ("prefill", 1024, 0, 400.25, None),
        ("decode", None, 0, 20.5, None),
        ("decode", None, 4096, 18.25, None),
    ]


def test_trials_of_mlx_without_their_average(told):
    content = told("mlx_benchmark.txt")
    assert rows(content) == [
        ("prefill", 512, 0, 500.5, None),
        ("decode", 128, 512, 40.0, None),
        ("prefill", 512, 0, 510.0, None),
        ("decode", 128, 512, 41.0, None),
    ]
    assert content.runtime == "mlx_lm"


def test_koboldcpp_benchmark_is_one_request(told):
    content = told("koboldcpp.txt")
    (record,) = content.records
    assert (record.counts.prompt_tokens, record.counts.output_tokens) == (3996, 100)
    assert record.server is not None
    assert (record.server.prefill_s, record.server.prefill_tokens) == (2.0, 3996)
    assert (record.server.decode_s, record.server.total_s) == (2.5, 4.5)
    assert (content.runtime, content.facts.n_ctx) == ("koboldcpp", 4096)
    assert content.model == "wren-7b-Q4_K_M"
