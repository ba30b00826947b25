// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// policyHolds tries actions in the page that an injected script could try. The content security
// policy must block them.
func policyHolds(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/")
	shows(ctx, t, "worker")
	if got := value[string](ctx, t, `new Promise(done => {
		const s = document.createElement("script");
		try { s.textContent = "window.ran = 2"; document.head.append(s); done(window.ran === 2 ? "ran" : "blocked"); } catch { done("blocked"); }
	})`); got != "blocked" {
		t.Errorf("an inline script %s", got)
	}
	// DevTools evaluates scripts regardless of the page's content security policy, unless that is
	// switched off.
	evaluated, err := chromedp.Run(ctx, chromedp.Evaluate[string](`(() => { try { return eval("'ran'"); } catch { return "refused"; } })()`, func(p *runtime.EvaluateParams) {
		no := false
		p.AllowUnsafeEvalBlockedByCSP = &no
	}))
	if err != nil || evaluated != "refused" {
		t.Errorf("eval: %s, %v", evaluated, err)
	}
	if got := value[string](ctx, t, `(() => { try { document.body.insertAdjacentHTML("beforeend", "<b>x</b>"); return "put in"; } catch { return "refused"; } })()`); got != "refused" {
		t.Errorf("HTML of no policy was %s", got)
	}
	if got := value[string](ctx, t, `(() => { try { trustedTypes.createPolicy("evil", {}); return "created"; } catch { return "refused"; } })()`); got != "refused" {
		t.Errorf("another policy was %s", got)
	}
	if got := value[string](ctx, t, `(document.body.setAttribute("style", "color: rgb(1, 2, 3)"), getComputedStyle(document.body).color)`); got == "rgb(1, 2, 3)" {
		t.Error("a style attribute has an effect")
	}
	if got := value[bool](ctx, t, `fetch("http://127.0.0.1:1/").then(() => false, () => true)`); !got {
		t.Error("the page may ask other servers")
	}
}

func withoutToken(t *testing.T, d *dashboard) {
	ctx := browser(t)
	said := listen(ctx, t)
	for _, link := range []string{d.base + "/", d.base + "/#" + strings.Repeat("x", 43)} {
		open(ctx, t, "about:blank")
		open(ctx, t, link)
		shows(ctx, t, "Open the link that kubectl tide dashboard has printed")
		if text := value[string](ctx, t, "document.documentElement.outerHTML"); strings.Contains(text, "worker") || strings.Contains(text, "node-1") {
			t.Error("there is data of the cluster in the page")
		}
	}
	if _, requests := said.soFar(); len(requests) == 0 {
		t.Error("no request was seen: is this test listening?")
	}
}

// usedLink opens a link that a tab has already used in another browser, which must not be admitted.
func usedLink(t *testing.T, d *dashboard) {
	other := browser(t)
	open(other, t, d.link)
	shows(other, t, "It lets in one tab, once")
	if text := value[string](other, t, "document.documentElement.outerHTML"); strings.Contains(text, "worker") {
		t.Error("there is data of the cluster in the page")
	}
}

// otherOrigin opens a page on another port of this machine that tries to read and change the
// dashboard's data.
func otherOrigin(ctx context.Context, t *testing.T, d *dashboard) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, "<!doctype html><title>other</title><p>other")
	}))
	defer page.Close()
	other := tab(ctx, t)
	open(other, t, page.URL)
	before := kubectl(t, "", "get", "scheduledrestarts", "-A", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
	got := value[map[string]string](other, t, fmt.Sprintf(`(async (base, token) => {
		const got = {}, outcome = p => p.then(() => "read", () => "nothing"), within = p => Promise.race([p, new Promise(r => setTimeout(() => r("nothing"), 1500))]);
		got.fetch = await outcome(fetch(base + "/-/page/").then(a => a.text()));
		got.withToken = await outcome(fetch(base + "/-/page/", { headers: { Authorization: "Bearer " + token } }).then(a => a.text()));
		got.stream = await within(new Promise(r => { const s = new EventSource(base + "/-/stream/"); s.onopen = () => r("read"); s.onerror = () => { s.close(); r("nothing"); }; }));
		const load = (name, set) => within(new Promise(r => { const e = document.createElement(name); e.onload = () => r("read"); e.onerror = () => r("nothing"); set(e); document.body.append(e); }));
		got.img = await load("img", e => e.src = base + "/-/icon.svg");
		got.script = await load("script", e => e.src = base + "/-/app.js");
		got.post = await fetch(base + "/-/act", { method: "POST", mode: "no-cors", body: '{"action":"now","namespace":"shop","name":"web"}' }).then(a => a.type === "opaque" ? "nothing" : "read", () => "nothing");
		got.token = await within(new Promise(r => { const c = new BroadcastChannel("tide"); c.onmessage = e => r("read"); c.postMessage({ asks: "me" }); }));
		got.enter = await outcome(fetch(base + "/-/enter", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code: token }) }).then(a => a.text()));
		got.invite = await outcome(fetch(base + "/-/invite", { method: "POST", headers: { Authorization: "Bearer " + token } }).then(a => a.text()));
		return got;
	})(%q, %q)`, d.base, d.token))
	framed(other, t, d)
	for what, outcome := range got {
		if outcome != "nothing" {
			t.Errorf("%s: %s", what, outcome)
		}
	}
	if len(got) != 9 {
		t.Errorf("only %d attempts were made", len(got))
	}
	if after := kubectl(t, "", "get", "scheduledrestarts", "-A", "-o", "jsonpath={.items[*].metadata.resourceVersion}"); after != before {
		t.Error("a ScheduledRestart has changed")
	}
}

