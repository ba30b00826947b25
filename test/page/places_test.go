// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// strayRestart is the manifest template of a ScheduledRestart whose workload does not exist, so the page sorts it to the top
// of its table.
const strayRestart = `
apiVersion: tidekeeper.dev/v1
kind: ScheduledRestart
metadata: {name: stray, namespace: shop}
spec: {targetRef: {kind: Deployment, name: %s}, schedule: "0 4 * * *"}
`

// longName is as long as a name can be.
var longName = "missing-" + strings.Repeat("long-", 48) + "name"

// staysInPlace checks that neither the focus nor the selection moves when a row above them appears
// and disappears. When a panel is closed, by Esc or by Back, the focus returns to the row that
// opened it.
func staysInPlace(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/restarts")
	const stray, row = `document.getElementById("restart-shop/stray")`, `document.getElementById("restart-shop/web")`
	until(ctx, t, "the page shows the restart", row)
	kubectl(t, fmt.Sprintf(strayRestart, longName), "apply", "-f", "-")
	until(ctx, t, "another restart is above it", stray+`?.compareDocumentPosition(`+row+`) & Node.DOCUMENT_POSITION_FOLLOWING`)
	if !value[bool](ctx, t, `[...document.querySelectorAll("td.lane")].every(e => e.getBoundingClientRect().right <= innerWidth && e.getBoundingClientRect().width > 150)`) {
		t.Error("a long name pushes the lanes out of view")
	}
	value[bool](ctx, t, `(window.kept = `+row+`.querySelector("a"), kept.focus({preventScroll: true}), getSelection().selectAllChildren(`+row+`.querySelector("code")), true)`)
	kubectl(t, "", "delete", "scheduledrestart", "stray", "-n", "shop")
	until(ctx, t, "the row above is gone", "!"+stray)
	if !value[bool](ctx, t, `document.activeElement === window.kept && window.kept.isConnected`) {
		t.Error("the focus has moved to " + value[string](ctx, t, "document.activeElement.outerHTML.slice(0, 200)"))
	}
	if selected := value[string](ctx, t, "getSelection().toString().trim()"); selected != "0 3 * * *" {
		t.Errorf("the selected text is %q", selected)
	}
	const closed = `!document.getElementById("panel") && document.activeElement === ` + row + `.querySelector("a")`
	press(ctx, t, kb.Enter)
	until(ctx, t, "Enter opens the panel", `document.activeElement.id === "panel"`)
	press(ctx, t, kb.Escape)
	until(ctx, t, "Escape closes it, and the row has the focus", closed)
	press(ctx, t, kb.Enter)
	until(ctx, t, "Enter opens the panel again", `document.activeElement.id === "panel"`)
	value[bool](ctx, t, `(history.back(), true)`)
	until(ctx, t, "Back closes it, and the row has the focus", closed)
}

// twoClicks checks that three questions are answered by at most two clicks from the overview: which
// restarts will be missed, and why; what is lost with a node; and why a pod was slow.
func twoClicks(ctx context.Context, t *testing.T, d *dashboard) {
	click := func(what, element string) {
		t.Helper()
		until(ctx, t, "there is "+what, element)
		value[bool](ctx, t, "("+element+".click(), true)")
	}
	inView := func(what, element, text string) {
		t.Helper()
		until(ctx, t, what, `(e => { const box = e?.getBoundingClientRect(); return box && box.top < innerHeight && box.bottom > 0 && `+text+`.test(e.innerText); })(`+element+`)`)
	}
	open(ctx, t, d.base+"/")
	click("the headline about missed ticks", `[...document.querySelectorAll("#headline a")].find(a => a.textContent.includes("will be missed"))`)
	inView("the restart that misses ticks is named, with the reason", `document.getElementById("unserved")`, `/shop\/broken[^]*Missed[^]*is not healthy/`)

	open(ctx, t, d.base+"/")
	click("the pool", `document.querySelector("#pool-worker th a")`)
	click("the node", `[...document.querySelectorAll("[data-square]")].find(a => a.href.includes("node=node-2"))`)
	inView("the panel says what is lost with the node", `document.getElementById("panel")`, `/Node node-2[^]*If it is lost: \d+ pods? need/`)

	open(ctx, t, d.base+"/pods?since=all")
	click("the last row", `[...document.querySelectorAll(".starts tbody th a")].at(-1)`)
	inView("the panel of the last row is in view", `document.getElementById("panel")`, `/Waited for/i`)

	open(ctx, t, d.base+"/")
	click("a slow pod", `document.querySelector("[aria-labelledby=h-slow] tbody a")`)
	inView("the panel says what the pod waited for", `document.getElementById("panel")`, `/Ready \S+ after it was created[^]*Waited for/i`)
}

