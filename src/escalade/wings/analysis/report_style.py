"""The looks of a report. Colours are given twice, for light and for dark; charts are on white in both."""

STYLE = """
:root { color-scheme: light dark; --page: #fff; --card: #f6f7f9; --ink: #1b2330; --soft: #56606f;
  --rule: #d9dee6; }
@media (prefers-color-scheme: dark) { :root { --page: #11151c; --card: #1a2029; --ink: #e6eaf0;
  --soft: #a3aebd; --rule: #323b48; } }
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
main { max-width: 1400px; margin: 0 auto; padding: 1rem; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 0; overflow-wrap: anywhere; }
header p { color: var(--soft); margin: .25rem 0 0; }
h2 { font-size: 1.2rem; margin: 2rem 0 .75rem; overflow-wrap: anywhere; }
h3 { font-size: .95rem; margin: 1rem 0 .5rem; overflow-wrap: anywhere; }
.note { color: var(--soft); }
.charts { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(min(100%, 380px), 1fr)); }
figure { margin: 0; padding: .75rem; background: var(--card); border: 1px solid var(--rule);
  border-radius: .5rem; min-width: 0; }
figure h3 { margin: 0 0 .4rem; font-weight: 600; }
figcaption { font-size: .85rem; color: var(--soft); }
.legend { display: flex; flex-wrap: wrap; gap: .2rem 1rem; list-style: none; margin: 0 0 1rem; padding: 0;
  font-size: .9rem; color: var(--soft); }
.legend li { display: inline-flex; align-items: center; gap: .4rem; overflow-wrap: anywhere; min-width: 0; }
.swatch { width: 38px; height: 16px; padding: 4px; flex: none; background: #fff; border-radius: .2rem; }
.wide { overflow-x: auto; border: 1px solid var(--rule); border-radius: .5rem; }
table { border-collapse: collapse; font-size: .9rem; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .45rem .75rem; white-space: nowrap; }
th { color: var(--soft); font-weight: 600; background: var(--card); }
tbody tr { border-top: 1px solid var(--rule); }
dl { display: grid; gap: 0 2rem; margin: 0;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 300px), 1fr)); }
dl div { display: flex; justify-content: space-between; gap: 1rem; padding: .25rem 0;
  border-bottom: 1px solid var(--rule); font-size: .9rem; }
dt { color: var(--soft); } dd { margin: 0; text-align: right; overflow-wrap: anywhere; min-width: 0; }
details { margin-top: 1rem; } summary { cursor: pointer; }
pre { background: var(--card); border: 1px solid var(--rule); border-radius: .5rem; padding: .75rem;
  margin: 0; white-space: pre-wrap; overflow-x: auto; font-size: .85rem; }
pre span { display: inline-block; }
.plot { width: 100%; height: auto; display: block; border-radius: .3rem; background: #fff; }
.film { max-width: 100%; width: 480px; border-radius: .5rem; display: block; }
"""
