"""OpenTelemetry's SDK in memory: what spans and metrics a block of a test made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


class Seen:
    """Spans that have ended, and metrics, as differences to the state before the block."""

    def __init__(self, exporter: InMemorySpanExporter, reader: InMemoryMetricReader) -> None:
        self._exporter, self._reader = exporter, reader
        exporter.clear()
        self._before = self._sums()

    @property
    def spans(self) -> list[ReadableSpan]:
        """In the order in which they began."""
        found = self._exporter.get_finished_spans()
        return sorted(found, key=lambda span: (span.start_time or 0, span.context.span_id))

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans if span.name == name]

    def tree(self) -> list[str]:
        """The names of spans, indented by depth; siblings in the order in which they began."""
        ids = {span.context.span_id for span in self.spans}
        lines: list[str] = []

        def below(parent: int | None, depth: int) -> None:
            for span in self.spans:
                own = span.parent.span_id if span.parent is not None else None
                if (own if own in ids else None) == parent:
                    lines.append("  " * depth + span.name)
                    below(span.context.span_id, depth + 1)

        below(None, 0)
        return lines

    def counted(self) -> dict[tuple[str, Mapping[str, object]], float]:
        return {key: n - self._before.get(key, 0) for key, n in self._sums().items()}

    def total(self, metric: str, **attributes: object) -> float:
        """The sum of a counter, or the number of measurements of a histogram; dots are ``__``."""
        wanted = {(k.replace("__", "."), v) for k, v in attributes.items()}
        return sum(
            n for (name, own), n in self.counted().items() if name == metric and wanted <= set(own)
        )

    def _sums(self) -> dict[tuple[str, frozenset[tuple[str, object]]], float]:
        data = self._reader.get_metrics_data()
        sums: dict[tuple[str, frozenset[tuple[str, object]]], float] = {}
        for resource in data.resource_metrics if data is not None else ():
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    for point in metric.data.data_points:
                        n = point.count if isinstance(point, HistogramDataPoint) else point.value
                        sums[metric.name, frozenset(point.attributes.items())] = n
        return sums


@cache
def _providers() -> tuple[InMemorySpanExporter, InMemoryMetricReader]:
    """Once a process: OpenTelemetry takes no other provider after the first."""
    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    metrics.set_meter_provider(MeterProvider([reader], shutdown_on_exit=False))
    return exporter, reader


@contextmanager
def watched() -> Iterator[Seen]:
    """What the SDK sees meanwhile; it keeps nothing afterwards."""
    exporter, reader = _providers()
    exporter._stopped = False
    try:
        yield Seen(exporter, reader)
    finally:
        exporter.shutdown()
