export const STYLE = `
:root {
  color-scheme: light dark;
  --page: #fdfcfa; --panel: #f5f2ec; --line: #e2dcd1; --text: #23201b; --quiet: #6a6357; --link: #8a4b08;
  --code: #f1ede5; --get: #1f6f43; --post: #7a4a00; --patch: #5b3d8f; --put: #5b3d8f; --delete: #a32626;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #171614; --panel: #1e1c19; --line: #37332d; --text: #e9e4db; --quiet: #a49b8c; --link: #f0b463;
    --code: #24211d; --get: #7ecf9f; --post: #f0b463; --patch: #c3a6f0; --put: #c3a6f0; --delete: #f28b82;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; }
body {
  margin: 0; display: grid; grid-template-columns: 17rem minmax(0, 1fr); background: var(--page); color: var(--text);
  font: 1rem/1.55 system-ui, sans-serif; text-rendering: optimizeLegibility;
}
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
p a, td a, dd a, dt a, h4 a { text-decoration: underline 1px; text-underline-offset: .18em; }
.brand a { text-decoration: none; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 2px; }
code, pre { font-family: ui-monospace, 'SF Mono', Menlo, Consolas, monospace; font-size: .875em; }
p code, td code, dd code { background: var(--code); border-radius: 3px; padding: .08em .3em; overflow-wrap: anywhere; }
.skip { position: absolute; left: -99rem; }
.skip:focus { left: 1rem; top: 1rem; background: var(--page); padding: .5rem 1rem; z-index: 2; }
nav {
  position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.5rem 1.25rem 3rem; background: var(--panel);
  border-right: 1px solid var(--line); font-size: .875rem; scrollbar-width: thin;
}
nav ul { list-style: none; margin: 0; padding: 0; }
nav ul ul { margin: .2rem 0 .9rem; }
nav ul ul a { display: block; padding: .14rem 0 .14rem .7rem; color: var(--quiet); border-left: 2px solid var(--line); }
nav ul ul a:hover { color: var(--text); border-left-color: var(--link); text-decoration: none; }
.chapter { font-weight: 600; color: var(--text); }
.brand { margin: 0 0 1.25rem; font-size: 1.1rem; font-weight: 700; }
.brand a { color: inherit; }
.brand span { color: var(--quiet); font-size: .8rem; font-weight: 400; }
main { padding: 2.5rem clamp(1rem, 4vw, 4rem) 6rem; max-width: 62rem; width: 100%; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 1rem; letter-spacing: -.015em; }
h2 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; letter-spacing: -.01em; }
h3 { font-size: 1.15rem; margin: 0 0 .35rem; position: relative; }
h4 { font-size: .8rem; margin: 1.4rem 0 .4rem; color: var(--quiet); font-weight: 600; }
p { margin: .4rem 0 .8rem; max-width: 46rem; }
.tag { margin-top: 4rem; padding-top: 2rem; border-top: 1px solid var(--line); }
.operation, .schema { margin-top: 2.75rem; }
.anchor { position: absolute; left: -1.1rem; color: var(--line); }
h3:hover .anchor { color: var(--link); }
.address { margin: 0 0 .6rem; }
.keys { color: var(--quiet); font-size: .8rem; margin-left: .6rem; white-space: nowrap; }
.address code { background: none; padding: 0; font-size: .95em; }
.method { display: inline-block; min-width: 4.1em; font: 600 .75rem/1.5 ui-monospace, Menlo, Consolas, monospace; }
.get { color: var(--get); } .post { color: var(--post); } .patch { color: var(--patch); }
.put { color: var(--put); } .delete { color: var(--delete); }
.index { list-style: none; margin: 1rem 0 0; padding: 0; font-size: .9rem; }
.index li { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 18rem); gap: 0 1.5rem; padding: .2rem 0; }
.index code { color: var(--text); overflow-wrap: anywhere; }
.what { color: var(--quiet); }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: .875rem; }
th, td { text-align: left; vertical-align: top; padding: .45rem .9rem .45rem 0; border-bottom: 1px solid var(--line); }
thead th { color: var(--quiet); font-weight: 500; font-size: .8rem; padding-bottom: .3rem; }
tbody th { font-weight: 400; width: 32%; overflow-wrap: anywhere; }
td:nth-child(2) { width: 30%; color: var(--quiet); overflow-wrap: anywhere; }
.outer { color: var(--quiet); }
.required, .optional { color: var(--delete); font-size: .75rem; white-space: nowrap; }
.optional { color: var(--quiet); }
pre {
  margin: .3rem 0; padding: .9rem 1rem; background: var(--code); border: 1px solid var(--line); border-radius: 6px;
  overflow-x: auto; line-height: 1.5; tab-size: 2;
}
pre code { font-size: .8125rem; }
details summary { cursor: pointer; color: var(--quiet); font-size: .875rem; padding: .2rem 0; }
details summary:hover { color: var(--text); }
.answers { margin: 0; font-size: .875rem; }
.answers div { display: grid; grid-template-columns: 4rem minmax(0, 1fr); padding: .3rem 0; border-bottom: 1px solid var(--line); }
.answers dt { font-family: ui-monospace, Menlo, Consolas, monospace; }
.answers dd { margin: 0; overflow-wrap: anywhere; }
.good dt { color: var(--get); } .bad dt, .bad dd { color: var(--quiet); }
@media (max-width: 60rem) {
  body { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: 1rem; }
  nav ul ul { display: none; }
  nav > ul { display: flex; flex-wrap: wrap; gap: .35rem 1rem; }
  .chapter { font-weight: 500; padding: .2rem 0; display: inline-block; }
  .brand { margin-bottom: .5rem; }
  main { padding-top: 1.5rem; }
  .anchor { display: none; }
}
@media (max-width: 40rem) {
  .index li { grid-template-columns: minmax(0, 1fr); padding: .4rem 0; }
  .index .what { padding-left: 3.35rem; }
  thead { position: absolute; left: -99rem; }
  tr, tbody th, td { display: block; width: auto; border: 0; padding: 0; }
  td:nth-child(2) { width: auto; font-size: .8125rem; }
  tr { padding: .5rem 0; border-bottom: 1px solid var(--line); }
}
@media print {
  body { display: block; } nav { display: none; } pre { white-space: pre-wrap; }
}
`;
