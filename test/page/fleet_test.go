// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"testing"

	"github.com/chromedp/chromedp"
)

// severalClusters checks the dashboard of several clusters. Its two reachable clusters are the same
// cluster under two names.
func severalClusters(ctx context.Context, t *testing.T) {
	d := startDashboard(t, cluster.FleetKubeconfig(t, "shop", "shop"), "--contexts", "here,again,closed,silent", "--allow-actions")
	other := tab(ctx, t)
	open(other, t, d.link)
	until(other, t, "there is a row for each pool and cluster", `["#pool-here-worker", "#pool-again-worker", "#pool-here-gpu", "#pool-again-gpu"].every(id => document.querySelector(id))`)
	until(other, t, "the others have a row that says why", `document.querySelector("#cluster-closed").innerText.includes("connection refused") && document.querySelector("#cluster-silent").innerText.includes("has not sent")`)
	shows(other, t, "10 restarts") // the restarts of both clusters at the same time
	if bad := value[[]string](other, t, unnamed); len(bad) > 0 {
		t.Errorf("without a name, or twice: %q", bad)
	}
	kubectl(t, "", "label", "node", "node-5", "node-role.kubernetes.io/gpu=")
	until(other, t, "a change is followed in both", `["here", "again"].every(c => document.querySelector("#pool-" + c + "-gpu").innerText.includes("/2"))`)
	kubectl(t, "", "label", "node", "node-5", "node-role.kubernetes.io/gpu-")

	open(other, t, d.base+"/restarts")
	shows(other, t, "here: shop/api")
	shows(other, t, "again: shop/api")
	shows(other, t, "closed is not counted")
	if n := value[int](other, t, `document.querySelectorAll("[data-act]").length`); n > 0 {
		t.Errorf("a page about all clusters has %d buttons", n)
	}

	// Links contain the name of their cluster, and so do the links on the linked pages.
	open(other, t, d.base+"/")
	until(other, t, "the pools are there", `document.querySelector("#pool-again-worker a")`)
	value[bool](other, t, `(document.querySelector("#pool-again-worker th a").click(), true)`)
	until(other, t, "the pool of that cluster is there", `document.querySelector("h1").innerText.includes("worker") && location.pathname === "/pools/worker" && new URLSearchParams(location.search).get("context") === "again"`)
	value[bool](other, t, `([...document.querySelectorAll("nav a")].find(a => a.textContent === "What if").click(), true)`)
	until(other, t, "the other pages are about it, too", `location.pathname === "/capacity" && location.search.includes("context=again") && document.title.includes("again") && document.getElementById("command").textContent.includes("--context again")`)
	if err := chromedp.Do(other, chromedp.Reload()); err != nil {
		t.Fatal(err)
	}
	until(other, t, "a reload stays there", `document.querySelector('#contexts [aria-current]').textContent === "again"`)

	// An action's dialog and command name the cluster.
	open(other, t, d.base+"/restarts?context=again&restart=shop/web")
	until(other, t, "there is a button", `document.querySelector('[data-act=suspend]')`)
	value[bool](other, t, `(document.querySelector('[data-act=suspend]').click(), true)`)
	until(other, t, "the dialog names the context", `document.getElementById("dialog").open && document.getElementById("question").textContent.includes("context again")`)
	value[bool](other, t, `(document.querySelector("#dialog .do").click(), true)`)
	until(other, t, "it is suspended", `document.querySelector('[data-act=resume]')`)
	value[bool](other, t, `(document.querySelector('[data-act=resume]').click(), document.querySelector("#dialog .do").click(), true)`)
	until(other, t, "it is resumed", `document.querySelector('[data-act=suspend]')`)
}
