/** For tests: what a hostile page tries against a node. */

/** What a page can find out and do, each with what it got of it. Runs in the browser. */
export const attack = `(async (base) => {
  const build = JSON.stringify({ name: "stolen", actions: { a: { run: "echo stolen" } } });
  const settled = (promise) => Promise.race([promise.catch((error) => "threw " + error.name), late()]);
  const late = () => new Promise((done) => setTimeout(() => done("nothing came"), 3000));
  const reading = (path, init) => settled(fetch(base + path, init).then(async (response) =>
    response.type === "opaque" ? "opaque" : response.status + " " + (response.ok ? await response.text() : "")));
  const element = (tag, path) => settled(new Promise((done) => {
    const made = document.createElement(tag);
    made.onload = () => done(tag === "iframe" ? "loaded a frame" : "loaded");
    made.onerror = () => done("threw an error event");
    if (tag === "link") Object.assign(made, { rel: "stylesheet", href: base + path });
    else made.src = base + path;
    document.body.append(made);
  }));
  const form = (path, fields) => settled(new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.name = "f" + Math.random();
    const made = document.createElement("form");
    Object.assign(made, { method: "POST", action: base + path, target: frame.name, enctype: "text/plain" });
    for (const [name, value] of fields) {
      const input = document.createElement("input");
      Object.assign(input, { name, value });
      made.append(input);
    }
    document.body.append(frame, made);
    frame.addEventListener("load", () => done("sent"), { once: false });
    made.submit();
  }));
  const events = (path) => settled(new Promise((done) => {
    const source = new EventSource(base + path, { withCredentials: true });
    source.onmessage = ({ data }) => { source.close(); done("message " + data); };
    source.onerror = () => { source.close(); done("threw an error event"); };
  }));
  const socket = (path) => settled(new Promise((done) => {
    const opened = new WebSocket(base.replace("http", "ws") + path);
    opened.onmessage = ({ data }) => done("message " + data);
    opened.onopen = () => done("opened");
    opened.onerror = () => done("threw an error event");
  }));
  const json = { "content-type": "application/json" };
  const cookies = { credentials: "include" };
  const post = { method: "POST", body: build, ...cookies };
  const result = {};
  result["submit by fetch"] = await reading("/v1/builds", { ...post, headers: json });
  result["submit without CORS"] = await reading("/v1/builds", { ...post, mode: "no-cors" });
  result["submit a job by fetch"] = await reading("/v1/jobs", { ...post, headers: json });
  result["submit by form"] = await form("/v1/builds", [[build.slice(0, -1) + ',"x":"', '"}']]);
  result["submit by beacon"] = String(navigator.sendBeacon(base + "/v1/builds", build));
  result["drain by form"] = await form("/v1/node/drain", []);
  result["cancel by fetch"] = await reading("/v1/jobs/JOB/cancel", { ...post, body: "{}", mode: "no-cors" });
  result["write the cache"] = await reading("/cas/" + "0".repeat(64), { method: "PUT", body: "x", ...cookies });
  result["read by fetch"] = await reading("/v1/jobs", cookies);
  result["read without CORS"] = await reading("/v1/jobs", { ...cookies, mode: "no-cors" });
  result["read the session"] = await reading("/v1/session", cookies);
  result["read metrics"] = await reading("/metrics", cookies);
  result["read by image"] = await element("img", "/v1/jobs");
  result["read by script"] = await element("script", "/v1/jobs");
  result["read by style"] = await element("link", "/v1/jobs");
  result["read by EventSource"] = await events("/v1/jobs/watch");
  result["watch a job by EventSource"] = await events("/v1/jobs/JOB/watch");
  result["open a WebSocket"] = await socket("/v1/jobs/JOB/socket");
  return result;
})`;
