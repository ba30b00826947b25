// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
	"tidekeeper.dev/tidekeeper/test/seed"
)

// large is the size of the cluster for [TestLargeWorldInABrowser].
type large struct {
	nodes, pods, restarts int
	// patience is the timeout for each wait in a cluster of this size.
	patience time.Duration
}

// extent returns the cluster size: small for make test-all, and large with PAGE_WORLD=large, for
// make bench-page.
func extent() large {
	if os.Getenv("PAGE_WORLD") == "large" {
		return large{1_000, 20_000, 2_000, 20 * time.Minute}
	}
	return large{60, 1_200, 100, 2 * time.Minute}
}

// nodesAtOnce is the number of nodes that a single sandbox command can add within its timeout.
const nodesAtOnce = 500

// buildLargeWorld starts a sandbox with one pool in three zones, running pods, and
// ScheduledRestarts that are all due in the same hour.
func buildLargeWorld(t *testing.T, w large) *framework.Cluster {
	t.Helper()
	c := framework.Start(t, "--audit", "--pod-events=false", fmt.Sprintf("--nodes=%d", min(w.nodes, nodesAtOnce)))
	for have := nodesAtOnce; have < w.nodes; have += nodesAtOnce {
		c.Sandbox(t, "nodes", "add", fmt.Sprintf("--count=%d", min(w.nodes-have, nodesAtOnce)))
	}
	inParallel(t, w.nodes, func(i int) error {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"node-role.kubernetes.io/worker":"","topology.kubernetes.io/zone":"eu-%c"}}}`, 'a'+i%3)
		return c.Patch(t.Context(), framework.Node(seed.NodeName(i)), client.RawPatch("application/merge-patch+json", []byte(patch)))
	})
	for _, component := range seed.Onlookers {
		c.Component(t, "kill", component)
	}
	etcd, now := seed.Open(t, c), time.Now()
	etcd.WritePods(t, w.pods, w.nodes, now)
	deployments := make([]*appsv1.Deployment, w.restarts)
	for i := range deployments {
		deployments[i] = restartedDeployment(i)
	}
	etcd.WriteDeployments(t, deployments, now)
	for _, component := range seed.Onlookers {
		c.Component(t, "start", component)
	}
	m := c.LaunchManager(t)
	framework.EventuallyWithin(t, w.patience, "the manager is ready", m.Ready)
	if err := c.Create(t.Context(), framework.Pool("worker")); err != nil {
		t.Fatal(err)
	}
	inParallel(t, w.restarts, func(i int) error { return c.Create(t.Context(), nightlyRestart(i)) })
	framework.EventuallyWithin(t, w.patience, "the pool has all pods, and all restarts have a tick", func() error { return awaitLarge(t.Context(), c, w) })
	return c
}

// inParallel calls `do` in parallel for each number from 0 to count-1.
func inParallel(t *testing.T, count int, do func(i int) error) {
	t.Helper()
	var all errgroup.Group
	all.SetLimit(32)
	for i := range count {
		all.Go(func() error { return do(i) })
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
}

// restartedDeployment returns the ith Deployment that has a ScheduledRestart. It has no pods, so a
// restart changes only its template.
func restartedDeployment(i int) *appsv1.Deployment {
	return framework.Deployment(fmt.Sprintf("app-%04d", i), 0, *framework.App.DeepCopy())
}

func nightlyRestart(i int) *tidekeeperv1.ScheduledRestart {
	r := framework.ScheduledRestart(restartedDeployment(i).Name)
	r.Spec = tidekeeperv1.ScheduledRestartSpec{
		TargetRef: tidekeeperv1.TargetRef{Kind: "Deployment", Name: r.Name},
		Schedule:  tidekeeperv1.CronExpression(fmt.Sprintf("%d 3 * * *", i%30)),
	}
	return r
}

// awaitLarge returns an error that names the missing objects until the large cluster is complete.
func awaitLarge(ctx context.Context, c *framework.Cluster, w large) error {
	pool := framework.Pool("worker")
	if err := c.Get(ctx, client.ObjectKeyFromObject(pool), pool); err != nil {
		return err
	}
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := c.List(ctx, list); err != nil {
		return err
	}
	scheduled := 0
	for _, r := range list.Items {
		if r.Status.NextScheduleTime != nil {
			scheduled++
		}
	}
	if int(pool.Status.NodeCount) < w.nodes || scheduled < w.restarts {
		return fmt.Errorf("%d of %d nodes, %d of %d restarts", pool.Status.NodeCount, w.nodes, scheduled, w.restarts)
	}
	return nil
}

// Limits for the dashboard of a large cluster that do not depend on the machine.
const (
	mostBytes    = 1 << 20
	mostElements = 15_000
	mostMiB      = 400
)

// TestLargeWorldInABrowser opens the pages of a large cluster, and checks their requests to the API
// server, their sizes, and the plugin's memory. Durations are printed but never fail the test,
// because the machine may be busy. PAGE_WORLD=large creates a thousand nodes.
func TestLargeWorldInABrowser(t *testing.T) {
	w, measured := extent(), &figures{}
	c := buildLargeWorld(t, w)
	watches, requests := c.AuditLeases(t, "kubectl-tide/"), c.AuditLeases(t, "kubectl-tide/")
	d := startDashboard(t, c.Kubeconfig)
	ctx := browser(t)
	if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: onNewPage}); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Call(ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		t.Fatal(err)
	}
	stop := change(t, c, w)
	open(ctx, t, d.link)
	untilWithin(ctx, t, w.patience, "the pool is shown with its loss", `document.getElementById("pool-worker")?.textContent.match(/without place|pods fit/)`)
	measured.add("first data, since the page was opened", value[float64](ctx, t, "firstData"), 3_000)
	measured.add("all data, since the page was opened", value[float64](ctx, t, "performance.now()"), 8_000)

	for range 2 { // The second visit uses cached results.
		for _, to := range []struct{ path, heading string }{{"/restarts", "Restarts"}, {"/pods", "Start-up"}, {"/capacity", "What if"}, {"/", "Overview"}, {"/pools/worker", "Pool"}} {
			tab, plugin := mainThread(ctx, t), framework.CPUTime(t, d.process.Process.Pid)
			painted := value[float64](ctx, t, fmt.Sprintf(visitPage, to.heading, to.path))
			measured.addVisit(to.path, painted, 1000*(mainThread(ctx, t)-tab), 1000*(framework.CPUTime(t, d.process.Process.Pid)-plugin).Seconds())
			measured.rows = append(measured.rows, [3]string{"… until it is as of the visit", fmt.Sprintf("%.0f ms", value[float64](ctx, t, "visited()")), "no limit"})
			if n := value[int](ctx, t, `document.querySelectorAll("*").length`); n > mostElements {
				t.Errorf("%s has %d elements, want at most %d", to.path, n, mostElements)
			}
			if n := len(d.body(t, "/-/page"+to.path)); n > mostBytes {
				t.Errorf("%s has %d bytes, want at most %d", to.path, n, mostBytes)
			}
		}
	}
	if n := value[int](ctx, t, `document.querySelectorAll("[data-square]").length`); n != w.nodes {
		t.Errorf("the map has %d nodes, want %d", n, w.nodes)
	}
	measureUpdate(ctx, t, c, w, measured)
	changes, took := stop()
	measured.rows = append(measured.rows, [3]string{"changes of the cluster meanwhile", fmt.Sprintf("%.1f a second", float64(changes)/took.Seconds()), fmt.Sprintf("%d a second", changesPerSecond)})

	now, most := framework.ResidentMiB(t, d.process.Process.Pid)
	measured.rows = append(measured.rows, [3]string{"memory of the plugin, resident; at most", fmt.Sprintf("%.0f; %.0f MiB", now, most), fmt.Sprintf("%d MiB", mostMiB)})
	if most > mostMiB {
		t.Errorf("the plugin has taken %.0f MiB, want at most %d", most, mostMiB)
	}
	watched := assertReadOnce(t, requests.Requests(t))
	measured.rows = append(measured.rows, [3]string{"kinds that are watched", fmt.Sprint(len(watched)), "read once each: " + strings.Join(watched, ", ")})
	assertNothingIsAsked(ctx, t, watches, requests, measured)
	measured.print(t, w)
}
