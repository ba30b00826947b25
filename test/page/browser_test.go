// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"tidekeeper.dev/tidekeeper/test/framework"
)

// TestPage visits all pages of the dashboard, as a user would. All subtests share one set of
// objects.
func TestPage(t *testing.T) {
	buildWorld(t)
	d := startDashboard(t, cluster.Kubeconfig)
	ctx := browser(t)
	said := listen(ctx, t)

	t.Run("the link opens the overview", func(t *testing.T) { theLinkOpens(ctx, t, d) })
	t.Run("screenshots", func(t *testing.T) { screenshots(ctx, t, d) })
	t.Run("every page shows its data and nothing runs", func(t *testing.T) { everyPage(ctx, t, d) })
	t.Run("a reload and a second tab", func(t *testing.T) { secondTab(ctx, t, d) })
	t.Run("a page follows the cluster and keeps the focus", func(t *testing.T) { follows(ctx, t, d) })
	t.Run("pause", func(t *testing.T) { pauses(ctx, t, d) })
	t.Run("keyboard", func(t *testing.T) { keyboard(ctx, t, d) })
	t.Run("places", func(t *testing.T) { staysInPlace(ctx, t, d) })
	t.Run("pages that were left", func(t *testing.T) { keepsPages(ctx, t, d) })
	t.Run("pages that do not exist", func(t *testing.T) { refusesPages(ctx, t, d) })
	t.Run("two clicks", func(t *testing.T) { twoClicks(ctx, t, d) })
	t.Run("rows at 400 px", func(t *testing.T) { narrow(ctx, t, d) })
	t.Run("what if", func(t *testing.T) { asksWhatIf(ctx, t, d) })
	t.Run("what blocks a drain", func(t *testing.T) { namesBlockers(ctx, t, d) })
	t.Run("maintenance", func(t *testing.T) { showsMaintenance(ctx, t, d) })
	t.Run("scripts and styles of others are refused", func(t *testing.T) { policyHolds(ctx, t, d) })
	t.Run("names, headers and contrast", func(t *testing.T) { accessible(ctx, t, d) })
	t.Run("400 px, and 200 %", func(t *testing.T) { small(ctx, t, d) })
	t.Run("forced colours", func(t *testing.T) { forcedColours(ctx, t, d) })
	t.Run("without colour", func(t *testing.T) { withoutColour(ctx, t, d) })
	t.Run("without motion", func(t *testing.T) { withoutMotion(ctx, t, d) })
	t.Run("numbers are those of the commands", func(t *testing.T) { sameNumbers(t, d) })
	t.Run("nothing leaves the machine", func(t *testing.T) {
		_, requests := said.soFar()
		for _, url := range requests {
			if !strings.HasPrefix(url, d.base+"/") && !strings.HasPrefix(url, "about:") && !strings.HasPrefix(url, "blob:") && !strings.HasPrefix(url, "data:") {
				t.Errorf("the page has asked for %s", url)
			}
			if path, _, _ := strings.Cut(url, "#"); strings.Contains(path, d.token) || strings.Contains(path, d.code()) {
				t.Errorf("a secret is in the address %s", url)
			}
		}
		if len(requests) < 10 {
			t.Errorf("only %d requests were seen: is this test listening?", len(requests))
		}
	})
	t.Run("no token is on the disk", noTokenOnDisk)
	t.Run("a new link in an old tab", func(t *testing.T) { newLinkInOldTab(ctx, t) })
	t.Run("a link that was used", func(t *testing.T) { usedLink(t, d) })
	t.Run("without the token there is nothing", func(t *testing.T) { withoutToken(t, d) })
	t.Run("secrets stay in the cluster", func(t *testing.T) { secretsStay(t, d) })
	t.Run("the network gets nothing", func(t *testing.T) { networkGetsNothing(t, d) })
	t.Run("a slow or a long request", func(t *testing.T) { slowRequests(t, d) })
	t.Run("another origin gets nothing", func(t *testing.T) { otherOrigin(ctx, t, d) })
	t.Run("a name that leads here gets nothing", func(t *testing.T) { rebound(t, d) })
	t.Run("a user without rights", func(t *testing.T) { withoutRights(ctx, t) })
	t.Run("a user of one namespace", func(t *testing.T) { ofNamespace(ctx, t) })
	t.Run("actions", func(t *testing.T) { actions(ctx, t) })
	t.Run("several clusters", func(t *testing.T) { severalClusters(ctx, t) })
	t.Run("five tabs", func(t *testing.T) { manyTabs(ctx, t, d) })
	t.Run("an outage of the API server", func(t *testing.T) { outage(ctx, t, d) })
}

