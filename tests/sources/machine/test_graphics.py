"""Graphics devices of every maker, and one picture from several looks."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from twospeed.records.run import GraphicsDevice
from twospeed.sources.machine.amd import open_amd, shader_clocks_hz
from twospeed.sources.machine.apple import AppleGraphics, swapped_in_bytes
from twospeed.sources.machine.graphics import (
    GraphicsWatch,
    graphics_devices,
    open_readers,
    over_the_run,
)
from twospeed.sources.machine.intel import open_intel

AMD = "sys/class/drm/card1/device"
RADEON = {
    f"{AMD}/vendor": "0x1002",
    f"{AMD}/device": "0x744c",
    f"{AMD}/mem_info_vram_total": 25_753_026_560,
    f"{AMD}/mem_info_vram_used": 20_000_000_000,
    f"{AMD}/mem_info_gtt_used": 3_000_000_000,
    f"{AMD}/gpu_busy_percent": 97,
    f"{AMD}/pp_dpm_sclk": "0: 500Mhz \n1: 2124Mhz *\n2: 2482Mhz ",
    f"{AMD}/current_link_speed": "16.0 GT/s PCIe",
    f"{AMD}/current_link_width": 16,
    f"{AMD}/hwmon/hwmon3/power1_average": 303_000_000,
    f"{AMD}/hwmon/hwmon3/power1_cap": 339_000_000,
    f"{AMD}/hwmon/hwmon3/temp1_input": 64_000,
    "sys/class/drm/card1-DP-1/device/vendor": "0x1002",
}


def test_amd_as_its_driver_shows_it(machine):
    assert open_amd(machine(RADEON)).look() == (
        GraphicsDevice(
            name="AMD 744c",
            memory_total_bytes=25_753_026_560,
            memory_used_bytes=20_000_000_000,
            shared_memory_used_bytes=3_000_000_000,
            utilisation_frac=0.97,
            clock_hz=2.124e9,
            clock_max_hz=2.482e9,
            power_w=303.0,
            power_limit_w=339.0,
            temperature_c=64.0,
            pcie_generation=4,
            pcie_lanes=16,
        ),
    )


def test_the_measured_clock_and_the_products_name_come_first(machine):
    more = {f"{AMD}/hwmon/hwmon3/freq1_input": 2_300_000_000, f"{AMD}/product_name": "Radeon PRO"}
    (device,) = open_amd(machine(RADEON | more)).look_closely(frozenset())
    assert (device.name, device.clock_hz) == ("Radeon PRO", 2.3e9)


def test_a_card_that_sleeps_is_not_woken(machine):
    (device,) = open_amd(machine(RADEON | {f"{AMD}/power/runtime_status": "suspended"})).look()
    assert device == GraphicsDevice(name="AMD 744c")


@pytest.mark.parametrize("missing", [name for name in RADEON if not name.endswith("vendor")])
def test_amd_with_a_file_missing_tells_the_rest(machine, missing):
    kept = {name: text for name, text in RADEON.items() if name != missing}
    (device,) = open_amd(machine(kept)).look()
    assert device.name.startswith("AMD ")


def test_clock_levels():
    assert shader_clocks_hz("S: 19Mhz *\n0: 0Mhz\n1: 2200MHz") == (19e6, 2.2e9)
    assert shader_clocks_hz("garbage") == shader_clocks_hz(None) == (None, None)


INTEL = "sys/class/drm/card0"


def test_intels_older_driver(machine):
    root = machine(
        {
            f"{INTEL}/device/vendor": "0x8086",
            f"{INTEL}/device/device": "0x46a6",
            f"{INTEL}/gt_act_freq_mhz": 650,
            f"{INTEL}/gt_RP0_freq_mhz": 1400,
            f"{INTEL}/gt/gt0/rps_act_freq_mhz": 650,
            f"{INTEL}/gt/gt0/throttle_reason_status": 1,
            f"{INTEL}/gt/gt0/throttle_reason_pl1": 1,
            f"{INTEL}/gt/gt0/throttle_reason_thermal": 1,
            f"{INTEL}/gt/gt0/throttle_reason_pl2": 0,
            f"{INTEL}/device/hwmon/hwmon2/power1_max": 28_000_000,
        }
    )
    assert open_intel(root).look() == (
        GraphicsDevice(
            name="Intel 46a6",
            clock_hz=0.65e9,
            clock_max_hz=1.4e9,
            throttled_by=("power_cap", "thermal"),
            power_limit_w=28.0,
        ),
    )


def test_intels_newer_driver(machine):
    tile = f"{INTEL}/device/tile0/gt0/freq0"
    root = machine(
        {
            f"{INTEL}/device/vendor": "0x8086",
            f"{tile}/act_freq": 2400,
            f"{tile}/rp0_freq": 2800,
            f"{tile}/throttle/status": 1,
            f"{tile}/throttle/reason_prochot": 1,
            f"{tile}/throttle/reason_vr_thermalert": 1,
            f"{tile}/throttle/reason_vr_tdc": 0,
            f"{INTEL}/device/tile0/gt1/freq0/act_freq": 0,
        }
    )
    (device,) = open_intel(root).look()
    assert (device.name, device.clock_hz, device.clock_max_hz) == ("Intel card0", 2.4e9, 2.8e9)
    assert device.throttled_by == ("hardware_thermal", "thermal")


IOREG = """+-o AGXAcceleratorG13X  <class AGXAcceleratorG13X, id 0x1000004c8>
    {
      "PerformanceStatistics" = {"In use system memory (driver)"=0,"Alloc system memory"=5467324416,"Device Utilization %"=6,"In use system memory"=780845056}
      "model" = "Apple M1 Max"
      "gpu-core-count" = 32
    }