// framed embeds the dashboard in a frame of another page, which the server must reject.
func framed(other context.Context, t *testing.T, d *dashboard) {
	statuses := make(chan int64, 10)
	if err := chromedp.Listen(other, func(event any) {
		// Responses to earlier attempts, such as preflights, may still arrive.
		if e, ok := event.(*network.EventResponseReceived); ok && e.Response.URL == d.base+"/" {
			statuses <- e.Response.Status
		}
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(other, network.Enable, network.EnableParams{}); err != nil {
		t.Fatal(err)
	}
	value[bool](other, t, fmt.Sprintf(`new Promise(done => { const e = document.createElement("iframe"); e.onload = () => done(true); e.src = %q; document.body.append(e); })`, d.base+"/"))
	select {
	case status := <-statuses:
		if status != http.StatusForbidden {
			t.Errorf("the page in a frame: %d, want 403", status)
		}
	case <-time.After(framework.Patience):
		t.Error("the frame has asked for nothing: is this test looking?")
	}
}

// rebound opens the dashboard under another host name that resolves to this machine, as in a DNS
// rebinding attack.
func rebound(t *testing.T, d *dashboard) {
	ctx := browser(t, chromedp.Flag("host-resolver-rules", "MAP evil.test 127.0.0.1"))
	evil := strings.Replace(d.base, "127.0.0.1", "evil.test", 1)
	for _, path := range []string{"/", "/-/app.js", "/-/app.css", "/pools/worker", "/-/page/", "/overview.json"} {
		answer, err := chromedp.Run(ctx, chromedp.NavigateResponse(evil+path+"#"+d.code()))
		if err != nil && !strings.Contains(err.Error(), "ERR_HTTP_RESPONSE_CODE_FAILURE") {
			t.Fatalf("%s: %v", path, err)
		}
		if err == nil && answer.Status != http.StatusMisdirectedRequest {
			t.Errorf("%s: %v, want 421", path, answer.Status)
		}
		if text := value[string](ctx, t, `document.documentElement ? document.documentElement.textContent : ""`); strings.Contains(text, "Tidekeeper") {
			t.Errorf("%s is shown by another name:\n%s", path, text)
		}
	}
}

// withoutRights opens the dashboard of a user who may only read pools and nodes.
func withoutRights(ctx context.Context, t *testing.T) {
	kubectl(t, "", "create", "clusterrole", "pools-only", "--verb=get,list,watch", "--resource=nodepools.tidekeeper.dev,nodes")
	kubectl(t, "", "create", "clusterrolebinding", "pools-only", "--clusterrole=pools-only", "--user=ana")
	cluster.EventuallyAllowed(t, "ana", framework.Right{Verb: "list", Resource: "nodes"}, true)
	d := startDashboard(t, cluster.UserKubeconfig(t, "ana"))
	other := tab(ctx, t)
	open(other, t, d.link)
	shows(other, t, "not allowed to list pods")
	shows(other, t, "not allowed to list scheduledrestarts, as kubectl auth can-i list scheduledrestarts.tidekeeper.dev --all-namespaces shows")
	shows(other, t, "Not known: not allowed to list scheduledrestarts.")
	shows(other, t, "worker")
	open(other, t, d.base+"/restarts")
	shows(other, t, "Not known: not allowed to list scheduledrestarts.")
	value[bool](other, t, `(document.querySelector("[data-json]").click(), true)`)
	until(other, t, "nothing is saved that is not known, and that is said in view", `document.getElementById("toast").textContent.includes("Nothing was saved: not known: not allowed to list scheduledrestarts")`)
	open(other, t, d.base+"/pools/worker")
	shows(other, t, "not allowed to list pods")
	until(other, t, "levels that are not known are not 0", `[...document.querySelectorAll(".nodes td")].every(e => e.textContent !== "0%") && [...document.querySelectorAll("[data-square]")].some(e => e.textContent === "?")`)
}

// ofNamespace opens the dashboard of a user who has rights in a single namespace.
func ofNamespace(ctx context.Context, t *testing.T) {
	kubectl(t, "", "create", "rolebinding", "shop", "-n", "shop", "--clusterrole=view", "--user=bob")
	cluster.EventuallyAllowed(t, "bob", framework.Right{Verb: "list", Resource: "pods", Namespace: "shop"}, true)
	d := startDashboard(t, cluster.UserKubeconfig(t, "bob"), "-n", "shop", "--allow-actions")
	other := tab(ctx, t)
	open(other, t, d.linkTo("/pods?since=all"))
	shows(other, t, "shop/web-")
	open(other, t, d.base+"/restarts")
	shows(other, t, "shop/api")
	if text := value[string](other, t, "document.body.innerText"); strings.Contains(text, "not allowed to list pods") || strings.Contains(text, "not allowed to list scheduledrestarts") {
		t.Errorf("the page lacks what the user may read:\n%s", text)
	}
	// --allow-actions grants no rights: this user may not change the displayed objects.
	open(other, t, d.base+"/restarts?restart=shop/web")
	shows(other, t, "What became of the ticks")
	if n := value[int](other, t, `document.querySelectorAll("[data-act]").length`); n > 0 {
		t.Errorf("a user who may change nothing has %d buttons", n)
	}
}