func theLinkOpens(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.link)
	shows(ctx, t, "worker")
	shows(ctx, t, "gpu")
	if address := value[string](ctx, t, "location.href"); strings.Contains(address, "#") {
		t.Errorf("the address bar has the code: %s", address)
	}
	cookies, err := chromedp.Call(ctx, network.GetCookies, network.GetCookiesParams{})
	if err != nil || len(cookies.Cookies) > 0 {
		t.Errorf("cookies %v, %v: want none", cookies, err)
	}
	shows(ctx, t, "5 restarts")    // the restarts that are due at the same minute of the night
	shows(ctx, t, "without place") // the pods that would fit nowhere after the loss of a node
}

func everyPage(ctx context.Context, t *testing.T, d *dashboard) {
	kubectl(t, hostileEvent, "apply", "-f", "-")
	said := listen(ctx, t)
	for _, page := range pages {
		open(ctx, t, d.base+page.path)
		shows(ctx, t, page.shows)
		if value[bool](ctx, t, "!!window.ran") {
			t.Errorf("%s has run what is text", page.path)
		}
	}
	open(ctx, t, d.base+"/pools/worker")
	shows(ctx, t, `onerror="window.ran=1"`)
	if lines, _ := said.soFar(); len(lines) > 0 {
		t.Errorf("the console says:\n%s", strings.Join(lines, "\n"))
	}
}

