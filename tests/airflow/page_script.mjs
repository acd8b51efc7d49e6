// Draws page.js under one DAG, whose answer comes, then under another, whose answer does not. Prints what each shows.
let slots = [], at = 0, effects = [], again = false, tree;
const put = (i, value) => { slots[i] = value; again = true; };
globalThis.React = {
  createElement: (type, props, ...children) => ({ type, props, children }),
  useState: (first) => { const i = at++; if (!(i in slots)) slots[i] = first; return [slots[i], (value) => put(i, value)]; },
  useRef: (first) => { const i = at++; return (slots[i] ??= { current: first }); },
  useLayoutEffect: () => { at++; },
  useEffect: (act, on) => {
    const i = at++, before = slots[i];
    if (before && on.every((each, n) => each === before.on[n])) return;
    effects.push(() => { before?.end(); slots[i] = { on, end: act() }; });
  },
};
globalThis.location = { search: "" };
globalThis.document = { activeElement: null };
globalThis.fetch = async (url) =>
  url.href.endsWith("/dags/first") ? { ok: true, text: async () => "of the first" } : new Promise(() => {});
await import(process.argv[2]);
const draw = (dagId) => {
  do {
    again = false; at = 0; effects = [];
    tree = globalThis.Cluster({ dagId });
    for (const each of effects) each();
  } while (again);
  return tree.children[1].props.dangerouslySetInnerHTML.__html;
};
const shown = [draw("first")];
while (!again) await new Promise(setImmediate);
shown.push(draw("first"), draw("second"));
console.log(JSON.stringify(shown));
process.exit(0);
