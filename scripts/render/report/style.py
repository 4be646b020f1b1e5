"""The style sheet of the report: light, dark and print."""

from __future__ import annotations

STYLE = """
:root {
  color-scheme: light dark;
  --ink: #1c2128; --soft: #59636e; --line: #d5dbe1; --ground: #ffffff; --raised: #f5f7f9;
  --good: #1a6b3c; --good-ground: #e3f4e9; --bad: #a32020; --bad-ground: #fdeaea;
  --executor: #2c6aa6; --driver: #a3501a; --pod: #6d4c9f; --daemon-sets: #7f8b97; --reserve: #bcc5ce; --free: #ffffff;
  --on-pod: #ffffff; --accent: #2c6aa6; --accent-pale: #b6d1ea; --track: #eceff2; --level: #a3501a; --shade: rgb(0 0 0 / 0.18);
}
@media (prefers-color-scheme: dark) {
  :root {
    --ink: #e4e9ee; --soft: #9aa6b2; --line: #343c46; --ground: #14181d; --raised: #1c222a;
    --good: #7fd6a0; --good-ground: #16321f; --bad: #ff9d94; --bad-ground: #3d1a1a;
    --executor: #3a78b4; --driver: #aa5c27; --pod: #8466b8; --daemon-sets: #6d7884; --reserve: #434d58; --free: #14181d;
    --on-pod: #ffffff; --accent: #5b9bd8; --accent-pale: #2b4a68; --track: #232a33; --level: #e0955f; --shade: rgb(0 0 0 / 0.5);
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; padding: 2.5rem 1.5rem 3rem; max-width: 70rem; background: var(--ground); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "Liberation Sans", sans-serif;
  font-variant-numeric: tabular-nums; overflow-wrap: break-word;
}
h1, h2, h3 { line-height: 1.25; font-weight: 600; text-wrap: balance; }
h1 { margin: 0; font-size: 2rem; letter-spacing: -0.015em; }
h2 { margin: 0 0 0.75rem; font-size: 1.25rem; }
h3 { margin: 1.5rem 0 0.5rem; font-size: 1rem; }
p { margin: 0 0 0.75rem; max-width: 46rem; }
section { margin-top: 2.5rem; padding-top: 1.75rem; border-top: 1px solid var(--line); }
.kind { margin: 0 0 0.25rem; color: var(--soft); font-size: 0.875rem; }
.aside, .missing, footer, figcaption { color: var(--soft); font-size: 0.875rem; }
.lead { font-size: 1.0625rem; }
.missing { padding: 0.75rem 1rem; background: var(--raised); border-radius: 6px; }
.code { font: 0.8125rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; overflow-wrap: anywhere; }
.verdict {
  display: inline-block; vertical-align: middle; margin-left: 0.5rem; padding: 0.125rem 0.625rem; border-radius: 99px;
  font-size: 0.875rem; font-weight: 600; letter-spacing: 0;
}
.verdict.good { color: var(--good); background: var(--good-ground); }
.verdict.bad { color: var(--bad); background: var(--bad-ground); }
span.bad, ul.bad { color: var(--bad); }
ul, ol { margin: 0.75rem 0; padding-left: 1.25rem; max-width: 60rem; }
li { margin: 0.125rem 0; }

.facts { margin: 1rem 0; }
.facts > div { display: grid; grid-template-columns: 6.5rem 1fr; gap: 1rem; padding: 0.25rem 0; }
.facts dt { color: var(--soft); }
.facts dd { margin: 0; min-width: 0; }
header > .facts { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin-top: 1.5rem; }
header > .facts > div { display: block; padding: 0; }
header > .facts dt { font-size: 0.8125rem; }
header > .facts dd { font-size: 1.375rem; font-weight: 600; letter-spacing: -0.01em; }
.violations { margin-top: 1.75rem; }
.violation {
  margin: 0 0 0.75rem; padding: 0.75rem 1rem; background: var(--bad-ground);
  border-left: 3px solid var(--bad); border-radius: 0 6px 6px 0;
}
.violation p { margin: 0; }
.violation .facts { margin: 0.25rem 0 0; }
.violation .facts > div { grid-template-columns: 2.5rem 1fr; padding: 0.125rem 0; }
.violation .facts dt { color: inherit; opacity: 0.75; }

.scroll {
  overflow-x: auto; margin: 0.75rem 0;
  /* A shadow at the edge behind which there is more: the covers move with the table, the shadows do not. */
  background:
    linear-gradient(to right, var(--ground) 40%, transparent) left / 3rem 100% no-repeat local,
    linear-gradient(to left, var(--ground) 40%, transparent) right / 3rem 100% no-repeat local,
    linear-gradient(to right, var(--shade), transparent) left / 0.75rem 100% no-repeat scroll,
    linear-gradient(to left, var(--shade), transparent) right / 0.75rem 100% no-repeat scroll;
}
.scroll:focus-visible, summary:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
table { border-collapse: collapse; width: 100%; font-size: 0.875rem; line-height: 1.4; }
caption { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
th, td { padding: 0.4rem 0.875rem 0.4rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); font-weight: 400; }
th:last-child, td:last-child { padding-right: 0; }
thead th { color: var(--soft); vertical-align: bottom; font-size: 0.8125rem; }
thead .code { font-family: inherit; }
tfoot th, tfoot td { font-weight: 600; border-bottom: 0; }
tbody th { font-weight: 500; }
.n { text-align: right; white-space: nowrap; }
thead .n { white-space: normal; }
tbody th:not(.n) { min-width: 9rem; }
.k { white-space: nowrap; }
.w { min-width: 12rem; }
.code.w { min-width: 18rem; }
.n + :not(.n) { padding-left: 0.75rem; }

.nodes, .charts { display: grid; gap: 1.75rem 2rem; margin: 0.75rem 0 1.25rem; }
.nodes { grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); align-items: end; }
.charts { grid-template-columns: repeat(auto-fit, minmax(min(100%, 24rem), 1fr)); }
figure { margin: 0; min-width: 0; break-inside: avoid; }
figcaption { margin-top: 0.375rem; max-width: 34rem; }
.nodes figcaption { padding-left: 3.625rem; }
figcaption > span { display: block; }
figcaption strong { color: var(--ink); font-weight: 600; }
.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1.25rem; margin: 0.75rem 0; padding: 0; list-style: none; font-size: 0.875rem; }
.legend svg { margin-right: 0.4rem; vertical-align: -2px; }

svg { overflow: visible; }
svg text { font-size: 12px; fill: var(--soft); }
svg.node, svg.chart { display: block; max-width: 100%; height: auto; }
svg.chart { width: 100%; max-width: 34rem; }
.card { fill: var(--raised); stroke: var(--line); }
.frame { fill: none; stroke: var(--soft); pointer-events: none; }
.part { stroke: var(--ground); stroke-width: 1; }
.part.reserve { fill: var(--reserve); stroke: none; }
.part.daemon-sets { fill: var(--daemon-sets); stroke: none; }
.part.driver { fill: var(--driver); }
.part.executor { fill: var(--executor); }
.part.pod { fill: var(--pod); }
.part.free { fill: var(--free); stroke: var(--soft); stroke-dasharray: 3 3; }
.on-driver text, .on-executor text, .on-pod text { fill: var(--on-pod); }

.bars { display: grid; grid-template-columns: minmax(9rem, 19rem) 1fr auto; column-gap: 1rem; font-size: 0.875rem; margin: 1rem 0; }
.service, .bar { display: grid; grid-template-columns: subgrid; grid-column: 1 / -1; align-items: center; padding: 0.1875rem 0; }
.service { margin-top: 0.625rem; font-weight: 600; }
.service > :last-child { grid-column: 3; }
.bar > svg { width: 100%; height: 0.75rem; }
.track { fill: var(--track); }
.bar .high { fill: var(--accent-pale); }
.bar .low { fill: var(--accent); }

.grid { stroke: var(--line); stroke-width: 1; }
.base { stroke: var(--soft); stroke-width: 1; }
.curve { fill: none; stroke: var(--accent); stroke-width: 2; stroke-linejoin: round; }
.dot { fill: var(--accent); stroke: var(--ground); stroke-width: 1.5; }
.level { stroke: var(--level); stroke-width: 1.25; stroke-dasharray: 5 4; }
.mark { stroke: var(--ink); stroke-width: 1; stroke-dasharray: 2 3; }
svg .level-label { fill: var(--level); }
svg .mark-label { fill: var(--ink); font-weight: 600; }
.halo { paint-order: stroke; stroke: var(--ground); stroke-width: 4px; stroke-linejoin: round; }

summary { cursor: pointer; padding: 0.25rem 0; color: var(--accent); }
footer { margin-top: 3rem; padding-top: 1rem; border-top: 1px solid var(--line); }

@media (max-width: 40rem) {
  body { padding: 1.5rem 1rem 2rem; }
  h1 { font-size: 1.625rem; }
  .verdict { margin-left: 0; }
  .facts > div { grid-template-columns: 5.5rem 1fr; gap: 0.75rem; }
  header > .facts { gap: 0.75rem 2rem; }
  header > .facts dd { font-size: 1.125rem; }
  .nodes figcaption { padding-left: 0; }
  svg.chart text { font-size: 14px; }
  .bars { grid-template-columns: 1fr auto; }
  .bar > svg { grid-row: 2; grid-column: 1 / -1; }
  .bar > :last-child { grid-column: 2; }
  .service > :last-child { grid-column: 2; }
}
@media print {
  :root {
    --ink: #000000; --soft: #444444; --line: #bbbbbb; --ground: #ffffff; --raised: #f5f5f5;
    --good: #1a6b3c; --good-ground: #ffffff; --bad: #a32020; --bad-ground: #ffffff;
    --executor: #2c6aa6; --driver: #a3501a; --pod: #6d4c9f; --daemon-sets: #7f8b97; --reserve: #bcc5ce; --free: #ffffff;
    --accent: #2c6aa6; --accent-pale: #b6d1ea; --track: #eceff2; --level: #a3501a;
  }
  body { max-width: none; padding: 0; font-size: 0.8125rem; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  section { margin-top: 1.5rem; padding-top: 1rem; }
  h2, h3, h2 + p, summary { break-after: avoid; }
  tr, .bar, .violation { break-inside: avoid; }
  .scroll { overflow: visible; background: none; }
  table { font-size: 0.6875rem; }
  th, td { padding-right: 0.5rem; }
  .code { font-size: inherit; }
  .w, .code.w { min-width: 0; }
  details::details-content { content-visibility: visible; display: block; height: auto; }
}
"""
