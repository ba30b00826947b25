// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// poolName is the name of the pool that contains all nodes.
const poolName = "all"

func poolOf(labels map[string]tidekeeperv1.LabelValue) *tidekeeperv1.NodePool {
	return &tidekeeperv1.NodePool{
		ObjectMeta: metav1.ObjectMeta{Name: poolName},
		Spec: tidekeeperv1.NodePoolSpec{
			Selector: &tidekeeperv1.NodeSelector{MatchLabels: map[string]tidekeeperv1.LabelValue{corev1.LabelOSStable: "linux"}},
			Labels:   labels,
		},
	}
}

// labels measures the time to set a label on all nodes.
func (r *run) labels(t *testing.T, files map[string][]byte) {
	t.Helper()
	if err := r.Create(t.Context(), poolOf(map[string]tidekeeperv1.LabelValue{"scale.example.com/first": "1"})); err != nil {
		t.Fatal(err)
	}
	var ours, first, bare []time.Duration
	var last writes
	for round := range r.rounds {
		took, until, counted := r.label(t, fmt.Sprintf("scale.example.com/round-%d", round), nil)
		ours, first, last = append(ours, took), append(first, until), counted
		r.awaitIdle(t)
		took, _ = r.bareLabels(t, fmt.Sprintf("scale.example.com/bare-%d", round))
		bare = append(bare, took)
	}
	reported := r.labelsAmongReports(t, files)

	limited, unlimited := r.labelsOneByOne(t)
	r.report.add(figure{
		Key: "label", What: fmt.Sprintf("a label to %d nodes, from the apply to the last node right", r.nodes), Value: median(ours), Unit: "s",
		Limit: median(bare), LimitIs: "a bare client, 32 at a time", Within: 1.15, Pairs: pairsOf(ours, bare),
		Beside: limited * float64(r.nodes), BesideIs: fmt.Sprintf("one by one under client-go's limits, by %d nodes", r.oneByOne),
	})
	r.report.add(figure{
		Key: "label-first", What: "… from the answer to the apply to the first patch of a node", Value: 1000 * median(first), Unit: "ms", Most: new(60.0),
	})
	r.report.add(figure{Key: "label-one-by-one", What: "… one by one, with no limit in the client", Value: unlimited * float64(r.nodes), Unit: "s"})
	r.report.add(figure{Key: "label-node-writes", What: "… writes to a node, most", Value: float64(last.node), Most: new(1.0)})
	r.report.add(figure{Key: "label-node-refused", What: "… refused besides, as the control plane wrote to the node just before", Value: float64(last.refused)})
	r.report.Figures = append(r.report.Figures, reported...)
	r.report.add(figure{
		Key: "label-status-writes", What: "… writes of the pool's status", Value: float64(last.status),
		Limit: 1 + math.Ceil(last.span.Seconds()), LimitIs: "one, and one a second", Within: 1,
	})
}

// labelsOneByOne returns the baseline's seconds per node, with client-go's rate limits and without.
// It returns 0 in a partial run, because no assertion depends on the baseline.
func (r *run) labelsOneByOne(t *testing.T) (limited, unlimited float64) {
	t.Helper()
	if !whole() {
		return 0, 0
	}
	baseline := framework.Build(t, "./test/scale/baseline/nodes")
	perNode := func(nodes int, args ...string) float64 {
		audit, begin := r.Audit(t, "baseline/"), time.Now()
		running := startBaseline(t, r.Cluster, baseline, "updating:", append([]string{fmt.Sprintf("--nodes=%d", nodes)}, args...)...)
		defer running.kill()
		took, _ := r.followNodes(t, audit, begin, nodes)
		return took.Seconds() / float64(nodes)
	}
	return perNode(r.oneByOne, "--label=scale.example.com/limited"), perNode(r.nodes, "--label=scale.example.com/unlimited", "--qps=-1")
}

