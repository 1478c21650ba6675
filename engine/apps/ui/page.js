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
    if (table.sql) return el("li", {}, el("button", { type: "button", onclick: () => insert(table.sql) }, table.name));
    const box = el("details", { "data-name": table.name }, el("summary", {}, table.name), el("ul", {}, ...columns));
    box.open = open.has(table.name) || state.tables.length === 1;
    return el("li", {}, box);
  }));
  $("functions").replaceChildren(...state.functions.map((found) => el("li", {}, el("button",
    { type: "button", title: found.signature, onclick: () => insert(`${found.name}(`) },
    found.name, el("br"), el("small", {}, found.summary)))));
  $("history").replaceChildren(...state.history.map((run) => el("li", {}, el("button",
    { type: "button", onclick: () => { setText(run.sql); show(run.id); } },
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
  keepTexts();
}

// --- the queries, each in a tab that keeps its text -------------------------------------------------

const KEPT = "blendfusion.texts";
let texts = [""];
let text = 0;

function keepTexts() {
  texts[text] = $("sql").value;
  try { localStorage.setItem(KEPT, JSON.stringify({ texts, text })); } catch { /* a browser that keeps nothing */ }
}

function setText(value) {
  $("sql").value = value;
  keepTexts();
}

function loadTexts() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEPT) || "null");
    if (kept && Array.isArray(kept.texts) && kept.texts.length && kept.texts.every((one) => typeof one === "string")) {
      texts = kept.texts;
      text = Math.min(Math.max(Number(kept.text) || 0, 0), texts.length - 1);
    }
  } catch { /* nothing was kept */ }
  openText(text);
}

function openText(place) {
  text = place;
  $("sql").value = texts[text];
  const heads = texts.map((_, i) => {
    const head = el("button", { type: "button", role: "tab", id: `text-${i}`, "aria-controls": "editor",
      "aria-selected": String(i === text), tabindex: i === text ? "0" : "-1",
      onclick: () => { keepTexts(); openText(i); $("sql").focus(); } }, `Query ${i + 1}`);
    head.addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: texts.length - 1 }[event.key];
      if (!step) return;
      keepTexts();
      openText((i + step) % texts.length);
      $(`text-${text}`).focus();
    });
    return head;
  });
  $("texts").replaceChildren(...heads);
  $("text-close").disabled = texts.length === 1;
  keepTexts();
}

$("text-new").addEventListener("click", () => { keepTexts(); texts.push(""); openText(texts.length - 1); $("sql").focus(); });
$("text-close").addEventListener("click", () => {
  texts.splice(text, 1);
  openText(Math.max(text - 1, 0));
  $("sql").focus();
});

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
  state.tables.forEach((one) => add(one.sql ?? quoted(one.name), "table", one.name));
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
  $("sql").removeAttribute("aria-activedescendant");
}

function accept() {
  const one = choices[chosen];
  const editor = $("sql");
  editor.setRangeText(one.text, editor.selectionStart - one.cut, editor.selectionStart, "end");
  close();
  editor.focus();
  keepTexts();
}

$("sql").addEventListener("input", () => { keepTexts(); complete(false); });
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
  else if (ctrl && event.key.toLowerCase() === "e") { event.preventDefault(); $("plan").click(); }
  else if (event.key === "Escape" && running) stop();
});

// --- running --------------------------------------------------------------------------------------

let marked = ""; // the place of the last mistake, which is selected, but by nobody
let waiting = []; // the statements that are still to run

function fail(error) {
  $("error").hidden = !error;
  $("error").textContent = error ? `${error.message}${error.hint ? `\n${error.hint}` : ""}` : "";
  if (error && error.span) {
    const [start, end] = error.span.map((place) => place + (error.start ?? 0));
    $("sql").focus();
    $("sql").setSelectionRange(start, end);
    marked = `${start}-${end}`;
  }
}

// What is shown belongs to an earlier query than the one above it.
const stale = (on) => ["status", "rows", "answers"].forEach((id) => $(id).classList.toggle("stale", on));

const query = (one) => ({ sql: one.sql, dialect: $("dialect").value });

/** The statements of the text, or of what is selected in it. */
async function statements() {
  const editor = $("sql");
  const [start, end] = [editor.selectionStart, editor.selectionEnd];
  const part = end > start && marked !== `${start}-${end}` ? editor.value.slice(start, end) : "";
  const [sql, from] = part.trim() ? [part, start] : [editor.value, 0];
  const found = await api("statements", { sql }).catch(() => []);
  if (found.length < 2) return [{ sql, start: from }];
  return found.map((one) => ({ sql: one.sql, start: one.start + from }));
}

async function estimate(one, runs = false) {
  fail(null);
  $("confirm").hidden = true;
  try {
    const found = await api("plan", { ...query(one), runs });
    $("status").replaceChildren(found.expected);
    $("plan-text").textContent = found.plan;
    select("plans");
    return found;
  } catch (error) {
    stale(true);
    fail({ ...error, start: one.start });
    if (runs) await refresh().catch(() => {});
    return null;
  }
}

