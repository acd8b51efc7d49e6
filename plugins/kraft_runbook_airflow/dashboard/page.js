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
const Evidence = ({ dagId, runId }) => createElement("iframe", {
  title: "Evidence of this run",
  src: new URL(`evidence/${encodeURIComponent(dagId)}/${encodeURIComponent(runId)}?dark=${document.documentElement.classList.contains("dark")}`, import.meta.url).href,
  style: { border: 0, width: "100%", height: "100%", minHeight: "75vh" },
});
globalThis.Evidence = Evidence;
// Airflow imports a file once, and looks for each destination's component by that destination's name.
for (const name of ["AirflowPlugin", "Kafka", "Kafka clusters", "Cluster"]) globalThis[name] = KafkaClusters;