// label starts a manager, sets a label on all nodes through the pool, and stops the manager. It
// returns the total time, the time from the API server's response to the pool change until the
// first node is patched, and the writes. If `files` is not nil, it adds a CPU profile of the
// manager.
func (r *run) label(t *testing.T, key string, files map[string][]byte) (took, first time.Duration, counted writes) {
	t.Helper()
	r.start(t, "--pprof-bind-address="+r.pprof)
	r.awaitIdle(t)
	r.awaitPool(t, func(p *tidekeeperv1.NodePool) bool { return int(p.Status.NodeCount) == r.nodes && isHealthy(p) })
	var profile <-chan []byte
	if files != nil {
		profile = r.profileCPU(time.Second + 3*time.Duration(r.nodes)*time.Millisecond)
	}
	audit, begin := r.Audit(t, "tidekeeper/"), time.Now()
	r.patch(t, framework.Pool(poolName), map[string]any{"spec": map[string]any{"labels": map[string]string{key: "1"}}})
	answered := time.Now()
	took, requests := r.followNodes(t, audit, begin, r.nodes)
	first = firstNodeWrite(requests).Sub(answered)
	r.awaitPool(t, isHealthy)
	counted = countWrites(append(requests, audit.Requests(t)...))
	if counted.node != 1 {
		t.Errorf("a node was written to %d times for one label, want once", counted.node)
	}
	r.checkLabel(t, key)
	if files != nil {
		files[r.report.Scale+"-label-cpu.pprof"] = <-profile
	}
	r.manager.Stop(t)
	return took, first, counted
}

// reporters is the number of simulated kubelets that report concurrently. Together they send at
// least fewestReports reports per second.
const (
	reporters     = 4
	fewestReports = 20
)

// labelsAmongReports measures the time to set a label while kubelets report their nodes' status,
// each once a minute. A patch with the resourceVersion of an earlier read would conflict with each
// report.
func (r *run) labelsAmongReports(t *testing.T, files map[string][]byte) []figure {
	t.Helper()
	perSecond := max(fewestReports, r.nodes/60)
	reporting := func() (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i := range reporters {
			all.Go(func() { r.reports(ctx, t, i*r.nodes/reporters, reporters*time.Second/time.Duration(perSecond)) })
		}
		return func() { cancel(); all.Wait() }
	}
	stop := reporting()
	took, _, counted := r.label(t, "scale.example.com/reported", files)
	stop()
	r.awaitIdle(t)
	stop = reporting()
	bare, refused := r.bareLabels(t, "scale.example.com/bare-reported")
	stop()
	return []figure{
		{
			Key: "label-reported", What: fmt.Sprintf("… while kubelets report %d times a second", perSecond), Value: took.Seconds(), Unit: "s",
			Limit: bare.Seconds(), LimitIs: "the bare client, once",
		},
		{
			Key: "label-reported-refused", What: "… … patches that were refused as the node had changed", Value: float64(counted.refused), Most: new(0.0),
			Beside: float64(refused), BesideIs: "the bare client, under the resourceVersion",
		},
	}
}

// writes counts the manager's writes for one change of a pool.
type writes struct {
	// node is the largest number of writes to a single node. refused is the number of writes that
	// conflicted with another client. status is the number of writes to the pool's status; the
	// duration span lies between the first and the last of them.
	node, refused, status int
	span                  time.Duration
}

func countWrites(requests []framework.Request) writes {
	var w writes
	perNode := map[string]int{}
	var first time.Time
	for _, r := range requests {
		switch {
		case !r.Writes():
		case r.Resource == "nodes" && (r.Code == http.StatusConflict || r.Code == http.StatusUnprocessableEntity):
			w.refused++
		case r.Resource == "nodes":
			perNode[r.Name]++
			w.node = max(w.node, perNode[r.Name])
		case r.Resource == "nodepools" && r.Subresource == "status":
			w.status++
			if first.IsZero() {
				first = r.Received
			}
			w.span = r.Received.Sub(first)
		}
	}
	return w
}

// firstNodeWrite returns the time at which the API server received the first write to a node.
func firstNodeWrite(requests []framework.Request) (first time.Time) {
	for _, r := range requests {
		if r.Resource == "nodes" && r.Writes() && (first.IsZero() || r.Received.Before(first)) {
			first = r.Received
		}
	}
	return first
}

