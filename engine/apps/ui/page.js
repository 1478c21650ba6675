"use strict";
// The page of `blendfusion ui`. Text from the server is only ever put into text nodes.

const token = new URLSearchParams(location.search).get("token") || "";
const $ = (id) => document.getElementById(id);
const PAGE = 50;
const KEYWORDS = ("SELECT FROM WHERE GROUP BY ORDER LIMIT JOIN LEFT ON AS AND OR NOT IN IS NULL LIKE BETWEEN CASE WHEN " +
  "THEN ELSE END DISTINCT HAVING UNION ALL WITH COUNT SUM AVG MIN MAX DESC ASC EXPLAIN ANALYZE DESCRIBE SHOW").split(" ");
let state = { tables: [], functions: [], history: [] };
let shown = 0; // the run whose results stand on the page
let running = 0;

function el(name, props = {}, ...children) {
  const { class: classes, ...rest } = props;
  const made = document.createElement(name);
  if (classes) made.className = classes;
  for (const [key, value] of Object.entries(rest)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

async function api(path, body) {
  const headers = { "X-Token": token };
  const options = body === undefined ? { headers } :
    { method: "POST", headers: { ...headers, "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let reply;
  try {
    reply = await fetch(`/api/${path}`, options);
  } catch {
    throw { message: "the server does not answer", hint: "Is 'blendfusion ui' still running?" };
  }
  const type = reply.headers.get("Content-Type") || "";
  const data = type.startsWith("application/json") ? await reply.json() : { error: { message: await reply.text() } };
  if (!reply.ok) throw data.error;
  return data;
}

const number = (value) => value.toLocaleString("en");
const counted = (value, noun) => `${number(value)} ${noun}${value === 1 ? "" : "s"}`;

// --- the sides ------------------------------------------------------------------------------------

async function refresh() {
  state = await api("state");
  $("model").textContent = state.model;
  $("mode").textContent = state.read_only ? "read-only" : "may write";
  $("limits").value = state.budget;
  const spent = [counted(state.spent.values, "value"), counted(state.spent.tokens, "token")];
  if (state.spent.cost) spent.push(`cost ${state.spent.cost}`);
  $("spent").textContent = `spent: ${spent.join(" · ")}`;
  const open = new Set([...document.querySelectorAll("#tables details[open]")].map((found) => found.dataset.name));
  $("tables").replaceChildren(...state.tables.map((table) => {
    const columns = table.columns.map((column) => el("li", {}, el("button",
      { type: "button", onclick: () => insert(quoted(column.name)) }, column.name, " ", el("small", {}, column.type))));
    const box = el("details", { "data-name": table.name }, el("summary", {}, table.name), el("ul", {}, ...columns));
    box.open = open.has(table.name) || state.tables.length === 1;
    return el("li", {}, box);
  }));
  $("functions").replaceChildren(...state.functions.map((found) => el("li", {}, el("button",
    { type: "button", title: found.signature, onclick: () => insert(`${found.name}(`) },
    found.name, el("br"), el("small", {}, found.summary)))));
  $("history").replaceChildren(...state.history.map((run) => el("li", {}, el("button",
    { type: "button", onclick: () => { $("sql").value = run.sql; show(run.id); } },
    el("code", {}, run.sql), el("small", {}, summary(run))))));
}

function summary(run) {
  const parts = [run.outcome === "done" ? counted(run.rows ?? 0, "row") : run.outcome];
  if (run.values) parts.push(`${counted(run.values, "value")} asked`);
  if (run.cost) parts.push(`cost ${run.cost}`);
  parts.push(`${run.seconds.toFixed(1)} s`);
  return parts.join(" · ");
}

const quoted = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);

function insert(text) {
  const editor = $("sql");
  editor.setRangeText(text, editor.selectionStart, editor.selectionEnd, "end");
  editor.focus();
}

// --- completion -----------------------------------------------------------------------------------

let choices = [];
let chosen = 0;

function word() {
  const before = $("sql").value.slice(0, $("sql").selectionStart);
  return { before, start: (before.match(/[\w.]*$/) || [""])[0] };
}

/** A name, which may come from a file, as a part of a regular expression that matches it alone. */
const literally = (name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

function candidates() {
  const { before, start } = word();
  const [, table, rest] = start.match(/^(\w+)\.(\w*)$/) || [];
  const wanted = (rest ?? start).toLowerCase();
  const found = [];
  const add = (text, kind, name = text) => {
    if (name.toLowerCase().startsWith(wanted) && text !== start && !found.some((one) => one.text === text)) {
      found.push({ text, kind, cut: wanted.length });
    }
  };
  const query = $("sql").value;
  if (table !== undefined) {
    const alias = query.match(new RegExp(`(\\w+)\\s+(?:AS\\s+)?${table}\\b`, "i"));
    const names = [table, alias && alias[1]];
    for (const one of state.tables) if (names.includes(one.name)) one.columns.forEach((c) => add(quoted(c.name), c.type, c.name));
    return found;
  }
  const call = before.match(/(\w+)\s*\((?:[^()]|\([^()]*\))*$/);
  const called = call && state.functions.find((one) => one.name === call[1].toLowerCase());
  if (called && start) called.options.forEach((name) => add(`${name} => `, "option", name));
  const used = state.tables.filter((one) => new RegExp(`\\b${literally(one.name)}\\b`).test(query));
  for (const one of used.length ? used : state.tables) one.columns.forEach((c) => add(quoted(c.name), `column of ${one.name}`, c.name));
  state.tables.forEach((one) => add(quoted(one.name), "table", one.name));
  state.functions.forEach((one) => add(`${one.name}(`, "function", one.name));
  KEYWORDS.forEach((one) => add(one, ""));
  return found.slice(0, 60);
}

function complete(always) {
  const { start } = word();
  choices = always || start.length > 1 || start.includes(".") ? candidates() : [];
  chosen = 0;
  const box = $("choices");
  box.hidden = !choices.length;
  $("sql").setAttribute("aria-expanded", String(!box.hidden));
  if (box.hidden) return;
  box.replaceChildren(...choices.map((one, i) => el("li",
    { role: "option", id: `choice-${i}`, "aria-selected": String(i === 0),
      onmousedown: (event) => { event.preventDefault(); chosen = i; accept(); } },
    one.text, el("small", {}, one.kind))));
  place(box, start.length);
  mark();
}

function place(box, back) {
  // Where the cursor stands is what a copy of the text says.
  const editor = $("sql");
  const style = getComputedStyle(editor);
  const copy = el("div");
  for (const name of ["font", "padding", "border", "lineHeight", "tabSize"]) copy.style[name] = style[name];
  Object.assign(copy.style, { position: "absolute", visibility: "hidden", whiteSpace: "pre-wrap",
    overflowWrap: "break-word", width: `${editor.clientWidth}px` });
  const cursor = el("span", {}, "|");
  copy.append(editor.value.slice(0, editor.selectionStart - back), cursor);
  $("editor").append(copy);
  const left = Math.min(cursor.offsetLeft, Math.max(editor.clientWidth - 260, 0));
  box.style.left = `${left}px`;
  box.style.top = `${cursor.offsetTop + cursor.offsetHeight - editor.scrollTop + 4}px`;
  copy.remove();
}

function mark() {
  [...$("choices").children].forEach((item, i) => item.setAttribute("aria-selected", String(i === chosen)));
  const item = $("choices").children[chosen];
  if (item) item.scrollIntoView({ block: "nearest" });
  $("sql").setAttribute("aria-activedescendant", `choice-${chosen}`);
}

function close() {
  choices = [];
  $("choices").hidden = true;
  $("sql").setAttribute("aria-expanded", "false");
  $("sql").removeAttribute("aria-activedescendant");
}

function accept() {
  const one = choices[chosen];
  const editor = $("sql");
  editor.setRangeText(one.text, editor.selectionStart - one.cut, editor.selectionStart, "end");
  close();
  editor.focus();
}

$("sql").addEventListener("input", () => complete(false));
$("sql").addEventListener("blur", close);
$("sql").addEventListener("click", close);
$("sql").addEventListener("keydown", (event) => {
  const open = choices.length > 0;
  if (event.ctrlKey && event.key === " ") complete(true);
  else if (open && event.key === "ArrowDown") { chosen = (chosen + 1) % choices.length; mark(); }
  else if (open && event.key === "ArrowUp") { chosen = (chosen + choices.length - 1) % choices.length; mark(); }
  else if (open && (event.key === "Tab" || (event.key === "Enter" && !event.ctrlKey && !event.metaKey))) accept();
  else if (open && event.key === "Escape") { close(); event.stopPropagation(); }
  else return;
  event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  const ctrl = event.ctrlKey || event.metaKey;
  if (ctrl && event.key === "Enter") { event.preventDefault(); run(); }
  else if (ctrl && event.key.toLowerCase() === "e") { event.preventDefault(); estimate(); }
  else if (event.key === "Escape" && running) stop();
});

// --- running --------------------------------------------------------------------------------------

function fail(error) {
  $("error").hidden = !error;
  $("error").textContent = error ? `${error.message}${error.hint ? `\n${error.hint}` : ""}` : "";
  if (error && error.span) {
    $("sql").focus();
    $("sql").setSelectionRange(error.span[0], error.span[1]);
  }
}

// What is shown belongs to an earlier query than the one above it.
const stale = (on) => ["status", "rows", "answers"].forEach((id) => $(id).classList.toggle("stale", on));

const query = () => ({ sql: $("sql").value, dialect: $("dialect").value });

async function estimate() {
  fail(null);
  $("confirm").hidden = true;
  try {
    const found = await api("plan", query());
    $("status").replaceChildren(found.expected);
    $("plan-text").textContent = found.plan;
    select("plans");
    return found;
  } catch (error) {
    stale(true);
    fail(error);
    return null;
  }
}

async function run() {
  close();
  if (running) return;
  const found = await estimate();
  if (!found) return;
  if (found.confirm) {
    $("confirm-text").textContent = `This query ${found.values === undefined ? found.expected : `is expected to ask ${found.values === null ? "an unknown number of values" : counted(found.values, "value")}${found.cost ? `, cost ${found.cost}` : ""}`}.`;
    $("confirm").hidden = false;
    $("confirm-yes").focus();
    return;
  }
  await start(false);
}

async function start(confirmed) {
  $("confirm").hidden = true;
  fail(null);
  try {
    const { id } = await api("run", { ...query(), confirmed });
    running = id;
    await follow(id);
  } catch (error) {
    running = 0;
    stale(true);
    fail(error);
  }
}

async function stop() {
  if (running) await api(`stop/${running}`, {}).catch(fail);
}

function busy(on) {
  $("stop").hidden = !on;
  $("run").disabled = on;
  $("plan").disabled = on;
  $("bar").hidden = !on;
}

async function follow(id) {
  busy(true);
  let now;
  try {
    do {
      now = await api(`run/${id}`);
      status(now);
      if (now.outcome === "running") await new Promise((done) => setTimeout(done, 250));
    } while (now.outcome === "running");
  } finally {
    running = 0;
    busy(false);
  }
  await show(id, now);
  await refresh();
}

function status(now) {
  const known = Math.max(now.known, now.done, now.expected ?? 0);
  $("bar").value = known ? now.done / known : 0;
  if (!known) $("bar").removeAttribute("value");
  const parts = [];
  if (now.outcome === "running" && known) parts.push(`${number(now.done)} of ${counted(known, "value")}`);
  else if (now.values) parts.push(`${counted(now.values, "value")} asked`);
  if (now.cached) parts.push(`${number(now.cached)} cached`);
  if (now.failed) parts.push(`${number(now.failed)} failed`);
  if (now.tokens) parts.push(counted(now.tokens, "token"));
  if (now.cost) parts.push(`cost ${now.cost}`);
  parts.push(`${now.seconds.toFixed(1)} s`);
  const what = now.outcome === "done" ? counted(now.rows ?? 0, "row") : now.outcome;
  $("status").replaceChildren(el("b", {}, what), ` · ${parts.join(" · ")}`);
  if (now.plan) $("plan-text").textContent = now.plan;
}

async function show(id, known) {
  const now = known || await api(`run/${id}`).catch((error) => { fail(error); return null; });
  if (!now || now.outcome === "running") return;
  shown = id;
  stale(false);
  fail(now.error);
  status(now);
  $("warnings").hidden = !now.warnings.length;
  $("warnings").textContent = now.warnings.join("\n");
  $("trace").hidden = false;
  $("trace").href = `/trace/${id}?token=${encodeURIComponent(token)}`;
  $("tab-answers").textContent = now.answers ? `Answers (${number(now.answers)})` : "Answers";
  await Promise.all([rows(now, 0), answers(now, 0)]);
  select(now.columns.length ? "rows" : "plans");
}

// --- results --------------------------------------------------------------------------------------

function cell(value) {
  if (value === null) return el("td", { class: "null" }, "NULL");
  if (typeof value === "number") return el("td", { class: "n" }, String(value));
  const held = el("div", { class: "cell" });
  held.addEventListener("dblclick", () => held.classList.toggle("open"));
  held.append(...content(value));
  return el("td", {}, held);
}

function content(value) {
  if (value === null) return ["NULL"];
  if (typeof value !== "object") return [String(value)];
  if ("evidence" in value && "value" in value) {
    const why = value.evidence === null ? value.reason : null;
    return [...content(value.value), el("span", { class: "evidence" },
      value.evidence === null ? (why ?? "") : el("q", {}, String(value.evidence)),
      typeof value.confidence === "number" ? ` ${(100 * value.confidence).toFixed(0)} %` : "")];
  }
  const inner = Object.values(value).some((one) => one && typeof one === "object" && "evidence" in one);
  if (inner) return Object.entries(value).map(([name, one]) => el("div", {}, el("b", {}, `${name}: `), ...content(one)));
  return [JSON.stringify(value)];
}

function table(heads, lines) {
  const head = el("tr", {}, ...heads.map(([name, type]) =>
    el("th", { scope: "col", class: /^(u?int|float|double|decimal)/.test(type || "") ? "n" : "" }, name, type && el("small", {}, type))));
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" },
    el("table", {}, el("thead", {}, head), el("tbody", {}, ...lines)));
}

function pager(total, first, go, more = "") {
  const last = Math.min(first + PAGE, total);
  const back = el("button", { type: "button", onclick: () => go(first - PAGE) }, "Earlier");
  const on = el("button", { type: "button", onclick: () => go(first + PAGE) }, "Later");
  back.disabled = first === 0;
  on.disabled = last >= total;
  const place = el("span", {}, `${number(total ? first + 1 : 0)}–${number(last)} of ${number(total)}${more}`);
  return el("div", { class: "pager" }, ...(total > PAGE ? [back, on] : []), place);
}

async function rows(now, first) {
  if (!now.columns.length) {
    $("rows").replaceChildren(el("p", { class: "empty" }, now.id ? "No rows." : "The rows of a query stand here."));
    return;
  }
  try {
    const found = await api(`rows/${now.id}?first=${first}&count=${PAGE}`);
    const lines = found.map((row) => el("tr", {}, ...row.map(cell)));
    $("rows").replaceChildren(table(now.columns.map((c) => [c.name, c.type]), lines),
      pager(now.rows, first, (to) => rows(now, to), now.cut ? "; the query has more" : ""));
  } catch (error) {
    $("rows").replaceChildren(el("p", { class: "empty" }, error.message));
  }
}

async function answers(now, first) {
  if (!now.answers) {
    $("answers").replaceChildren(el("p", { class: "empty" },
      now.id ? "This query asked nothing." : "What a query asks, and the answers, stand here."));
    return;
  }
  try {
    const found = await api(`answers/${now.id}?first=${first}&count=${PAGE}`);
    const sure = found.some((one) => one.probability !== null); // generated answers have none
    const lines = found.map((one) => el("tr", {},
      cell(one.call), cell(one.values.map((v) => v ?? "NULL").join("\n")), cell(one.error ? `failed: ${one.error}` : one.answer),
      ...(sure ? [cell(one.probability === null ? "" : `${(100 * one.probability).toFixed(0)} %`)] : []),
      cell(one.cached ? "cache" : one.model)));
    const headings = ["call", "about", "answer", ...(sure ? ["probability"] : []), "from"];
    $("answers").replaceChildren(table(headings.map((name) => [name]), lines),
      pager(now.answers, first, (to) => answers(now, to)));
  } catch (error) {
    $("answers").replaceChildren(el("p", { class: "empty" }, error.message));
  }
}

const TABS = ["rows", "answers", "plans"];

function select(name) {
  for (const one of TABS) {
    const on = one === name;
    $(one).hidden = !on;
    $(`tab-${one}`).setAttribute("aria-selected", String(on));
    $(`tab-${one}`).tabIndex = on ? 0 : -1;
  }
}

TABS.forEach((name, i) => {
  $(`tab-${name}`).addEventListener("click", () => select(name));
  $(`tab-${name}`).addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: TABS.length - 1 }[event.key];
    if (!step) return;
    const next = TABS[(i + step) % TABS.length];
    select(next);
    $(`tab-${next}`).focus();
  });
});

$("query").addEventListener("submit", (event) => { event.preventDefault(); run(); });
$("plan").addEventListener("click", estimate);
$("stop").addEventListener("click", stop);
$("confirm-yes").addEventListener("click", () => start(true));
$("confirm-no").addEventListener("click", () => { $("confirm").hidden = true; $("sql").focus(); });
$("budget").addEventListener("submit", (event) => {
  event.preventDefault();
  fail(null);
  api("budget", { limits: $("limits").value }).then(refresh).catch(fail);
});

if (matchMedia("(max-width: 760px)").matches) $("tables-box").open = $("history-box").open = false;
rows({ columns: [] }, 0);
answers({}, 0);
refresh().then(() => {
  if (!$("sql").value && state.tables.length) $("sql").value = `SELECT * FROM ${quoted(state.tables[0].name)} LIMIT 20`;
  $("sql").focus();
}).catch(fail);
