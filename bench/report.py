"""Figures as a table for people and as a file for comparisons. The ratios count: machines differ."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:
    from pathlib import Path

    from bench.measure import Figures

Results = dict[str, dict[str, "Figures | str"]]  # scenario → server → figures, or why there are none


def table(results: Results, servers: list[str]) -> Table:
    drawn = Table("scenario", "figure", *servers, "ratio")
    for scenario, by_server in results.items():
        for server, figures in by_server.items():
            if isinstance(figures, str):
                drawn.add_row(scenario, f"{server} failed", figures.splitlines()[0][:100])
        names = dict.fromkeys(name for figures in by_server.values() if isinstance(figures, dict) for name in figures)
        for name in names:
            values = [_figure(by_server.get(server), name) for server in servers]
            drawn.add_row(scenario, name, *map(_text, values), _text(_ratio(values)))
        drawn.add_section()
    return drawn


def show(results: Results, servers: list[str]) -> None:
    Console(width=None if os.isatty(1) else 130).print(table(results, servers))


def write(results: Results, path: Path, *, database: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "database": database,
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "load_average": os.getloadavg(),
        "results": results,
    }
    path.write_text(json.dumps(record, indent=1), encoding="utf-8")


def _figure(figures: Figures | str | None, name: str) -> float | None:
    return figures.get(name) if isinstance(figures, dict) else None


def _ratio(values: list[float | None]) -> float | None:
    """The first server as a multiple of the last, when there are two and both have the figure."""
    first, last = values[0], values[-1]
    return first / last if len(values) > 1 and first is not None and last else None


def _text(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