async function run() {
  close();
  if (running) return;
  waiting = await statements();
  await next();
}

async function next() {
  while (waiting.length) {
    const found = await estimate(waiting[0], true);
    if (!found) waiting = [];
    else if (found.confirm) {
      $("confirm-text").textContent = `This query ${found.values === undefined ? found.expected : `is expected to ask ${found.values === null ? "an unknown number of values" : counted(found.values, "value")}${found.most > found.values ? `, at most ${number(found.most)}` : ""}${found.cost ? `, cost ${found.cost}` : ""}`}.`;
      $("confirm").hidden = false;
      $("confirm-yes").focus();
      return;
    } else if (!(await start(waiting.shift(), false))) waiting = [];
  }
}

/** Whether the statement ran to its end. */
async function start(one, confirmed) {
  $("confirm").hidden = true;
  fail(null);
  try {
    const { id } = await api("run", { ...query(one), confirmed });
    running = id;
    return (await follow(id, one.start)).outcome === "done";
  } catch (error) {
    running = 0;
    stale(true);
    fail({ ...error, start: one.start });
    return false;
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

async function follow(id, place) {
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
  await show(id, now, place);
  await refresh();
  return now;
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
  if (now.left) parts.push(`about ${now.left < 90 ? `${Math.ceil(now.left)} s` : `${Math.ceil(now.left / 60)} min`} left`);
  const what = now.outcome === "done" ? counted(now.rows ?? 0, "row") : now.outcome;
  $("status").replaceChildren(el("b", {}, what), ` · ${parts.join(" · ")}`);
  if (now.plan) $("plan-text").textContent = now.plan;
}

async function show(id, known, place = 0) {
  const now = known || await api(`run/${id}`).catch((error) => { fail(error); return null; });
  if (!now || now.outcome === "running") return;
  shown = id;
  view = { words: "", sort: null, down: false };
  $("words").value = "";
  closeAsides();
  stale(false);
  fail(now.error && { ...now.error, start: place });
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

function table(heads, lines, sort = null) {
  const head = el("tr", {}, ...heads.map(([name, type], i) => {
    const numeric = /^(u?int|float|double|decimal)/.test(type || "") ? "n" : "";
    const label = [name, type && el("small", {}, type)];
    if (!name) return el("td");
    if (!sort) return el("th", { scope: "col", class: numeric }, ...label);
    const order = view.sort !== i ? "none" : view.down ? "descending" : "ascending";
    return el("th", { scope: "col", class: numeric, "aria-sort": order },
      el("button", { type: "button", class: "sort", onclick: () => sort(i) }, ...label));
  }));
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

let view = { words: "", sort: null, down: false }; // how the rows that are shown are sorted and filtered

function viewed() {
  const parts = new URLSearchParams({ words: view.words });
  if (view.sort !== null) parts.set("sort", view.sort);
  if (view.down) parts.set("down", "1");
  return parts.toString();
}

function closeAsides() {
  $("why").hidden = $("summary").hidden = true;
  $("sum").setAttribute("aria-expanded", "false");
  $("told").textContent = "";
}

async function rows(now, first) {
  $("tools").hidden = !now.columns.length;
  if (!now.columns.length) {
    $("rows-body").replaceChildren(el("p", { class: "empty" }, now.id ? "No rows." : "The rows of a query stand here."));
    return;
  }
  const asked = view;
  try {
    const [found, total] = await Promise.all([
      api(`rows/${now.id}?first=${first}&count=${PAGE}&${viewed()}`), api(`count/${now.id}?${viewed()}`)]);
    if (asked !== view) return; // the reply to a filter that was typed on
    const lines = found.map((row, i) => el("tr", {}, ...row.map((value, j) => {
      const made = cell(value);
      if (now.answers) made.addEventListener("click", () => why(now, first + i, j));
      return made;
    }), now.answers ? el("td", {}, el("button", { type: "button", onclick: () => why(now, first + i, 0) }, "Why?")) : null));
    const sort = (i) => {
      view = { ...view, sort: i, down: view.sort === i && !view.down };
      rows(now, 0);
    };
    const heads = [...now.columns.map((c) => [c.name, c.type]), ...(now.answers ? [[""]] : [])];
    $("rows-body").replaceChildren(table(heads, lines, sort),
      pager(total.rows, first, (to) => rows(now, to), now.cut ? "; the query has more" : ""));
    $("words").oninput = () => { view = { ...view, words: $("words").value }; rows(now, 0); };
    $("sum").onclick = () => summed(now);
    $("copy").onclick = () => copy(now);
    document.querySelectorAll("[data-file]").forEach((one) => { one.onclick = () => save(now, one.dataset.file); });
  } catch (error) {
    $("rows-body").replaceChildren(el("p", { class: "empty" }, error.message));
  }
}

async function fileOf(now, style) {
  const reply = await fetch(`/api/file/${now.id}/${style}?${viewed()}`, { headers: { "X-Token": token } });
  if (!reply.ok) throw (await reply.json()).error;
  return reply.blob();
}

async function save(now, style) {
  try {
    const link = el("a", { href: URL.createObjectURL(await fileOf(now, style)), download: `rows.${style}` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60000);
    $("told").textContent = `rows.${style} is saved.`;
  } catch (error) {
    $("told").textContent = error.message;
  }
}

async function copy(now) {
  try {
    const copied = await (await fileOf(now, "tsv")).text();
    await navigator.clipboard.writeText(copied);
    $("told").textContent = "The rows are in the clipboard.";
  } catch (error) {
    $("told").textContent = error.message;
  }
}

async function summed(now) {
  const open = $("summary").hidden;
  $("sum").setAttribute("aria-expanded", String(open));
  $("summary").hidden = !open;
  if (!open) return;
  const columns = await api(`summary/${now.id}?${viewed()}`).catch((error) => { fail(error); return []; });
  $("summary").replaceChildren(...columns.map((one) => {
    const most = Math.max(...one.bars.map((bar) => bar.rows), 1);
    const parts = [counted(one.distinct, "value"), one.nulls ? `${number(one.nulls)} NULL` : ""];
    if ("mean" in one) parts.push(`${one.least} to ${one.most}, mean ${Number(one.mean).toPrecision(4)}`);
    return el("section", {}, el("h2", {}, one.name, " ", el("small", {}, one.type)),
      el("small", {}, parts.filter(Boolean).join(" · ")),
      el("ul", {}, ...one.bars.map((bar) => el("li", {}, el("span", {}, String(bar.name)),
        el("progress", { max: most, value: bar.rows, "aria-label": `rows of ${bar.name}` }), el("span", {}, number(bar.rows))))));
  }));
}

async function why(now, row, column) {
  const found = await api(`cell/${now.id}/${row}/${column}?${viewed()}`).catch((error) => { fail(error); return []; });
  const close = el("button", { type: "button", onclick: () => { $("why").hidden = true; } }, "Close");
  const items = found.map((one, i) => {
    const field = el("input", { id: `right-${i}`, size: "14", autocomplete: "off" });
    const told = el("span", { role: "status" });
    const form = el("form", { onsubmit: async (event) => {
      event.preventDefault();
      const given = { question: one.question, text: one.values.join("\n"), answer: String(one.answer), label: field.value };
      const kept = await api("correct", given).catch((error) => { told.textContent = error.message; return null; });
      if (!kept) return;
      told.textContent = `${counted(kept.corrections, "label")} in the table corrections`;
      await refresh();
    } }, el("label", { for: `right-${i}` }, "The right answer"), field, el("button", {}, "Keep"), told);
    const sure = one.probability === null ? "" : `, ${(100 * one.probability).toFixed(0)} %`;
    return el("li", {}, el("b", {}, `${one.call}: ${one.question}`), el("div", {}, one.values.map((v) => v ?? "NULL").join(" · ")),
      el("div", {}, "→ ", el("b", {}, one.error ? `failed: ${one.error}` : String(one.answer)), sure,
        ` (${one.cached ? "cache" : one.model})`), form);
  });
  $("why").replaceChildren(items.length ? el("ul", {}, ...items) :
    el("p", {}, "No answer is about a value that this row shows. Select the column that the question is about, too."), close);
  $("why").hidden = false;
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
$("plan").addEventListener("click", async () => estimate((await statements())[0]));
$("stop").addEventListener("click", stop);
$("confirm-yes").addEventListener("click", async () => {
  if (await start(waiting.shift(), true)) await next();
  else waiting = [];
});
$("confirm-no").addEventListener("click", () => { waiting = []; $("confirm").hidden = true; $("sql").focus(); });

// --- files ----------------------------------------------------------------------------------------

async function openFiles(given) {
  for (const file of given) {
    try {
      const reply = await fetch(`/api/open?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file,
        headers: { "X-Token": token, "Content-Type": "application/octet-stream" } });
      const data = (reply.headers.get("Content-Type") || "").startsWith("application/json") ? await reply.json() :
        { error: { message: await reply.text() } };
      if (!reply.ok) throw data.error;
      fail(null);
    } catch (error) {
      fail(error.message ? error : { message: "the file was not sent" });
    }
  }
  await refresh();
}

$("file").addEventListener("change", () => { openFiles([...$("file").files]).then(() => { $("file").value = ""; }); });
document.addEventListener("dragover", (event) => event.preventDefault());
document.addEventListener("drop", (event) => { event.preventDefault(); openFiles([...event.dataTransfer.files]); });
$("budget").addEventListener("submit", (event) => {
  event.preventDefault();
  fail(null);
  api("budget", { limits: $("limits").value }).then(refresh).catch(fail);
});

loadTexts();
if (matchMedia("(max-width: 760px)").matches) $("tables-box").open = $("history-box").open = false;
rows({ columns: [] }, 0);
answers({}, 0);
refresh().then(() => {
  if (!$("sql").value && state.tables.length) setText(`SELECT * FROM ${state.tables[0].sql ?? quoted(state.tables[0].name)} LIMIT 20`);
  $("sql").focus();
}).catch(fail);
