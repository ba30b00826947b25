// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"strings"
	"testing"

	"github.com/chromedp/chromedp/kb"
)

// actions checks that the page offers actions only with --allow-actions, and performs them only
// after a dialog is confirmed.
func actions(ctx context.Context, t *testing.T) {
	readOnly := startDashboard(t, cluster.Kubeconfig)
	other := tab(ctx, t)
	open(other, t, readOnly.linkTo("/restarts?restart=shop/web"))
	shows(other, t, "What became of the ticks")
	if n := value[int](other, t, `document.querySelectorAll("[data-act]").length`); n > 0 {
		t.Errorf("a read-only page has %d buttons", n)
	}
	d := startDashboard(t, cluster.Kubeconfig, "--allow-actions")
	open(other, t, d.linkTo("/restarts?restart=shop/web"))
	until(other, t, "there is a button", `document.querySelector('[data-act=suspend]')`)
	value[bool](other, t, `(document.querySelector('[data-act=suspend]').click(), true)`)
	until(other, t, "a dialog names the object and the context", `document.getElementById("dialog").open && /shop.web[^]*context/.test(document.getElementById("dialog").textContent)`)
	press(other, t, kb.Escape)
	until(other, t, "Escape closes the dialog", `!document.getElementById("dialog").open`)
	if s := kubectl(t, "", "get", "srestart", "web", "-n", "shop", "-o", "jsonpath={.spec.suspend}"); s == "true" {
		t.Fatal("it was suspended without a yes")
	}
	value[bool](other, t, `(document.querySelector('[data-act=suspend]').click(), document.querySelector("#dialog .do").click(), true)`)
	shows(other, t, "suspended")
	until(other, t, "it can be resumed", `document.querySelector('[data-act=resume]')`)
	if s := kubectl(t, "", "get", "srestart", "web", "-n", "shop", "-o", "jsonpath={.spec.suspend}"); s != "true" {
		t.Error("it was not suspended")
	}
	value[bool](other, t, `(document.querySelector('[data-act=resume]').click(), document.querySelector("#dialog .do").click(), true)`)
	until(other, t, "it can be suspended again", `document.querySelector('[data-act=suspend]')`)
	freezesAndThaws(other, t)
}

// freezesAndThaws creates a freeze on the page of a ScheduledRestart, which closes the restart's
// gate, and then lifts the freeze.
func freezesAndThaws(ctx context.Context, t *testing.T) {
	list := func() string { return kubectl(t, "", "get", "freezes", "-o", "jsonpath={.items[*].spec}") }
	dialog := func(button, names string) {
		until(ctx, t, "there is a button", `document.querySelector('`+button+`')`)
		value[bool](ctx, t, `(document.querySelector('`+button+`').click(), true)`)
		until(ctx, t, "a dialog names the object and the context", `document.getElementById("dialog").open && /`+names+`[^]*context/.test(document.getElementById("dialog").textContent)`)
	}
	dialog("[data-act=freeze]", "Freeze")
	until(ctx, t, "the dialog has the fields, and the first has the focus", `document.activeElement.name === "until"`)
	press(ctx, t, kb.Enter) // The browser does not submit the form while required fields are empty.
	press(ctx, t, "4x"+kb.Tab+"migration <b>"+kb.Tab+"shop"+kb.Enter)
	until(ctx, t, "the dialog says what is wrong, and keeps what was typed", `document.getElementById("dialog").open && document.getElementById("mistake").textContent.includes("“4x” is not a time: write 4h") && document.querySelector("[name=reason]").value === "migration <b>"`)
	if got := list(); got != "" {
		t.Fatalf("there are freezes: %s", got)
	}
	value[bool](ctx, t, `(document.querySelector("[name=until]").value = "4h", document.querySelector("#dialog .do").click(), true)`)
	until(ctx, t, "the dialog has ended", `!document.getElementById("dialog").open`)
	until(ctx, t, "what was done is said in view", `(toast => toast.textContent.includes("created: no restart is started in shop until") && (box => box.top >= 0 && box.bottom <= innerHeight && box.height > 0)(toast.getBoundingClientRect()))(document.getElementById("toast"))`)
	until(ctx, t, "it is listed, and its gate is closed", `/in force[^]*shop[^]*migration <b>/.test(document.getElementById("h-freezes").closest("section").innerText) && /Freeze\s+✖ closed/.test(document.getElementById("panel").innerText) && /▲ [^]*Freeze/.test(document.getElementById("restart-shop/web").innerText)`)
	if got := list(); !strings.Contains(got, `"values":["shop"]`) || !strings.Contains(got, "migration") {
		t.Errorf("the freeze is %s", got)
	}
	dialog("[data-act=thaw]", "migration <b>")
	press(ctx, t, kb.Escape)
	until(ctx, t, "Escape closes the dialog", `!document.getElementById("dialog").open`)
	if list() == "" {
		t.Fatal("it was lifted without a yes")
	}
	dialog("[data-act=thaw]", "migration <b>")
	value[bool](ctx, t, `(document.querySelector("#dialog .do").click(), true)`)
	shows(ctx, t, "lifted")
	until(ctx, t, "it is no longer listed", `!document.querySelector('[data-act=thaw]')`)
	if got := list(); got != "" {
		t.Errorf("there are freezes: %s", got)
	}
}