// followNodes waits until the given number of nodes have been written. It returns the time from
// `begin` to the last write, and all requests.
func (r *run) followNodes(t *testing.T, audit *framework.Audit, begin time.Time, nodes int) (time.Duration, []framework.Request) {
	t.Helper()
	var requests []framework.Request
	var last time.Time
	done := map[string]bool{}
	framework.EventuallyWithin(t, r.patience, "all nodes are written to", func() error {
		more := audit.Requests(t)
		requests = append(requests, more...)
		for _, request := range more {
			if request.Resource == "nodes" && request.Writes() && request.Code < 300 {
				done[request.Name] = true
				if request.Answered.After(last) {
					last = request.Answered
				}
			}
		}
		if len(done) < nodes {
			time.Sleep(200 * time.Millisecond) // sleep: reading the log takes CPU time from the measured processes
			return fmt.Errorf("%d of %d are", len(done), nodes)
		}
		return nil
	})
	return last.Sub(begin), requests
}

// bareLabels sends only the requests that all nodes need at least: patches of about the same size,
// from the same user and with the same concurrency. It returns the total time, and the number of
// patches that were rejected because the node had changed.
func (r *run) bareLabels(t *testing.T, key string) (took time.Duration, refused int64) {
	t.Helper()
	bare, err := client.New(r.ManagerConfig(t, "bare/1"), client.Options{Scheme: r.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	nodes := &corev1.NodeList{}
	if err := bare.List(t.Context(), nodes); err != nil {
		t.Fatal(err)
	}
	var conflicts atomic.Int64
	begin := time.Now()
	forEach(t, 32, len(nodes.Items), func(i int) error {
		node := &nodes.Items[i]
		return retry.OnError(retry.DefaultRetry, apierrors.IsConflict, func() error {
			err := bare.Patch(t.Context(), node, rawPatch(t, map[string]any{"metadata": map[string]any{
				"resourceVersion": node.ResourceVersion,
				"labels":          map[string]string{key: "1"},
				"annotations":     map[string]string{"scale.example.com/bare": `{"` + poolName + `":{"labels":{"` + key + `":"1"}}}`},
			}}))
			if apierrors.IsConflict(err) {
				conflicts.Add(1)
				// The test's client reads the node because the manager's user may list nodes, but
				// not get one.
				return errors.Join(r.Get(t.Context(), client.ObjectKeyFromObject(node), node), err)
			}
			return err
		})
	})
	return time.Since(begin), conflicts.Load()
}

// checkLabel fails the test unless all nodes have the given label.
func (r *run) checkLabel(t *testing.T, key string) {
	t.Helper()
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := r.List(t.Context(), nodes, client.HasLabels{key}); err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != r.nodes {
		t.Errorf("%d of %d nodes have the label %s", len(nodes.Items), r.nodes, key)
	}
}

// awaitPool waits until `right` returns true for the pool.
func (r *run) awaitPool(t *testing.T, right func(*tidekeeperv1.NodePool) bool) {
	t.Helper()
	pool := framework.Pool(poolName)
	framework.EventuallyWithin(t, r.patience, "the status of the pool is right", func() error {
		r.Refresh(t, pool)
		if !right(pool) {
			return fmt.Errorf("it is %+v", pool.Status)
		}
		return nil
	})
}

func isHealthy(p *tidekeeperv1.NodePool) bool {
	c := meta.FindStatusCondition(p.Status.Conditions, "Ready")
	return c != nil && c.Reason == "Healthy" && c.ObservedGeneration == p.Generation
}

func (r *run) patch(t *testing.T, o client.Object, patch map[string]any) {
	t.Helper()
	if err := r.Patch(t.Context(), o, rawPatch(t, patch)); err != nil {
		t.Fatal(err)
	}
}

func rawPatch(t *testing.T, patch map[string]any) client.Patch {
	t.Helper()
	body, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	return client.RawPatch(types.MergePatchType, body)
}

// median returns the median of the given durations, in seconds.
func median(all []time.Duration) float64 {
	return percentile(all, 50).Seconds()
}

func strategicPatch(t *testing.T, patch map[string]any) client.Patch {
	t.Helper()
	body, err := json.Marshal(patch)
	if err != nil {
		t.Fatal(err)
	}
	return client.RawPatch(types.StrategicMergePatchType, body)
}
