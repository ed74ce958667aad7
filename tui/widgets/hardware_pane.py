"""VRAM bars per card (this run, others, free), CPU, RAM and disk."""

from __future__ import annotations

from textual.strip import Strip

from llmtui.core import words
from llmtui.core.runs.events import Hardware, HardwareGpu
from llmtui.tui.widgets.bars import bar
from llmtui.tui.widgets.pane import Drawing, Line, Pane, Piece, strip_of, width_of

_GIB = float(1 << 30)


class HardwarePane(Pane):
    """Shows a `Hardware` sample; one line per card, two cards to a line when there are many."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id)
        self.sample: Hardware | None = None
        self.heading = "Machine"
        self.remark = ""

    def show(self, sample: Hardware | None, *, remark: str = "") -> None:
        """A sample, and a word on when it was taken if not just now."""
        if self.is_news(sample, remark):
            self.sample, self.remark = sample, remark
            self.repaint()

    def title(self) -> tuple[Line, Line]:
        left: list[Piece] = [(self.heading, "title")]
        if self.remark:
            left.append((f"  {self.remark}", "faint"))
        if self.sample is not None and self.sample.gpus:
            glyphs = Drawing.glyphs
            legend = [(f"{glyphs.full} this run ", "bar_run"), (f"{glyphs.others} others ", "bar_others"),
                      (f"{glyphs.free} free", "faint")]  # fmt: skip
            return left, legend
        return left, ()

    def content(self, width: int, height: int) -> list[Strip]:
        return [strip_of(line, width) for line in hardware_lines(self.sample, width, height)]


def rows_needed(gpus: int, height: int, width: int) -> int:
    """Lines (title included) that this many cards want on a screen of this size."""
    lines = gpus if gpus <= 2 or height >= 40 else -(-gpus // 2)
    return 1 + max(1, lines) + 1


def hardware_lines(sample: Hardware | None, width: int, height: int) -> list[Line]:
    """Host first in importance but last in place: it always gets its line."""
    if sample is None:
        return [[(" not measured yet", "faint")]]
    host = _host_line(sample, width)
    room = max(0, height - 1)
    gpus = sample.gpus
    if not gpus:
        note = sample.note or "no NVIDIA GPU here: training runs on the CPU"
        lines: list[Line] = [[(" " + note, "faint")]] if room else []
        return [*lines, host]
    if len(gpus) <= room:
        return [*[_gpu_line(gpu, width) for gpu in gpus], host]
    across = 2 if -(-len(gpus) // 2) <= room or width < 100 else 4
    part = width // across
    lines = []
    for start in range(0, len(gpus), across):
        line: list[Piece] = []
        for gpu in gpus[start : start + across]:
            compact = _compact_gpu(gpu, part - 1)
            line += [*compact, (" " * max(1, part - width_of(compact)), "text")]
        lines.append(line)
    if len(lines) > room:
        hidden = len(gpus) - max(0, room - 1) * across
        lines = [*lines[: max(0, room - 1)], [(f" and {hidden} GPUs more: + shows them", "faint")]][:room]
    return [*lines, host]


def _shares(gpu: HardwareGpu) -> tuple[tuple[float, str], ...]:
    total = gpu.total or 0
    if not total or gpu.used is None:
        return ()
    if gpu.this_run is None:  # in a container NVML names the host's processes: the shares are not known
        return ((gpu.used / total, "bar_run"),)
    run = gpu.this_run
    others = gpu.others if gpu.others is not None else max(0, gpu.used - run)
    return ((run / total, "bar_run"), (others / total, "bar_others"))


def _gpu_line(gpu: HardwareGpu, width: int) -> list[Piece]:
    name = gpu.name.removeprefix("NVIDIA ").removeprefix("GeForce ").removeprefix("Tesla ")
    name = name if width >= 110 else name.split("-")[0]
    left: list[Piece] = [(f" GPU {gpu.index}", "text"), (f" {name[:16]} ", "faint")]
    if gpu.lost:
        return [*left, (f"{Drawing.glyphs.bad_point} lost: it fell off the bus; reboot the machine", "bad")]
    if gpu.total is None:
        share = "" if gpu.this_run is None else f", this run {_gib(gpu.this_run)} GiB"
        return [*left, (f"memory is the host's (see RAM){share}", "text"), (f"  {_percent(gpu)}", "text")]
    free = None if gpu.total is None or gpu.used is None else max(0, gpu.total - gpu.used)
    right: list[Piece] = []
    if gpu.this_run is not None:
        right.append((f" run {_gib(gpu.this_run)}", "bar_run"))
    else:
        right.append((f" used {_gib(gpu.used)}", "bar_run"))
    if gpu.others is not None:
        right.append((f"  others {_gib(gpu.others)}", "bar_others"))
    right += [(f"  free {_gib(free)}", "text"), (f"/{_gib(gpu.total)} GiB", "faint")]
    right.append((f" {_percent(gpu)}", "text"))
    if width >= 110:
        right.append((f"  {_watts(gpu)}  {words.UNKNOWN if gpu.temperature is None else gpu.temperature} °C", "faint"))
    return [*left, *bar(_shares(gpu), max(4, width - width_of(left) - width_of(right) - 1)), *right]


def _compact_gpu(gpu: HardwareGpu, width: int) -> list[Piece]:
    left: list[Piece] = [(f" {gpu.index} ", "text")]
    if gpu.lost:
        return [*left, (f"{Drawing.glyphs.bad_point} lost", "bad")]
    utilization = words.UNKNOWN if gpu.utilization_gpu is None else gpu.utilization_gpu
    right: list[Piece] = [(f" {_gib(gpu.used)}/{_gib(gpu.total)}G {utilization:>3}%", "text")]
    return [*left, *bar(_shares(gpu), max(3, width - width_of(left) - width_of(right))), *right]


def _host_line(sample: Hardware, width: int) -> list[Piece]:
    cpu = sample.cpu_percent
    disk: list[Piece] = [(f"  disk {words.size(sample.disk_free)} free", "text")]
    ram_text = f" {_gib(sample.ram_used)} of {_gib(sample.ram_total)} GiB"
    cpu_text = f" {words.UNKNOWN if cpu is None else round(cpu):>3} %"
    fixed = len(" CPU ") + len(cpu_text) + len("  RAM ") + len(ram_text)
    if width < fixed + 12 + width_of(disk):
        disk = []
    room = max(6, width - fixed - width_of(disk) - 1)
    ram = (sample.ram_used or 0) / sample.ram_total if sample.ram_total else 0.0
    return [
        (" CPU ", "text"), *bar((((cpu or 0.0) / 100, "bar_host"),), max(3, min(60, room // 2))), (cpu_text, "text"),
        ("  RAM ", "text"), *bar(((ram, "bar_host"),), max(3, min(60, room - room // 2))), (ram_text, "text"), *disk,
    ]  # fmt: skip


def _percent(gpu: HardwareGpu) -> str:
    return f"{words.UNKNOWN if gpu.utilization_gpu is None else gpu.utilization_gpu:>3} %"


def _gib(value: int | None) -> str:
    if value is None:
        return words.UNKNOWN
    amount = value / _GIB
    return f"{amount:.1f}" if amount < 100 else f"{amount:.0f}"


def _watts(gpu: HardwareGpu) -> str:
    return f"{words.UNKNOWN if gpu.power is None else round(gpu.power):>3} W"
