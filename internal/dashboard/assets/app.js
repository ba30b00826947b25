// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// The script of the page: it gets a token, with that the pages of the server, and puts them into
// the document piece by piece, so that focus, selection and scrolling stay as they are.
"use strict";
(() => {
const $ = id => document.getElementById(id);
const main = $("main"), banner = $("banner"), dialog = $("dialog");
const policy = window.trustedTypes ? trustedTypes.createPolicy("tide", { createHTML: html => html }) : { createHTML: html => html };
const tabs = new BroadcastChannel("tide");
const key = "tide-ticket", me = crypto.randomUUID();
let token = "", ticket = "", asks = false, stream = null, paused = false, streaming = "", retry = 0, received = 0, at = "", context = "", shown = "", current = null;

// The link has a code in its fragment, which no browser sends, and which is spent for a token. The
// token is in memory only. For a reload of the tab there is a ticket, which is spent like a code: it
// is in sessionStorage from the end of a document to the start of the next.
async function enter() {
  const given = /^#([\w-]{43})$/.exec(location.hash)?.[1] || "", kept = sessionStorage.getItem(key) || ticket;
  sessionStorage.removeItem(key);
  token = "";
  if (given) history.replaceState(null, "", location.pathname + location.search);
  // A ticket that is left counts if the code was used before.
  for (const code of [given, kept]) if (code && await spend(code)) return;
  ticket = "";
}

// spend swaps a code or a ticket for a token, and reports whether it was good.
async function spend(code) {
  ticket = code;
  const answer = await fetch("/-/enter", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }), cache: "no-store", credentials: "omit", redirect: "error" });
  if (answer.ok) ({ token, ticket } = await answer.json());
  return answer.ok;
}

// start shows the page, once this tab has a token. A document that is only prepared spends nothing.
async function start() {
  if (document.prerendering) await new Promise(done => document.addEventListener("prerenderingchange", done, { once: true }));
  try {
    await enter();
  } catch {
    say(silent, true);
    setTimeout(start, 2000);
    return;
  }
  go();
}

