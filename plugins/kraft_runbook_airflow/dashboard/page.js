// Puts the server's page of the clusters into Airflow's own page, and renews it. Airflow gives React; nothing is built.
const { createElement, useEffect, useLayoutEffect, useRef, useState } = globalThis.React;
const SECONDS = 5;

const KafkaClusters = ({ dagId }) => {
  const [shown, setShown] = useState({ html: "", focus: "" });
  const [silent, setSilent] = useState("");
  const box = useRef(null);
  const cluster = new URLSearchParams(globalThis.location.search).get("cluster");
  const path = dagId ? `dags/${encodeURIComponent(dagId)}` : cluster ? `clusters/${encodeURIComponent(cluster)}` : "clusters";
  useEffect(() => {
    let timer, left = false, last = "nothing has been shown yet";
    setShown({ html: "", focus: "" });  // of another cluster, where Airflow keeps this tab from one DAG to the next
    setSilent("");
    const renew = async () => {
      try {
        const answer = await fetch(new URL(path, import.meta.url), { signal: AbortSignal.timeout(30000) });
        if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
        const html = await answer.text(), now = document.activeElement;
        if (left) return;
        setShown({ html, focus: box.current?.contains(now) ? now.id : "" });
        setSilent("");
        last = `what is shown is of ${new Date().toLocaleTimeString()}`;
      } catch (error) {
        if (!left) setSilent(`Not renewed (${error.message}): ${last}.`);
      }
      if (!left) timer = setTimeout(renew, SECONDS * 1000);
    };
    renew();
    return () => { left = true; clearTimeout(timer); };
  }, [path]);
  useLayoutEffect(() => { if (shown.focus) document.getElementById(shown.focus)?.focus({ preventScroll: true }); }, [shown]);
  return createElement("div", { style: { overflow: "auto", height: "100%" } },
    silent && createElement("p", { role: "alert", style: { padding: "8px 16px", background: "#8a1c16", color: "#fff" } }, silent),
    createElement("div", { ref: box, dangerouslySetInnerHTML: { __html: shown.html } }));
};
// Airflow's frame for the page of a run. While the run goes on its body is renewed in place: scroll, focus and what was opened stay.
const Evidence = ({ dagId, runId }) => {
  const frame = useRef(null);
  const [silent, setSilent] = useState("");
  const dark = document.documentElement.classList.contains("dark");
  const page = new URL(`evidence/${encodeURIComponent(dagId)}/${encodeURIComponent(runId)}?dark=${dark}`, import.meta.url).href;
  useEffect(() => {
    let timer, left = false;
    setSilent("");
    const renew = async () => {
      let goesOn = true;
      try {
        const answer = await fetch(page, { signal: AbortSignal.timeout(30000) });
        if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
        const html = await answer.text(), shown = frame.current?.contentDocument;
        goesOn = answer.headers.get("X-Run-Goes-On") === "yes";
        if (left) return;
        setSilent("");
        if (shown?.body) replaceBody(shown, html);
      } catch (error) {
        if (!left) setSilent(`Not renewed (${error.message}).`);
      }
      if (!left && goesOn) timer = setTimeout(renew, SECONDS * 1000);
    };
    timer = setTimeout(renew, SECONDS * 1000);
    return () => { left = true; clearTimeout(timer); };
  }, [page]);
  return createElement("div", { style: { height: "100%" } },
    silent && createElement("p", { role: "alert", style: { padding: "8px 16px", background: "#8a1c16", color: "#fff" } }, silent),
    createElement("iframe", { ref: frame, title: "Evidence of this run", src: page, style: { border: 0, width: "100%", height: "100%", minHeight: "75vh" } }));
};
// Nothing in it runs: the frame's own policy allows no script.
const replaceBody = (shown, html) => {
  const named = (each) => each.querySelector("summary")?.textContent;
  const open = new Set([...shown.querySelectorAll("details[open]")].map(named));
  const at = shown.activeElement?.matches("summary") && shown.activeElement.textContent;
  const top = shown.scrollingElement.scrollTop;
  shown.body.innerHTML = new DOMParser().parseFromString(html, "text/html").body.innerHTML;
  for (const each of shown.querySelectorAll("details")) each.open = open.has(named(each));
  shown.scrollingElement.scrollTop = top;
  if (at) [...shown.querySelectorAll("summary")].find((each) => each.textContent === at)?.focus({ preventScroll: true });
};
globalThis.Evidence = Evidence;
// Airflow imports a file once, and looks for each destination's component by that destination's name.
for (const name of ["AirflowPlugin", "Kafka", "Kafka clusters", "Cluster"]) globalThis[name] = KafkaClusters;
