"""The queries of a job as trees for a terminal, and as a Mermaid flowchart, which GitHub, GitLab and many wikis draw.

Source of the flowchart's syntax: Mermaid's documentation, "Flowcharts - Basic Syntax".
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from penstock.jobs.driver.query_flow import FlowingOperator, FlowingSource, QueryFlow
from penstock.jobs.storage.query_record import SinkRecord
from penstock.scripts.render.screen import Screen

_MODES = {"append": "rows are final", "update": "rows are updates of earlier ones"}


def as_trees(job: str, queries: Sequence[QueryFlow], screen: Screen) -> str:
    """A tree a query, from its sinks to its sources.

    Args:
        job: its name.
        queries: of the job.
        screen: that is written to.
    """
    out = io.StringIO()
    console = Console(file=out, width=screen.width, force_terminal=screen.colour, no_color=not screen.colour, highlight=False, emoji=False)
    for query in queries:
        console.print(Text(f"query {query.name or job}: {_MODES[query.output_mode]}", style="bold"))
        for label, sinks in (("writes", query.writes), ("side rows", query.side_outputs)):
            for number, sink in enumerate(sinks):
                console.print(Text(f"  {label if number == 0 else '':<10} {sink.name}: {_of_sink(sink)}"), soft_wrap=True)
        roots = Tree(Text(""), hide_root=True)
        _grow(roots, query, None)
        console.print(roots)
        console.print()
    return out.getvalue()


def _grow(tree: Tree, query: QueryFlow, taker: int | None) -> None:
    for operator in query.operators:
        if operator.feeds == taker:
            _grow(tree.add(Text(_of_operator(operator))), query, operator.id)
    for source in query.sources:
        if source.feeds == taker:
            tree.add(Text(f"source {_of_source(source)}"))


def as_mermaid(job: str, queries: Sequence[QueryFlow]) -> str:
    """A flowchart, from the sources to the sinks; rows that leave a query are dotted.

    Args:
        job: its name.
        queries: of the job.
    """
    lines = ["flowchart LR"]
    sinks: dict[str, SinkRecord] = {}
    for number, query in enumerate(queries):
        lines += [f'  subgraph q{number}["query {_quoted(query.name or job)}"]', *_nodes(number, query), "  end"]
        lines += _edges(number, query)
        sinks |= {sink.name: sink for sink in (*query.writes, *query.side_outputs)}
    ids = {name: f"sink{number}" for number, name in enumerate(sinks)}
    lines += [f'  {ids[name]}[("{_quoted(name)}<br>{_quoted(_of_sink(sink))}")]' for name, sink in sinks.items()]
    for number, query in enumerate(queries):
        lines += [f"  q{number}out --> {ids[sink.name]}" for sink in query.writes]
        lines += [f"  q{number} -.-> {ids[sink.name]}" for sink in query.side_outputs]
    return "\n".join(lines) + "\n"


def _nodes(number: int, query: QueryFlow) -> Iterator[str]:
    for index, source in enumerate(query.sources):
        yield f'    q{number}s{index}[/"{_quoted(_of_source(source))}"/]'
    for operator in query.operators:
        yield f'    q{number}o{operator.id}["{_quoted(_of_operator(operator))}"]'
    yield f'    q{number}out(("output"))'


def _edges(number: int, query: QueryFlow) -> Iterator[str]:
    parts = [
        *((f"s{index}", one.feeds) for index, one in enumerate(query.sources)),
        *((f"o{one.id}", one.feeds) for one in query.operators),
    ]
    for part, feeds in parts:
        yield f"  q{number}{part} --> q{number}{'out' if feeds is None else f'o{feeds}'}"


def _of_operator(operator: FlowingOperator) -> str:
    keys = ", ".join(f"{column.name} {column.type}" for column in operator.keys)
    return f"operator {operator.id}: {operator.name}" + (f" by {keys}" if keys else "")


def _of_source(source: FlowingSource) -> str:
    return f"{source.source.name}: {source.source.kind} {', '.join(source.source.places)}"


def _of_sink(sink: SinkRecord) -> str:
    return sink.said + (f", {sink.guarantee}" if sink.guarantee else "")


def _quoted(text: str) -> str:
    """Text in a node: Mermaid ends it at a quote, and takes angle brackets for HTML."""
    return text.replace("&", "#amp;").replace('"', "#quot;").replace("<", "#lt;").replace(">", "#gt;")
