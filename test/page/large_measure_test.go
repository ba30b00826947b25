// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/test/framework"
	"tidekeeper.dev/tidekeeper/test/seed"
)

// figures holds the rows of a table: a measurement's description, its value and its maximum.
type figures struct{ rows [][3]string }

func (f *figures) add(what string, milliseconds, most float64) {
	f.rows = append(f.rows, [3]string{what, fmt.Sprintf("%.0f ms", milliseconds), fmt.Sprintf("%.0f ms", most)})
}

func (f *figures) print(t *testing.T, w large) {
	load, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Error(err)
	}
	average, _, _ := strings.Cut(string(load), " ")
	fmt.Printf("\n%d nodes, %d pods, %d restarts; %d cores, load average %s\n", w.nodes, w.pods, w.restarts, runtime.NumCPU(), average)
	for _, row := range f.rows {
		fmt.Printf("%-60s %14s   at most %s\n", row[0], row[1], row[2])
	}
}

// onNewPage is a script that runs in each new page. It records the time at which the pool appears,
// the times at which the plugin sends pages, and every task that blocks the main thread for 50 ms or
// more.
const onNewPage = `
window.longTasks = [];
window.received = []; // the times at which the plugin has sent a page
const parse = JSON.parse, json = Response.prototype.json, note = page => { if (page.about) received.push(performance.now()); return page; };
JSON.parse = text => note(parse(text));
Response.prototype.json = function() { return json.call(this).then(note); };
new PerformanceObserver(list => longTasks.push(...list.getEntries().map(e => e.duration))).observe({type: "longtask", buffered: true});
new MutationObserver((_, o) => { if (document.getElementById("pool-worker")) { window.firstData = performance.now(); o.disconnect(); } }).observe(document, {childList: true, subtree: true});`

// addVisit adds a visit of a page: the milliseconds until the page was painted, with the CPU time that
// the browser tab's main thread and the plugin used meanwhile.
func (f *figures) addVisit(path string, painted, tab, plugin float64) {
	f.add("navigation to "+path, painted, 150)
	f.rows = append(f.rows, [3]string{"… CPU time of the tab's main thread, and of the plugin", fmt.Sprintf("%.0f and %.0f ms", tab, plugin), "no limit"})
}

// visitPage is a script that points at a link of the current page, and after as long as a quick
// person needs to press the button, clicks it. It returns the milliseconds from the click until the
// linked page is painted. It sets the variable visited to a function that returns the milliseconds
// from the click until the page shows what the plugin has sent since.
const visitPage = `(async () => {
	const heading = %q, link = [...document.querySelectorAll("a")].find(a => a.pathname === %q);
	link.dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
	await new Promise(done => setTimeout(done, 150));
	const from = performance.now();
	await new Promise(done => {
		const there = () => document.querySelector("main h1").textContent.startsWith(heading);
		new MutationObserver((_, o) => { if (there()) { o.disconnect(); requestAnimationFrame(() => setTimeout(done)); } }).observe(document.querySelector("main"), {childList: true, subtree: true, characterData: true});
		link.click();
	});
	window.visited = async () => {
		while (!received.some(at => at > from)) await new Promise(requestAnimationFrame);
		return performance.now() - from;
	};
	return performance.now() - from;
})()`

// changesPerSecond is the rate at which `change` edits objects of the cluster while the page is
// measured.
const changesPerSecond = 10

// change alternately edits a node and a ScheduledRestart until stop is called. stop returns the
// number of edits and their total duration.
func change(t *testing.T, c *framework.Cluster, w large) (stop func() (changes int, took time.Duration)) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	began, made, ended := time.Now(), 0, make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(time.Second / changesPerSecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			var object client.Object = framework.Node(seed.NodeName(made / 2 % w.nodes))
			if made%2 == 1 {
				object = nightlyRestart(made / 2 % w.restarts)
			}
			patch := fmt.Appendf(nil, `{"metadata":{"labels":{"example.com/change":"%d"}}}`, made)
			if err := c.Patch(ctx, object, client.RawPatch("application/merge-patch+json", patch)); err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			made++
		}
	}()
	end := sync.OnceFunc(func() { cancel(); <-ended })
	t.Cleanup(end)
	return func() (int, time.Duration) { end(); return made, time.Since(began) }
}