addEventListener("pagehide", () => { if (ticket) sessionStorage.setItem(key, ticket); });
addEventListener("pageshow", event => { if (event.persisted) start(); });
addEventListener("hashchange", () => { if (/^#[\w-]{43}$/.test(location.hash)) start(); });

// A tab without a token asks the other tabs of this address, which get it a code.
tabs.onmessage = async ({ data }) => {
  if (data.asks && token) {
    const answer = await ask("/-/invite", { method: "POST" }).catch(() => null);
    if (answer && answer.ok) tabs.postMessage({ to: data.asks, code: (await answer.json()).code });
  } else if (asks && data.to === me) {
    asks = false;
    if (await spend(data.code).catch(() => false)) go();
  }
};

// say shows a line under the header, as long as it holds.
function say(text, bad) {
  if (banner.textContent === text) return;
  banner.textContent = text;
  banner.className = bad ? "bad" : "";
}

const ask = (path, options = {}) => fetch(path, { ...options, headers: { ...options.headers, Authorization: "Bearer " + token }, cache: "no-store", credentials: "omit", redirect: "error" });

function noToken() {
  token = "";
  stop();
  kept.clear();
  current = null;
  main.replaceChildren(main.querySelector("h1") || document.createElement("h1"), Object.assign(document.createElement("p"), { id: "welcome", textContent: "Open the link that kubectl tide dashboard has printed. It lets in one tab, once: for another link, press Enter in the terminal." }));
  say("");
  asks = true;
  tabs.postMessage({ asks: me });
}

// put shows a page as the server has it.
function put(e) {
  if (e.html) {
    const next = parse(e.html);
    // Another page has nothing in common with the one before.
    if (shown === location.pathname) morph(main, next); else replace(next.childNodes);
  }
  received = Date.now();
  head(e);
}

function parse(html) {
  const into = document.createElement("main");
  into.innerHTML = policy.createHTML(html);
  return into;
}

// The pages that were left or fetched ahead, by address, the latest last. A page that is visited
// again within keptFor milliseconds is shown at once, as of its time, until the stream updates it.
const kept = new Map(), mostKept = 8, keptFor = 30000;

function keep(address, page) {
  kept.delete(address);
  kept.set(address, page);
  if (kept.size > mostKept) kept.delete(kept.keys().next().value);
}

const isKept = address => Date.now() - (kept.get(address)?.received || 0) < keptFor;

// replace puts the nodes of another page in place of the shown page, and keeps the latter.
function replace(nodes) {
  if (shown && current) keep(current.address, { nodes: [...main.childNodes], e: current.e, received });
  main.replaceChildren(...nodes);
  shown = location.pathname;
}

// fetchAhead fetches the page of an address that is about to be visited, and keeps it.
let ahead = { address: "", done: null };
function fetchAhead(address) {
  if (!token || isKept(address) || ahead.address === address) return;
  const fetched = ask("/-/page" + address).then(answer => answer.ok && answer.json()).then(e => {
    if (token && e.html) keep(address, { nodes: [...parse(e.html).childNodes], e, received: Date.now() });
  }).catch(() => {}).finally(() => { if (ahead.done === fetched) ahead = { address: "", done: null }; });
  ahead = { address, done: fetched };
}

// Who points at a link for a moment, or moves the focus to it, is about to visit it.
let pointing = 0;
function pointed({ target }) {
  clearTimeout(pointing);
  const a = target.closest?.("a[href]");
  if (a && a.origin === location.origin && a.pathname !== location.pathname && !a.getAttribute("href").startsWith("#")) pointing = setTimeout(fetchAhead, 50, a.pathname + a.search);
}
addEventListener("pointerover", pointed);
addEventListener("focusin", pointed);

// head shows what a page says beside its content: whose it is, and as of when.
function head(e) {
  roving();
  current = { address: location.pathname + location.search, e: { ...e, html: "" } };
  context = e.context ? "?context=" + encodeURIComponent(e.context) : "";
  for (const a of document.querySelectorAll("nav a")) a.search = context;
  document.title = e.title + " – " + (e.about.context || e.about.server) + " – Tidekeeper";
  $("about").textContent = [e.about.context || e.about.server, e.about.user, e.about.namespace && "namespace " + e.about.namespace].filter(Boolean).join(" · ");
  at = e.asOf;
  tick();
  main.classList.toggle("stale", !!e.lost);
  say(e.lost ? "The cluster has not answered since " + e.asOf + ": " + e.lost + ". What you see is from then; trying again." : "", true);
  $("pause").hidden = false;
}

function tick() {
  if (!at) return;
  const age = Math.round((Date.now() - received) / 1000);
  $("asof").textContent = paused ? "paused at " + at : age < 10 ? "as of " + at : "as of " + at + ", " + age + " s ago";
}
setInterval(tick, 1000);

// morph makes one element like another, and keeps what is the same.
function morph(from, to) {
  for (const { name } of [...from.attributes]) if (from !== main && !to.hasAttribute(name) && !(name === "open" && from.tagName === "DETAILS") && !(name === "tabindex" && from.dataset.square !== undefined)) from.removeAttribute(name);
  for (const { name, value } of to.attributes) {
    if (name === "open" && from.tagName === "DETAILS" || name === "tabindex" && from.dataset.square !== undefined) continue;
    if (from.getAttribute(name) !== value) {
      from.setAttribute(name, value);
      if (name === "value" && from !== document.activeElement) from.value = value;
    }
  }
  const wanted = new Set([...to.children].map(keyOf).filter(Boolean));
  const named = new Map();
  for (const child of [...from.children]) {
    const key = keyOf(child);
    if (!key) continue;
    if (wanted.has(key)) named.set(key, child); else child.remove();
  }
  let old = from.firstChild;
  for (let next = to.firstChild; next;) {
    const after = next.nextSibling, key = keyOf(next);
    let same = key ? named.get(key) : old;
    if (!key) while (same && !alike(same, next)) same = same.nextSibling;
    if (!same) {
      from.insertBefore(next, old);
    } else {
      while (old && old !== same && !keyOf(old) && !holds(old)) old = gone(old);
      if (same !== old && holds(same)) while (old !== same) { const rest = old.nextSibling; from.append(old); old = rest; }
      if (same === old) old = old.nextSibling; else from.insertBefore(same, old);
      if (next.nodeType === 1) { if (!same.isEqualNode(next)) morph(same, next); }
      else if (same.data !== next.data) same.data = next.data;
    }
    next = after;
  }
  while (old) old = gone(old);
}

// keyOf is what an element is known by, wherever it is: its id, or that of its heading.
const keyOf = e => e.nodeType === 1 && (e.id || e.getAttribute("aria-labelledby")) || "";

// alike reports whether an element without a key may become another one.
const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && !keyOf(a) && (a.nodeType !== 1 || a.getAttribute("class") === b.getAttribute("class"));

// holds reports whether the focus or the selection is in a node: it is left in its place, as it would
// lose them elsewhere.
function holds(node) {
  const selection = getSelection();
  return node.contains(document.activeElement) || !selection.isCollapsed && selection.containsNode(node, true);
}

// gone removes a node, and returns the one after it.
function gone(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}

// The map of nodes is one stop of the Tab key; arrows move in it.
function roving() {
  const squares = main.querySelectorAll("[data-square]");
  const stops = main.querySelectorAll('[data-square][tabindex="0"]');
  squares.forEach(s => { if (!s.hasAttribute("tabindex")) s.tabIndex = -1; });
  if (squares.length && !stops.length) squares[0].tabIndex = 0;
}

function moveInMap(event, square) {
  const squares = [...main.querySelectorAll("[data-square]")];
  const i = squares.indexOf(square), y = s => s.getBoundingClientRect().top;
  const row = squares.filter(s => Math.abs(y(s) - y(square)) < 2).length;
  const to = { ArrowRight: i + 1, ArrowLeft: i - 1, ArrowDown: i + row, ArrowUp: i - row, Home: 0, End: squares.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  const next = squares[Math.max(0, Math.min(squares.length - 1, to))];
  square.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
}

// A square of the map gets its tooltip when it is pointed at: a large map is smaller without.
main.addEventListener("pointerover", ({ target }) => {
  if (target.dataset?.square !== undefined) target.title = target.getAttribute("aria-label");
});

function stop() {
  clearTimeout(again);
  if (stream) stream.abort();
  stream = null;
  streaming = "";
}

// follow keeps the page up to date: one stream, with the token, while the tab can be seen.
async function follow() {
  const here = location.pathname + location.search;
  if (paused || document.hidden || !token || streaming === here) return;
  stop();
  streaming = here;
  const mine = stream = new AbortController();
  try {
    const answer = await ask("/-/stream" + here, { signal: mine.signal });
    if (answer.status === 401) return noToken();
    if (!answer.ok) return refuse(await answer.text());
    retry = 0;
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = "";;) {
      const { value, done } = await reader.read();
      if (done) break;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const [, event, data] = part.match(/^event: (\w+)\ndata: (.*)$/) || [];
        if (mine !== stream || paused) return;
        if (event === "page") put(JSON.parse(data));
        if (event === "gone") return refuse(JSON.parse(data));
        if (event === "replaced") { setPaused(true); return say("Paused: " + JSON.parse(data) + ". Resume takes its place."); }
      }
    }
    throw new Error("the connection has ended");
  } catch (err) {
    if (mine !== stream) return;
    stop();
    main.classList.add("stale");
    if (shown !== location.pathname) instead(silent);
    say((at && "As of " + at + ", trying again: ") + silent, true);
    later(Math.min(5000, 500 * 2 ** retry++));
  }
}

// refuse says why the server does not show the page, and asks again later: what is missing may come.
function refuse(why) {
  stop();
  instead(why);
  say("");
  later(5000);
}

// instead says in place of the page why it is not shown.
function instead(why) {
  const title = Object.assign(document.createElement("h1"), { textContent: "This page cannot be shown" });
  main.replaceChildren(title, Object.assign(document.createElement("p"), { id: "refused", textContent: why.trim() }));
  shown = at = "";
  kept.delete(location.pathname + location.search);
  $("asof").textContent = "";
}

// later follows the page again after some milliseconds, once, however often that is asked for.
let again = 0;
function later(ms) {
  clearTimeout(again);
  again = setTimeout(follow, ms);
}

// go shows the page of the address.
async function go(focus) {
  if (!token) {
    noToken();
    return;
  }
  for (const a of document.querySelectorAll("nav a")) {
    const here = a.pathname === location.pathname || a.pathname === "/" && location.pathname.startsWith("/pools/");
    if (here) a.setAttribute("aria-current", "page"); else a.removeAttribute("aria-current");
  }
  if ($("q") !== document.activeElement) $("q").value = new URLSearchParams(location.search).get("q") || "";
  $("search").hidden = !/^\/(restarts|pods)?$/.test(location.pathname);
  const here = location.pathname + location.search;
  stop();
  if (ahead.address === here) await ahead.done;
  if (here !== location.pathname + location.search) return;
  if (shown !== location.pathname && isKept(here) && !paused) {
    const page = kept.get(here);
    kept.delete(here);
    replace(page.nodes);
    received = page.received;
    head(page.e);
  } else try {
    const answer = await ask("/-/page" + here);
    if (here !== location.pathname + location.search) return;
    if (answer.status === 401) return noToken();
    if (answer.ok) put(await answer.json()); else return refuse(await answer.text());
  } catch { /* The stream says so. */ }
  if (focus) main.focus({ preventScroll: true });
  if (location.hash) document.querySelector("#" + CSS.escape(location.hash.slice(1)))?.scrollIntoView();
  later(300); // The page is painted first. What is new is sent then, unless another page is visited before.
}

// opener is the row or the square whose panel is open: closing the panel gives it the focus back.
let opener = "";

function backToOpener() {
  const to = $(opener) || main.querySelector("tr.chosen");
  const at = to && (to.matches("a") ? to : to.querySelector("a"));
  if (at) at.focus({ preventScroll: true }); else main.focus({ preventScroll: true });
  if (at) at.scrollIntoView({ block: "nearest" });
}

// closing visits an address without the panel.
function closing(url) {
  if (!$(opener)) opener = (main.querySelector("tr.chosen, [data-square][aria-current]") || {}).id || "";
  visit(url).then(backToOpener);
}

function visit(url, replace) {
  const moved = url.pathname !== location.pathname;
  history[replace ? "replaceState" : "pushState"](null, "", url);
  if (moved) scrollTo(0, 0);
  return go(moved);
}

function setPaused(yes) {
  paused = yes;
  $("pause").setAttribute("aria-pressed", yes);
  $("pause").textContent = yes ? "Resume" : "Pause";
  if (yes) stop(); else go();
  tick();
}

// act asks in a dialog, with the fields of a freeze where a button has namespaces, and does it.
async function act(button) {
  const { object, ask: asking, question, namespaces } = button.dataset, form = dialog.firstChild, fields = $("fields"), text = button.textContent, where = context;
  $("ask").textContent = asking;
  $("question").textContent = question;
  dialog.querySelector(".do").textContent = text;
  dialog.returnValue = "";
  form.reset();
  mistake("");
  fields.hidden = fields.disabled = namespaces === undefined;
  dialog.showModal();
  if (!fields.hidden) {
    form.elements.namespaces.value = namespaces;
    form.elements.until.focus();
  }
  // The dialog stays open, with what was typed, until the action is done or given up.
  form.onsubmit = async event => {
    if (event.submitter && event.submitter.value !== "yes") return;
    event.preventDefault();
    if (form.dataset.busy) return;
    form.dataset.busy = "1";
    mistake("");
    try {
      const body = JSON.stringify({ ...JSON.parse(object), ...Object.fromEntries(new FormData(form)) });
      const answer = await ask("/-/act" + where, { method: "POST", headers: { "Content-Type": "application/json" }, body });
      if (!answer.ok) return mistake(await answer.text());
      toast((await answer.json()).done);
      dialog.close();
    } catch {
      mistake(silent);
    } finally {
      delete form.dataset.busy;
    }
  };
}

// silent says that nothing listens.
const silent = "kubectl tide dashboard does not answer. If it has ended, start it again and use the new link.";

// mistake says in the dialog why its action was not done.
function mistake(text) { $("mistake").textContent = text.trim(); }

// toast says at the lower edge what was done, for some seconds.
let toasting = 0;
function toast(text, bad) {
  clearTimeout(toasting);
  $("toast").textContent = text.trim();
  $("toast").className = bad ? "bad" : "";
  toasting = setTimeout(() => { $("toast").textContent = ""; }, 8000);
}

async function save() {
  let answer;
  try {
    answer = await ask((location.pathname === "/" ? "/overview" : location.pathname) + ".json" + location.search);
  } catch {
    return toast(silent, true);
  }
  if (!answer.ok) return toast("Nothing was saved: " + await answer.text(), true);
  const url = URL.createObjectURL(await answer.blob());
  Object.assign(document.createElement("a"), { href: url, download: document.title + ".json" }).click();
  URL.revokeObjectURL(url);
}

document.addEventListener("click", event => {
  const target = event.target.closest("a, button");
  if (!target || event.defaultPrevented) return;
  const { copy, act: action } = target.dataset;
  if (copy !== undefined) { navigator.clipboard.writeText(copy).then(() => toast("Copied: " + copy), () => toast("The browser does not let this page copy.", true)); return; }
  if (target.dataset.json !== undefined) { save(); return; }
  if (action) { act(target); return; }
  const href = target.getAttribute("href");
  if (!href || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  const url = new URL(href, location.href);
  if (url.origin !== location.origin || href.startsWith("#")) return;
  event.preventDefault();
  if (target.dataset.close !== undefined) return closing(url);
  const from = target.closest("tr, [data-square]");
  const opens = from && url.pathname === location.pathname;
  if (opens) opener = from.id;
  visit(url).then(() => {
    const panel = opens && $("panel");
    if (!panel) return;
    panel.scrollTop = 0;
    if (target.dataset.square === undefined) panel.focus({ preventScroll: true }); else $(opener)?.focus({ preventScroll: true });
  });
});

let typing = 0;
function typed(form) {
  clearTimeout(typing);
  typing = setTimeout(() => {
    const url = new URL(location.href);
    for (const [name, value] of new FormData(form)) if (value || form.dataset.live !== undefined) url.searchParams.set(name, value); else url.searchParams.delete(name);
    visit(url, true);
  }, 200);
}
document.addEventListener("input", event => { if (event.target.form && event.target.form !== dialog.firstChild) typed(event.target.form); });
document.addEventListener("submit", event => { if (event.target.method !== "dialog") event.preventDefault(); });
document.addEventListener("keydown", event => {
  const square = event.target.closest("[data-square]");
  if (square) moveInMap(event, square);
  if (event.key === "/" && !/INPUT|TEXTAREA/.test(event.target.tagName)) { event.preventDefault(); $("q").focus(); }
  if (event.key === "Escape" && !dialog.open) {
    const close = main.querySelector("[data-close]");
    if (close) {
      closing(new URL(close.href));
    } else if (event.target === $("q")) $("q").blur();
  }
});
$("pause").addEventListener("click", () => setPaused(!paused));
addEventListener("popstate", () => {
  const open = !!$("panel");
  go(true).then(() => { if (open && !$("panel")) backToOpener(); });
});

// A tab that cannot be seen gives its stream back after a while.
let hiding = 0;
document.addEventListener("visibilitychange", () => {
  clearTimeout(hiding);
  if (document.hidden) hiding = setTimeout(stop, 20000); else follow();
});

// A panel begins below the header, however many lines that has.
new ResizeObserver(([{ target }]) => document.documentElement.style.setProperty("--head", target.offsetHeight + "px")).observe(document.querySelector("header"));

start();
})();
