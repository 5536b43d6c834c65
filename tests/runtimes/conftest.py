"""What endpoints answer: captured from running servers, or written after their documentation."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from twospeed.runtimes.runtime import Answer, Generation
from twospeed.wire.reading import StreamReading

CAPTURES = Path(__file__).parent / "captures"
GOLANG_404 = Answer(status=404, body=b"404 page not found")
FASTAPI_404 = {"detail": "Not Found"}


def parsed(body: bytes) -> object:
    try:
        return json.loads(body)
    except ValueError:
        return None


def captured(path: Path) -> Answer:
    head, _, body = path.read_bytes().partition(b"\n\n")
    status, *lines = head.decode().splitlines()
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    return Answer(status=int(status.split()[1]), headers=headers, body=body, json=parsed(body))


def told(value: object, status: int = 200, **headers: str) -> Answer:
    body = value.encode() if isinstance(value, str) else json.dumps(value).encode()
    return Answer(status=status, headers=headers, body=body, json=parsed(body))


class Endpoint(dict[str, Answer]):
    """Answers by path; a path that is not there answers like the others that are not there."""

    def __init__(self, answers: Mapping[str, Answer], missing: Answer) -> None:
        super().__init__(answers)
        self.missing = missing

    def seen_by(self, paths: list[str]) -> dict[str, Answer]:
        return {path: self.get(path, self.missing) for path in paths}


def from_captures(name: str, missing: str) -> Endpoint:
    folder = CAPTURES / name
    paths = ("props", "v1/models", "health", "slots", "version", "metrics", "api/version")
    files = {f"/{path}": folder / f"{path.replace('/', '_')}.txt" for path in paths}
    found = {path: captured(file) for path, file in files.items() if file.exists()}
    return Endpoint(found, captured(folder / f"{missing}.txt"))


OLLAMA_PS = {
    "models": [
        {
            "name": "heron:14b",
            "model": "heron:14b",
            "size": 12_884_901_888,
            "digest": "c0ffee",
            "details": {
                "format": "gguf",
                "family": "qwen3",
                "parameter_size": "14.8B",
                "quantization_level": "Q4_K_M",
            },
            "expires_at": "2026-11-30T21:03:46Z",
            "size_vram": 8_589_934_592,
            "context_length": 16384,
        }
    ]
}
OLLAMA_SHOW = {
    "details": {"quantization_level": "Q4_K_M", "family": "qwen3"},
    "model_info": {
        "general.architecture": "qwen3",
        "general.parameter_count": 14_768_307_200,
        "qwen3.block_count": 40,
        "qwen3.context_length": 40960,
    },
    "capabilities": ["completion", "thinking"],
}
OLLAMA_MODELS = [
    {"id": "osprey:8b", "object": "model", "created": 1, "owned_by": "library"},
    {"id": "heron:14b", "object": "model", "created": 1, "owned_by": "library"},
]
LM_STUDIO_V1 = {
    "models": [
        {
            "type": "embedding",
            "publisher": "gaianet",
            "key": "text-embedding-nomic",
            "size_bytes": 274290560,
            "loaded_instances": [],
            "max_context_length": 2048,
        },
        {"type": "llm", "key": "osprey-8b", "loaded_instances": [], "max_context_length": 8192},
        {
            "type": "llm",
            "publisher": "lmstudio-community",
            "key": "gemma-3-270m-it-qat",
            "architecture": "gemma3",
            "quantization": {"name": "Q4_0", "bits_per_weight": 4},
            "size_bytes": 241410208,
            "params_string": "270M",
            "loaded_instances": [
                {
                    "id": "gemma-3-270m-it-qat:2",
                    "config": {
                        "context_length": 4096,
                        "eval_batch_size": 512,
                        "flash_attention": True,
                        "offload_kv_cache_to_gpu": True,
                    },
                }
            ],
            "max_context_length": 32768,
            "format": "gguf",
        },
    ]
}
LM_STUDIO_V0 = {
    "object": "list",
    "data": [
        {
            "id": "qwen2-vl-7b-instruct",
            "object": "model",
            "type": "vlm",
            "compatibility_type": "mlx",
            "quantization": "4bit",
            "state": "not-loaded",
            "max_context_length": 32768,
        },
        {
            "id": "text-embedding-nomic",
            "object": "model",
            "type": "embeddings",
            "compatibility_type": "gguf",
            "state": "loaded",
            "max_context_length": 2048,
        },
        {
            "id": "meta-llama-3.1-8b-instruct",
            "object": "model",
            "type": "llm",
            "compatibility_type": "gguf",
            "quantization": "Q4_K_M",
            "state": "loaded",
            "max_context_length": 131072,
            "loaded_context_length": 8192,
        },
    ],
}


def model_list(*entries: Mapping[str, object]) -> dict[str, object]:
    return {"object": "list", "data": [{"object": "model", **entry} for entry in entries]}


def ollama_answers() -> dict[str, Answer]:
    return {
        "/": told("Ollama is running"),
        "/api/version": told({"version": "0.33.3"}),
        "/api/ps": told(OLLAMA_PS),
        "/api/show": told(OLLAMA_SHOW),
        "/api/tags": told({"models": []}),
        "/v1/models": told(model_list(*OLLAMA_MODELS)),
    }


def sglang_answers() -> dict[str, Answer]:
    info = {
        "model_path": "org/heron",
        "context_length": None,
        "kv_cache_dtype": "fp8_e5m2",
        "chunked_prefill_size": 8192,
        "max_running_requests": 48,
        "disable_radix_cache": False,
        "page_size": 1,
        "enable_cache_report": False,
        "quantization": None,
        "version": "0.5.23",
    }
    model = {"id": "org/heron", "owned_by": "sglang", "root": "org/heron", "max_model_len": 32768}
    return {
        "/": told("Ollama is running", server="uvicorn"),
        "/api/version": told({"version": "0.5.23"}, server="uvicorn"),
        "/api/tags": told({"models": [{"name": "org/heron"}]}, server="uvicorn"),
        "/model_info": told({"model_path": "org/heron", "is_generation": True}, server="uvicorn"),
        "/server_info": told(info, server="uvicorn"),
        "/v1/models": told(model_list(model), server="uvicorn"),
        "/metrics": told("sglang:num_running_reqs 2.0\nsglang:num_queue_reqs 1.0\n"),
    }


def documented() -> dict[str, Endpoint]:
    kobold = {
        "/": told("<html>KoboldAI Lite</html>"),
        "/api/extra/version": told({"result": "KoboldCpp", "version": "1.122.1"}),
        "/api/extra/perf": told({"last_process": 1.5, "queue": 2, "idle": 0}),
        "/api/extra/true_max_context_length": told({"value": 16384}),
        "/api/version": told({"version": "0.7.0"}),
        "/api/tags": told({"models": []}),
        "/v1/models": told(model_list({"id": "koboldcpp/heron", "owned_by": "koboldcpp"})),
        "/props": told({"chat_template": "", "total_slots": 1}),
    }
    card = {
        "id": "heron-exl3",
        "owned_by": "tabbyAPI",
        "parameters": {"max_seq_len": 32768, "cache_mode": "Q8", "chunk_size": 2048},
    }
    tabby = {
        "/v1/models": told(
            model_list({"id": "draft", "owned_by": "tabbyAPI"}, card), server="uvicorn"
        ),
        "/v1/model": told(card, server="uvicorn"),
        "/health": told({"status": "healthy", "issues": []}, server="uvicorn"),
        "/props": told({"total_slots": 4, "chat_template": ""}, server="uvicorn"),
    }
    lm_studio_models = model_list({"id": "gemma-3-270m-it-qat", "owned_by": "organization_owner"})
    lm_studio = {
        "/api/v1/models": told(LM_STUDIO_V1),
        "/api/v0/models": told(LM_STUDIO_V0),
        "/v1/models": told(lm_studio_models),
    }
    old_lm_studio = {"/api/v0/models": told(LM_STUDIO_V0), "/v1/models": told(lm_studio_models)}
    mistral = {
        "/health": told("OK"),
        "/v1/models": told(
            model_list(
                {"id": "default", "owned_by": "local"}, {"id": "org/heron", "owned_by": "local"}
            )
        ),
    }
    # Lemonade and others answer /api/v1/models too, in the form of OpenAI.
    other = {
        "/v1/models": told(model_list({"id": "heron", "owned_by": "someone"})),
        "/api/v1/models": told(model_list({"id": "heron", "owned_by": "someone"})),
        "/health": told({"status": "ok"}),
        "/version": told({"version": "2.0"}),
    }
    return {
        "ollama": Endpoint(ollama_answers(), GOLANG_404),
        "sglang": Endpoint(sglang_answers(), told(FASTAPI_404, 404, server="uvicorn")),
        "koboldcpp": Endpoint(kobold, told("Error: this endpoint does not exist", 404)),
        "tabbyapi": Endpoint(tabby, told(FASTAPI_404, 404, server="uvicorn")),
        "lmstudio": Endpoint(lm_studio, told({"error": "Unexpected endpoint"})),
        "lmstudio-0.3": Endpoint(old_lm_studio, told({"error": "Unexpected endpoint"})),
        "mistralrs": Endpoint(mistral, Answer(status=404)),
        "openai": Endpoint(other, Answer(status=404)),
    }


@pytest.fixture(scope="session")
def endpoints() -> dict[str, Endpoint]:
    """Everything that an endpoint of each runtime answers, by the runtime's id."""
    return {
        "llama-server": from_captures("llama-server", "version"),
        "vllm": from_captures("vllm", "props"),
        "transformers": from_captures("transformers", "version"),
        "mlx_lm": from_captures("mlx_lm", "version"),
        **documented(),
    }


@pytest.fixture(scope="session")
def capture() -> Callable[[str, str], Answer]:
    """One captured answer, by runtime and name."""
    return lambda runtime, name: captured(CAPTURES / runtime / f"{name}.txt")


@pytest.fixture(scope="session")
def tell() -> Callable[..., Answer]:
    """An answer made of JSON or text."""
    return told


@pytest.fixture
def chat() -> Generation:
    """A request as the experiment makes them."""
    return Generation(model="heron", prompt="Count.", output_tokens=6)


@pytest.fixture(scope="session")
def read() -> Callable[..., StreamReading]:
    """A response that said these objects."""
    return lambda usage=None, timings=None, **more: StreamReading(
        usage=usage, timings=timings, **more
    )