// cordonIsShown is a script that creates a promise, which is fulfilled once the map shows a
// cordoned node.
const cordonIsShown = `(longTasks.length = 0, window.shown = new Promise(done =>
	new MutationObserver((_, o) => { if (document.querySelector("[data-square].off")) { o.disconnect(); requestAnimationFrame(() => setTimeout(done)); } })
		.observe(document.querySelector("main"), {childList: true, subtree: true, characterData: true, attributes: true})), true)`

// measureUpdate measures the time from cordoning a node until the open page of its pool shows that.
func measureUpdate(ctx context.Context, t *testing.T, c *framework.Cluster, w large, f *figures) {
	t.Helper()
	value[bool](ctx, t, cordonIsShown)
	busy, began := mainThread(ctx, t), time.Now()
	if err := c.Patch(t.Context(), framework.Node(seed.NodeName(w.nodes-1)), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"unschedulable":true}}`))); err != nil {
		t.Fatal(err)
	}
	value[bool](ctx, t, "shown.then(() => true)")
	f.add("a cordoned node, until it is shown", float64(time.Since(began).Milliseconds()), 2_000)
	f.add("… main thread, CPU time of all tasks meanwhile", 1000*(mainThread(ctx, t)-busy), 100)
	f.add("… its longest task, 0 if all are below 50 ms", value[float64](ctx, t, "Math.max(0, ...longTasks)"), 100)
}

// mainThread returns the CPU time that the tasks of a tab's main thread have used, in seconds.
func mainThread(ctx context.Context, t *testing.T) float64 {
	t.Helper()
	metrics, err := chromedp.Call(ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(metrics.Metrics, func(m *performance.Metric) bool { return m.Name == "TaskDuration" })
	if i < 0 {
		t.Fatal("the browser does not say how long its main thread has worked")
	}
	return metrics.Metrics[i].Value
}

// assertReadOnce asserts that all objects of each kind were read once, and returns the watched
// kinds. A watch that continues an earlier watch does not read the objects again.
func assertReadOnce(t *testing.T, requests []framework.Request) []string {
	t.Helper()
	read, watched := map[string]int{}, map[string]bool{}
	for _, r := range requests {
		switch {
		case r.Code == http.StatusNotFound: // The cluster does not serve this kind.
		case r.Verb == "list" || r.Verb == "watch" && strings.Contains(r.URI, "sendInitialEvents=true"):
			read[r.Resource]++
		}
		if r.Verb == "watch" && r.Code == http.StatusOK {
			watched[r.Resource] = true
		}
	}
	for resource := range watched {
		if read[resource] != 1 {
			t.Errorf("all %s were read %d times, want once", resource, read[resource])
		}
	}
	return slices.Sorted(maps.Keys(watched))
}

// assertNothingIsAsked closes the page, and asserts that all of its watches then end and that no
// other requests are sent.
func assertNothingIsAsked(ctx context.Context, t *testing.T, watches, requests *framework.Audit, f *figures) {
	t.Helper()
	left := time.Now()
	open(ctx, t, "about:blank")
	watching := map[string]int{}
	framework.EventuallyWithin(t, 5*time.Minute, "no kind is watched after the last tab is gone", func() error {
		for resource, n := range watches.OpenWatches(t) {
			watching[resource] += n
		}
		for resource, n := range watching {
			if n > 0 {
				return fmt.Errorf("%s are", resource)
			}
		}
		return nil
	})
	f.add("watches end, after the last tab is gone", float64(time.Since(left).Milliseconds()), 60_000)
	requests.Requests(t)
	time.Sleep(20 * time.Second) // sleep: an open page would request metrics every 15 seconds
	if after := requests.Requests(t); len(after) > 0 {
		t.Errorf("%d requests after the last tab is gone: %s", len(after), after[0])
	}
}