"""  # noqa: E501
VM_STAT = (
    "Mach Virtual Memory Statistics: (page size of 16384 bytes)\nPageins: 9.\nSwapins:     3.\n"
)


def test_apple_as_its_programs_tell():
    graphics = AppleGraphics(lambda _: IOREG)
    assert graphics.look() == ()
    assert graphics.look_closely(frozenset()) == (
        GraphicsDevice(name="Apple M1 Max", shared_memory_used_bytes=780_845_056),
    )
    assert swapped_in_bytes(lambda _: VM_STAT) == 3 * 16384


def test_apple_where_its_programs_fail():
    assert AppleGraphics(lambda _: None).look_closely(frozenset()) == ()
    assert AppleGraphics(lambda _: "+-o garbage").look_closely(frozenset()) == ()
    assert swapped_in_bytes(lambda _: None) is None


def test_a_machine_without_graphics_says_nothing(tmp_path):
    assert open_readers(tmp_path) == ([], ())
    assert GraphicsWatch([]).stop() == ()


@pytest.mark.parametrize("node", ["dev/nvidia0", "dev/dri/renderD128"])
def test_a_device_whose_state_is_hidden_is_a_blind_spot(machine, node):
    readers, (blind,) = open_readers(machine({node: ""}), nvidia=lambda: None)
    assert readers == []
    assert blind.what == "graphics card state"
    assert ("nvidia-ml-py" in blind.needs) is ("nvidia" in node)


def test_the_library_is_asked_only_where_its_device_is(machine):
    asked = []

    def nvidia() -> None:
        asked.append(1)

    readers, unseen = open_readers(machine(RADEON), nvidia=nvidia)
    assert (len(readers), unseen, asked) == (1, (), [])
    open_readers(machine({"dev/nvidia0": ""}), nvidia=nvidia)
    assert asked == [1]


def test_nodes_of_devices_are_counted(machine):
    root = machine(dict.fromkeys(["dev/nvidia0", "dev/nvidiactl", "dev/kfd", "dev/dri/card0"], ""))
    assert graphics_devices(root / "dev") in (2, None)
    assert graphics_devices(root / "none") is None


DEVICE = GraphicsDevice(
    name="X", utilisation_frac=0.9, clock_hz=2e9, memory_used_bytes=10, power_w=100, pcie_lanes=16
)


def test_several_looks_make_one_picture():
    looks = [
        DEVICE,
        replace(DEVICE, utilisation_frac=0.5, clock_hz=1e9, throttled_by=("thermal",)),
        replace(DEVICE, utilisation_frac=0.8, clock_hz=None, throttled_by=("power_cap", "thermal")),
    ]
    idle = GraphicsDevice(name="X", utilisation_frac=0.0, clock_hz=1e8, memory_used_bytes=30)
    told = over_the_run(looks, [idle])
    assert (told.utilisation_frac, told.clock_hz, told.power_w) == (0.8, 1.5e9, 100)
    assert told.throttled_by == ("thermal", "power_cap")
    assert told.memory_used_bytes == 30
    assert over_the_run([], [idle, idle]) == idle


class TwoCards:
    """A reader whose second card joins late."""

    def __init__(self) -> None:
        self.looks = 0
        self.closed = False

    def look(self):
        self.looks += 1
        cards = (GraphicsDevice(name="A", clock_hz=1e9), GraphicsDevice(name="B", clock_hz=2e9))
        return cards[: self.looks]

    def look_closely(self, server):
        return (GraphicsDevice(name="A", memory_used_by_others_bytes=len(server)),)

    def close(self):
        self.closed = True


def test_each_device_keeps_its_place():
    reader = TwoCards()
    watch = GraphicsWatch([reader])
    for _ in range(2):
        watch.look()
    watch.look_closely(frozenset({1, 2}))
    assert watch.stop() == (
        GraphicsDevice(name="A", clock_hz=1e9, memory_used_by_others_bytes=2),
        GraphicsDevice(name="B", clock_hz=2e9),
    )
    assert reader.closed