// screenshots takes a picture of every page: in light and dark colours, and 400 px wide.
func screenshots(ctx context.Context, t *testing.T, d *dashboard) {
	for _, look := range []struct {
		name, scheme string
		width        int64
	}{{"", "light", wide}, {"-dark", "dark", wide}, {"-narrow", "light", narrowest}} {
		t.Run(look.scheme+look.name, func(t *testing.T) {
			withMedia(ctx, t, "prefers-color-scheme", look.scheme)
			withWidth(ctx, t, look.width)
			for _, page := range pages {
				open(ctx, t, d.base+page.path)
				shows(ctx, t, page.shows)
				picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
				if err != nil || len(picture) < 10_000 {
					t.Fatalf("%s: %d bytes, %v", page.name, len(picture), err)
				}
				if dir := imagesDir(); dir != "" {
					if err := os.WriteFile(filepath.Join(dir, "dashboard-"+page.name+look.name+".png"), picture, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

func secondTab(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/capacity")
	if err := chromedp.Do(ctx, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	shows(ctx, t, "Copies now")
	other := tab(ctx, t)
	open(other, t, d.base+"/pools/gpu")
	shows(other, t, "Pools › gpu")
}

func follows(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/pools/gpu")
	shows(ctx, t, "1 of 1 node")
	value[bool](ctx, t, `(document.querySelector('[data-square]').focus(), window.marked = document.activeElement, true)`)
	kubectl(t, "", "label", "node", "node-5", "node-role.kubernetes.io/gpu=")
	defer kubectl(t, "", "label", "node", "node-5", "node-role.kubernetes.io/gpu-")
	until(ctx, t, "the map has two nodes", `document.querySelectorAll('[data-square]').length === 2`)
	if !value[bool](ctx, t, "document.activeElement === window.marked") {
		t.Error("the focus has moved")
	}
	shows(ctx, t, "of 2 nodes")
}

func pauses(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/pools/worker")
	shows(ctx, t, "Levels")
	value[bool](ctx, t, `(document.getElementById("pause").click(), window.changes = 0, new MutationObserver(l => window.changes += l.length).observe(document.getElementById("main"), {subtree: true, childList: true, characterData: true, attributes: true}), true)`)
	kubectl(t, "", "label", "node", "node-6", "node-role.kubernetes.io/worker=")
	defer kubectl(t, "", "label", "node", "node-6", "node-role.kubernetes.io/worker-")
	other := tab(ctx, t)
	open(other, t, d.base+"/pools/worker")
	until(other, t, "another tab shows the node", `document.querySelectorAll('[data-square]').length === 4`)
	if n := value[int](ctx, t, "window.changes"); n > 0 {
		t.Errorf("a paused page has changed %d times", n)
	}
	shows(ctx, t, "paused at")
	value[bool](ctx, t, `(document.getElementById("pause").click(), true)`)
	until(ctx, t, "the node is there after Resume", `document.querySelectorAll('[data-square]').length === 4`)
}

func keyboard(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/")
	shows(ctx, t, "worker")
	press(ctx, t, "/")
	until(ctx, t, "/ goes to the filter", `document.activeElement.id === "q"`)
	open(ctx, t, d.base+"/pools/worker")
	shows(ctx, t, "Levels")
	if value[bool](ctx, t, `document.getElementById("q").checkVisibility()`) {
		t.Error("a page that has no filter shows it")
	}
	// Wait until the previous test's node has been removed from the map: its removal would take the
	// focus.
	until(ctx, t, "the map has its three nodes", `document.querySelectorAll('[data-square]').length === 3`)
	// Pressing Tab focuses the map once, then the element after the map.
	reached := 0
	for range 60 {
		press(ctx, t, kb.Tab)
		if value[bool](ctx, t, `document.activeElement.dataset.square !== undefined`) {
			reached++
			break
		}
		if !value[bool](ctx, t, `document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== "none"`) {
			t.Errorf("no ring around %s", value[string](ctx, t, "document.activeElement.outerHTML.slice(0, 200)"))
		}
	}
	if reached == 0 {
		t.Fatal("Tab does not reach the map of nodes")
	}
	// The order of the nodes in the map may change with their usage, so record a node's index at
	// the time at which it gets the focus.
	const place = `window.place`
	value[bool](ctx, t, `(document.addEventListener("focusin", e => { window.place = [...document.querySelectorAll('[data-square]')].indexOf(e.target) }), true)`)
	press(ctx, t, kb.End)
	if at := value[int](ctx, t, place); at != 2 {
		t.Errorf("End moves to place %d of the map, want the last", at)
	}
	press(ctx, t, kb.Home)
	if at := value[int](ctx, t, place); at != 0 {
		t.Errorf("Home moves to place %d of the map, want the first", at)
	}
	press(ctx, t, kb.Enter)
	until(ctx, t, "Enter opens the node", `document.getElementById("panel") && location.search.includes("node=")`)
	press(ctx, t, kb.Escape)
	until(ctx, t, "Escape closes it, and the focus is where it was", `!document.getElementById("panel") && document.activeElement.dataset.square !== undefined`)
}

func asksWhatIf(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/capacity?cpu=7&memory=1Gi")
	shows(ctx, t, "7 CPU, 1Gi memory")
	value[bool](ctx, t, `(document.getElementById("f-cpu").select(), document.getElementById("f-cpu").focus(), true)`)
	press(ctx, t, "1000")
	shows(ctx, t, "1000 CPU, 1Gi memory")
	until(ctx, t, "the address and the command are those of the form, and the focus stays",
		`location.search.includes("cpu=1000") && document.getElementById("command").textContent.includes("--cpu 1000") && document.activeElement.id === "f-cpu"`)
	shows(ctx, t, "larger than the node: cpu")
	press(ctx, t, "x")
	shows(ctx, t, "write an amount")

	// When a workload is entered, the fields show its pods' requests and are disabled.
	value[bool](ctx, t, `(document.getElementById("f-like").focus(), true)`)
	press(ctx, t, "shop/deployment/train")
	shows(ctx, t, "A copy of the pods of shop/deployment/train requests 7 CPU, 3Gi memory, with its own tolerations")
	until(ctx, t, "the fields have what it requests, and the command is that of it",
		`document.getElementById("f-cpu").value === "7" && document.getElementById("f-cpu").disabled && document.getElementById("command").textContent.includes("pools fit --like deployment/train -n shop") && document.activeElement.id === "f-like"`)
	press(ctx, t, "er")
	shows(ctx, t, "no Deployment")
	value[bool](ctx, t, `(document.getElementById("f-like").select(), true)`)
	press(ctx, t, kb.Backspace)
	until(ctx, t, "without it the amounts are there again", `document.getElementById("f-cpu").value === "1000x" && !document.getElementById("f-cpu").disabled`)

	// Nodes are lost one after the other.
	value[bool](ctx, t, `(document.getElementById("f-lose").focus(), true)`)
	press(ctx, t, "none-such")
	shows(ctx, t, `there is no node "none-such"`)
	value[bool](ctx, t, `(document.getElementById("f-lose").select(), true)`)
	press(ctx, t, "node-1; node-2, node-3")
	shows(ctx, t, "then 2 nodes")
	until(ctx, t, "the command is that of the form, and the other form keeps its values",
		`document.getElementById("sequence-command").textContent === "kubectl tide pools loss --node node-1 --then node-2,node-3" && document.getElementById("f-cpu").value === "1000x"`)
}

// unnamed is a script that returns the elements without an accessible name, and duplicate ids,
// headings and landmarks.
const unnamed = `(() => {
	const bad = [], all = q => [...document.querySelectorAll(q)];
	if (all("h1").length !== 1) bad.push(all("h1").length + " h1");
	if (all("main").length !== 1) bad.push(all("main").length + " main");
	for (const e of all("svg:not([aria-hidden])")) if (e.getAttribute("role") !== "img" || !e.getAttribute("aria-label")) bad.push(e.outerHTML.slice(0, 80));
	for (const e of all("th")) if (!e.scope || !e.textContent.trim()) bad.push(e.outerHTML.slice(0, 80));
	for (const e of all("table")) if (!e.querySelector("thead th")) bad.push("a table without headers");
	for (const e of all("a, button")) if (!(e.getAttribute("aria-label") || e.textContent).trim()) bad.push(e.outerHTML.slice(0, 80));
	for (const e of all("input")) if (!e.getAttribute("aria-label") && !e.labels.length) bad.push(e.outerHTML.slice(0, 80));
	for (const e of all("[id]")) if (all("[id=" + CSS.escape(e.id) + "]").length > 1) bad.push("twice: " + e.id);
	return bad;
})()`

// pale is a script that returns the text nodes with a contrast below 4.5 : 1.
const pale = `(() => {
	const parse = c => { const m = c.match(/[\d.]+/g).map(Number); return m.length > 3 ? m : [...m, 1]; };
	const lum = c => { const [r, g, b] = c.map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const bad = new Set(), walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; n = walk.nextNode();) {
		const e = n.parentElement;
		if (!n.data.trim() || !e.checkVisibility() || e.closest("noscript, dialog, .skip, .sr, svg, script")) continue;
		let back = e;
		while (back && parse(getComputedStyle(back).backgroundColor)[3] === 0) back = back.parentElement;
		if (!back) continue;
		const a = lum(parse(getComputedStyle(e).color).slice(0, 3)), b = lum(parse(getComputedStyle(back).backgroundColor).slice(0, 3));
		const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
		if (ratio < 4.5) bad.add(ratio.toFixed(2) + " " + e.className + ": " + n.data.trim().slice(0, 30));
	}
	return [...bad];
})()`

func accessible(ctx context.Context, t *testing.T, d *dashboard) {
	for _, scheme := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
			t.Fatal(err)
		}
		for _, page := range pages {
			open(ctx, t, d.base+page.path)
			shows(ctx, t, page.shows)
			if bad := value[[]string](ctx, t, unnamed); len(bad) > 0 {
				t.Errorf("%s: without a name, or twice:\n%s", page.path, strings.Join(bad, "\n"))
			}
			if bad := value[[]string](ctx, t, pale); len(bad) > 0 {
				t.Errorf("%s, %s: contrast below 4.5:\n%s", page.path, scheme, strings.Join(bad, "\n"))
			}
		}
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{}); err != nil {
		t.Fatal(err)
	}
}

// manyTabs opens more tabs than the server keeps up to date. Every tab shows data, and the oldest
// tab reports that it is paused.
func manyTabs(ctx context.Context, t *testing.T, d *dashboard) {
	var tabs []context.Context
	for range 5 {
		other := tab(ctx, t)
		open(other, t, d.base+"/pods?since=all")
		shows(other, t, "Waited for")
		tabs = append(tabs, other)
	}
	until(ctx, t, "a tab is paused", `true`)
	paused := func() int {
		return len(slices.DeleteFunc(slices.Clone(tabs), func(c context.Context) bool {
			return !value[bool](c, t, `document.getElementById("pause").textContent === "Resume" && document.getElementById("banner").textContent.includes("another tab")`)
		}))
	}
	framework.Eventually(t, "one of five tabs is paused", func() error {
		if n := paused(); n != 1 {
			return fmt.Errorf("%d are", n)
		}
		return nil
	})
}

func outage(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/")
	shows(ctx, t, "worker")
	until(ctx, t, "the stream is open", `performance.getEntriesByType("resource").some(e => e.name.includes("/-/page/"))`)
	cluster.Component(t, "kill", "kube-apiserver")
	t.Cleanup(func() { cluster.AwaitAPIServer(t) })
	until(ctx, t, "the page says since when, and keeps the numbers", `/not answered since [\d:]+.*trying again/.test(document.getElementById("banner").textContent) && document.body.innerText.includes("worker")`)
	// The page's own clock continues while the API server is down, but the time in the page's
	// banner must not change.
	const since = `document.getElementById("banner").textContent.match(/not answered since ([\d:]+)/)?.[1]`
	from := value[string](ctx, t, since)
	untilWithin(ctx, t, time.Minute, "20 s later it says the same", `(() => { const [h, m, s] = `+since+`.split(":").map(Number), now = new Date(); return ((now.getUTCHours() * 60 + now.getUTCMinutes()) * 60 + now.getUTCSeconds() - ((h * 60 + m) * 60 + s) + 86400) % 86400 >= 20; })()`)
	if now := value[string](ctx, t, since); now != from || from == "" {
		t.Errorf("the page is as of %s, and then as of %s", from, now)
	}
	if !value[bool](ctx, t, `document.getElementById("main").classList.contains("stale") && document.body.innerText.includes("worker")`) {
		t.Error("the numbers are gone, or not grey")
	}
	cluster.Component(t, "start", "kube-apiserver")
	untilWithin(ctx, t, 2*time.Minute, "all is right again, and nothing is there twice", `!document.getElementById("banner").textContent && document.querySelectorAll("tr[id='pool-worker']").length === 1`)
}
