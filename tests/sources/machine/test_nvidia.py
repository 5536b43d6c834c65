"""NVIDIA's library as a stand-in that answers what a card answered, or refuses."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from msgspec.structs import asdict

from twospeed.records.run import GraphicsDevice
from twospeed.sources.machine.nvidia import (
    PROCESS_LISTS,
    REASONS,
    nvidia_seems_present,
    open_nvidia,
)

GIB = 2**30
RTX_3090 = {
    "nvmlDeviceGetName": "NVIDIA GeForce RTX 3090",
    "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=24 * GIB, used=20 * GIB),
    "nvmlDeviceGetUtilizationRates": SimpleNamespace(gpu=87, memory=60),
    "nvmlDeviceGetCurrentClocksEventReasons": 0x1 | 0x4 | 0x20,
    "nvmlDeviceGetPowerUsage": 349_500,
    "nvmlDeviceGetEnforcedPowerLimit": 350_000,
    "nvmlDeviceGetTemperature": 83,
    "nvmlDeviceGetCurrPcieLinkGeneration": 4,
    "nvmlDeviceGetCurrPcieLinkWidth": 8,
    "nvmlDeviceGetMemoryBusWidth": 384,
    "nvmlDeviceGetComputeRunningProcesses": [
        SimpleNamespace(pid=7, usedGpuMemory=16 * GIB),
        SimpleNamespace(pid=8, usedGpuMemory=3 * GIB),
    ],
    "nvmlDeviceGetGraphicsRunningProcesses": [SimpleNamespace(pid=9, usedGpuMemory=GIB)],
}
CLOCKS = {"nvmlDeviceGetClockInfo": {1: 1395}, "nvmlDeviceGetMaxClockInfo": {1: 2100, 2: 9751}}


class FakeNvml:
    """Answers from a table; what is not in it is not supported."""

    class NVMLError(Exception):
        """Stands for every refusal of the library."""

    def __init__(self, answers, *, devices=1, refuses=(), lacks=()):
        self._answers = answers
        self._devices = devices
        self._refuses = refuses
        self._lacks = lacks
        self.calls = []

    def __getattr__(self, name):
        if not name.startswith("nvml") or name in self._lacks:
            raise AttributeError(name)
        return lambda *arguments: self._answer(name, *arguments)

    def _answer(self, name, *arguments):
        self.calls.append(name)
        if name in self._refuses:
            raise self.NVMLError(name)
        if name in {"nvmlInit", "nvmlShutdown"}:
            return None
        if name == "nvmlDeviceGetCount":
            return self._devices
        if name == "nvmlDeviceGetHandleByIndex":
            return f"handle {arguments[0]}"
        assert arguments[0].startswith("handle")
        if name in CLOCKS and arguments[1] in CLOCKS[name]:
            return CLOCKS[name][arguments[1]]
        if name not in self._answers:
            raise self.NVMLError(name)
        return self._answers[name]


def reader(*, answers=RTX_3090, **how):
    return open_nvidia(lambda: FakeNvml(answers, **how))


EXPECTED = GraphicsDevice(
    name="NVIDIA GeForce RTX 3090",
    memory_total_bytes=24 * GIB,
    memory_used_bytes=20 * GIB,
    utilisation_frac=0.87,
    clock_hz=1.395e9,
    clock_max_hz=2.1e9,
    throttled_by=("power_cap", "thermal"),
    power_w=349.5,
    power_limit_w=350.0,
    temperature_c=83,
    pcie_generation=4,
    pcie_lanes=8,
    bandwidth_bytes_per_s=936.096e9,
)


def test_a_card_at_work():
    assert reader().look() == (EXPECTED,)
    assert reader(devices=2).look() == (EXPECTED, EXPECTED)


def test_the_memory_of_others_is_what_is_not_the_servers():
    (device,) = reader().look_closely(frozenset({7, 9}))
    assert device.memory_used_by_others_bytes == 3 * GIB


def test_in_a_container_nobody_can_be_told_apart():
    (device,) = reader().look_closely(frozenset({1}))
    assert device.memory_used_by_others_bytes is None


def test_a_process_whose_memory_is_not_told_leaves_the_sum_unknown():
    hidden = [SimpleNamespace(pid=7, usedGpuMemory=1), SimpleNamespace(pid=8, usedGpuMemory=None)]
    answers = RTX_3090 | {"nvmlDeviceGetComputeRunningProcesses": hidden}
    (device,) = reader(answers=answers).look_closely(frozenset({7}))
    assert device.memory_used_by_others_bytes is None


QUESTIONS = [name for name in [*RTX_3090, *CLOCKS] if name not in PROCESS_LISTS]


@pytest.mark.parametrize("way", ["refuses", "lacks"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_without_an_answer_leaves_only_its_fields_unknown(question, way):
    (device,) = reader(**{way: (question,)}).look()
    changed = {name for name, value in asdict(device).items() if value != asdict(EXPECTED)[name]}
    assert 1 <= len(changed) <= 2
    assert all(not getattr(device, name) for name in changed - {"name"})


def test_a_driver_that_refuses_everything_still_names_its_device():
    assert reader(answers={}, refuses=tuple(CLOCKS)).look() == (GraphicsDevice(name="NVIDIA"),)


def test_an_older_module_has_another_name_for_the_reasons():
    older = {"nvmlDeviceGetCurrentClocksThrottleReasons": 0x80}
    (device,) = reader(
        answers=RTX_3090 | older, lacks=("nvmlDeviceGetCurrentClocksEventReasons",)
    ).look()
    assert device.throttled_by == ("power_brake",)


def test_an_older_module_answers_in_bytes():
    (device,) = reader(answers=RTX_3090 | {"nvmlDeviceGetName": b"Tesla T4"}).look()
    assert device.name == "Tesla T4"


def test_idling_is_no_reason():
    (device,) = reader(answers=RTX_3090 | {"nvmlDeviceGetCurrentClocksEventReasons": 1}).look()
    assert device.throttled_by == ()


@pytest.mark.parametrize("call", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex"])
def test_without_a_driver_there_is_no_reader(call):
    assert reader(refuses=(call,)) is None
    assert reader(devices=0) is None


def test_without_the_module_there_is_no_reader():
    def missing():
        raise ModuleNotFoundError("pynvml")

    assert open_nvidia(missing) is None


def test_the_library_is_let_go_even_when_it_refuses():
    for refuses in ((), ("nvmlShutdown",)):
        nvml = FakeNvml(RTX_3090, refuses=refuses)
        open_nvidia(lambda nvml=nvml: nvml).close()
        assert nvml.calls[-1] == "nvmlShutdown"


@pytest.mark.parametrize(
    ("files", "present"),
    [
        (["dev/nvidia0"], True),
        (["dev/nvidiactl"], False),
        (["dev/dxg"], False),
        (["dev/dxg", "usr/lib/wsl/lib/libnvidia-ml.so.1"], True),
        ([], False),
    ],
)
def test_where_a_driver_of_nvidia_shows_itself(machine, files, present):
    assert nvidia_seems_present(machine(dict.fromkeys(files, ""))) is present


def test_the_module_has_what_is_asked_of_it():
    module = pytest.importorskip("pynvml")
    for name in [*QUESTIONS, *PROCESS_LISTS, "nvmlInit", "nvmlShutdown", "nvmlDeviceGetCount"]:
        assert callable(getattr(module, name)), name
    assert (module.NVML_CLOCK_SM, module.NVML_CLOCK_MEM, module.NVML_TEMPERATURE_GPU) == (1, 2, 0)
    bits = {value for name, value in vars(module).items() if name.startswith("nvmlClocksEventReas")}
    assert set(REASONS) <= bits
