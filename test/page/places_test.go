// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// strayRestart is a ScheduledRestart whose workload does not exist, so the page sorts it to the top
// of its table.
const strayRestart = `
apiVersion: tidekeeper.dev/v1
kind: ScheduledRestart
metadata: {name: stray, namespace: shop}
spec: {targetRef: {kind: Deployment, name: missing}, schedule: "0 4 * * *"}
`

// staysInPlace checks that neither the focus nor the selection moves when a row above them appears
// and disappears. When a panel is closed, by Esc or by Back, the focus returns to the row that
// opened it.
func staysInPlace(ctx context.Context, t *testing.T, d *dashboard) {
	open(ctx, t, d.base+"/restarts")
	const stray, row = `document.getElementById("restart-shop/stray")`, `document.getElementById("restart-shop/web")`
	until(ctx, t, "the page shows the restart", row)
	kubectl(t, strayRestart, "apply", "-f", "-")
	until(ctx, t, "another restart is above it", stray+`?.compareDocumentPosition(`+row+`) & Node.DOCUMENT_POSITION_FOLLOWING`)
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

// narrowRows is a script that returns the table rows that, at a width of 400 px, are wider than the
// window or taller than their content.
const narrowRows = `[...document.querySelectorAll("main .cards tbody tr")].filter(row => {
	const box = row.getBoundingClientRect(), cells = [...row.children].filter(c => c.textContent.trim() || c.querySelector("svg")).map(c => c.getBoundingClientRect());
	return box.right > innerWidth + 1 || cells.some(c => c.right > innerWidth + 1) || box.height > cells.reduce((sum, c) => sum + c.height, 0) + 60;
}).map(row => row.innerText.slice(0, 80))`

// narrow checks that at a width of 400 px each row is shown as a card that fits the window, and
// that hidden cells do not make the card taller.
func narrow(ctx context.Context, t *testing.T, d *dashboard) {
	defer func() {
		if err := chromedp.Do(ctx, chromedp.EmulateViewport(1360, 1000)); err != nil {
			t.Error(err)
		}
	}()
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(400, 800)); err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		open(ctx, t, d.base+page.path)
		shows(ctx, t, page.shows)
		if n := value[int](ctx, t, `document.querySelectorAll("main .cards tbody tr").length`); n == 0 {
			t.Errorf("%s has no rows: is this test looking?", page.path)
		}
		if dir := imagesDir(); dir != "" && page.name == "restarts" {
			picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "dashboard-narrow.png"), picture, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if bad := value[[]string](ctx, t, narrowRows); len(bad) > 0 {
			t.Errorf("%s at 400 px has rows that are not in view, or are tall and empty: %q", page.path, bad)
		}
	}
}