// keepsPages checks that a page that was left, or whose link was pointed at, is shown at once even
// if the plugin does not answer, and follows the cluster again when it does. After 30 s it is not
// shown any more.
func keepsPages(ctx context.Context, t *testing.T, d *dashboard) {
	signal := func(s os.Signal) {
		t.Helper()
		if err := d.process.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() { signal(syscall.SIGCONT) })
	const click = `[...document.querySelectorAll("nav a")].find(a => a.pathname === "%s").click()`
	const heading = `document.querySelector("main h1")?.textContent`
	visit := func(path, shown string) {
		t.Helper()
		value[bool](ctx, t, fmt.Sprintf("("+click+", true)", path))
		until(ctx, t, path+" is shown", heading+fmt.Sprintf(" === %q", shown))
	}
	open(ctx, t, d.base+"/restarts")
	until(ctx, t, "the page shows the restart", `document.getElementById("restart-shop/web")`)
	value[bool](ctx, t, `(window.clock = Date.now(), Date.now = () => window.clock, true)`)
	visit("/pods", "Start-up")
	signal(syscall.SIGSTOP)
	visit("/restarts", "Restarts")
	if !value[bool](ctx, t, `!!document.getElementById("restart-shop/web")`) {
		t.Error("the page that was left is shown without its restart")
	}
	signal(syscall.SIGCONT)
	kubectl(t, fmt.Sprintf(strayRestart, "kept"), "apply", "-f", "-")
	until(ctx, t, "it follows the cluster", `document.getElementById("restart-shop/stray")`)
	kubectl(t, "", "delete", "scheduledrestart", "stray", "-n", "shop")

	value[bool](ctx, t, `(performance.clearResourceTimings(), [...document.querySelectorAll("nav a")].find(a => a.pathname === "/capacity").dispatchEvent(new PointerEvent("pointerover", {bubbles: true})), true)`)
	until(ctx, t, "the page of a link that is pointed at is fetched", `performance.getEntriesByType("resource").some(e => e.name.endsWith("/-/page/capacity") && e.responseEnd)`)
	value[bool](ctx, t, `new Promise(done => setTimeout(done, 0, true))`)
	signal(syscall.SIGSTOP)
	visit("/capacity", "What if")
	if got := value[string](ctx, t, fmt.Sprintf(`(window.clock += 30001, `+click+`, `+heading+`)`, "/restarts")); got != "What if" {
		t.Errorf("after 30 s the page %q is shown before the plugin has answered", got)
	}
	signal(syscall.SIGCONT)
	until(ctx, t, "it is shown when the plugin answers", heading+` === "Restarts"`)
}

// refusesPages checks that a page about a pool that does not exist, or that is deleted, says so, and is
// not followed by the line that nothing answers.
func refusesPages(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/pools/brief")
	until(ctx, t, "the page says why it is not shown", `document.getElementById("refused")?.textContent === 'NodePool "brief": there is no such object'`)
	kubectl(t, "apiVersion: tidekeeper.dev/v1\nkind: NodePool\nmetadata: {name: brief}\nspec: {}\n", "apply", "-f", "-")
	until(ctx, t, "it is there when the pool is", `document.querySelector("h1").textContent.includes("brief") && !document.getElementById("refused")`)
	value[bool](ctx, t, `(window.lines = [], new MutationObserver(() => lines.push(document.getElementById("banner").textContent)).observe(document.getElementById("banner"), {childList: true, characterData: true, subtree: true}), true)`)
	kubectl(t, "", "delete", "nodepool", "brief")
	until(ctx, t, "it says so when the pool is gone", `document.getElementById("refused")?.textContent.includes("there is no such object")`)
	if lines := value[[]string](ctx, t, `lines.filter(Boolean)`); len(lines) > 0 {
		t.Errorf("the page says %q", lines)
	}
}

// narrowRows is a script that returns the table rows that, at a width of 400 px, are wider than the
// window or taller than their content.
const narrowRows = `[...document.querySelectorAll("main .cards tbody tr")].filter(row => {
	const box = row.getBoundingClientRect(), cells = [...row.children].filter(c => c.textContent.trim() || c.querySelector("svg")).map(c => c.getBoundingClientRect());
	return box.right > innerWidth + 1 || cells.some(c => c.right > innerWidth + 1) || box.height > cells.reduce((sum, c) => sum + c.height, 0) + 60;
}).map(row => row.innerText.slice(0, 80))`

// narrow checks that at a width of 400 px each row is shown as a card that fits the window, and
// that hidden cells do not make the card taller.
func narrow(ctx context.Context, t *testing.T, d *dashboard) {
	withWidth(ctx, t, narrowest)
	for _, page := range pages {
		open(ctx, t, d.base+page.path)
		shows(ctx, t, page.shows)
		if n := value[int](ctx, t, `document.querySelectorAll("main .cards tbody tr").length`); n == 0 {
			t.Errorf("%s has no rows: is this test looking?", page.path)
		}
		if bad := value[[]string](ctx, t, narrowRows); len(bad) > 0 {
			t.Errorf("%s at 400 px has rows that are not in view, or are tall and empty: %q", page.path, bad)
		}
	}
}
