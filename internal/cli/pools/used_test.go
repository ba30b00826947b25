// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/term"
	"tidekeeper.dev/tidekeeper/internal/view"
)

func TestProblemOf(t *testing.T) {
	nodes := schema.GroupResource{Group: "metrics.k8s.io", Resource: "nodes"}
	for _, tc := range []struct {
		err  error
		want string
	}{
		{apierrors.NewGenericServerResponse(http.StatusNotFound, "list", nodes, "", "404 page not found", 0, true), "the cluster serves no metrics.k8s.io"},
		{apierrors.NewForbidden(nodes, "", errors.New("no")), "you may not list nodes.metrics.k8s.io"},
		{fmt.Errorf("reading: %w", context.DeadlineExceeded), "no answer in 3s"},
		{&url.Error{Op: "Get", URL: "https://example.com", Err: context.DeadlineExceeded}, "no answer in 3s"},
		{apierrors.NewServiceUnavailable("the server is currently unable to handle the request"), "the server is currently unable to handle the request"},
		{errors.New(strings.Repeat("x", 9999)), strings.Repeat("x", problemLimit-3) + "…"},
	} {
		if diff := cmp.Diff(tc.want, problemOf(tc.err, metricsTimeout)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.err, diff)
		}
	}
}

func TestMetricsOf(t *testing.T) {
	for _, tc := range []struct {
		name      string
		timestamp any
		usage     any
		want      capacity.Metrics
	}{
		{"as it is served", "2026-11-22T12:00:00Z", map[string]any{"cpu": "271943182n", "memory": "1536Mi"}, capacity.Metrics{Time: noon.Add(24 * time.Hour), Usage: list("cpu", "271943182n", "memory", "1536Mi")}},
		{"numbers", nil, map[string]any{"cpu": int64(2), "memory": 1.5e9}, capacity.Metrics{Usage: list("cpu", "2", "memory", "1500000000")}},
		{"no usage", "yesterday", nil, capacity.Metrics{Usage: list()}},
		{"usage is a text", int64(7), "all of it", capacity.Metrics{Usage: list()}},
		{"no amounts", "", map[string]any{"cpu": "NaN", "memory": []any{"1Gi"}, "": "", "a": "-1", "b": "\x1b[2J", "c": nil}, capacity.Metrics{Usage: list()}},
		{"what takes forever to parse", "", map[string]any{"cpu": "1e2000000000", "memory": "1e-2000000000", "x": strings.Repeat("9", 1e6)}, capacity.Metrics{Usage: list()}},
		{"what no node has is for UsedBy", "", map[string]any{"memory": "1e99"}, capacity.Metrics{Usage: list("memory", "1e99")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.want.Node = "node-1"
			o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "node-1"}, "timestamp": tc.timestamp, "usage": tc.usage}}
			equal := cmp.Comparer(func(a, b resource.Quantity) bool { return a.Cmp(b) == 0 })
			if diff := cmp.Diff(tc.want, metricsOf(o), equal); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestUsedWords checks that an unknown usage is not shown as 0, and that a lower bound is marked as
// such.
func TestUsedWords(t *testing.T) {
	used := func(measured int) *capacity.Used {
		return &capacity.Used{Nodes: 5, MeasuredNodes: measured, Resources: list("cpu", "3218m", "memory", "11Gi")}
	}
	for _, tc := range []struct {
		name    string
		members int
		used    *capacity.Used
		problem string
		line    string
		cell    term.Cell
	}{
		{"all nodes", 5, used(5), "", "3.22 CPU, 11Gi memory", term.Cell{Text: "3.22 CPU, 11Gi memory", Short: "3.22 CPU, 11Gi memory"}},
		{"some nodes", 5, used(4), "", "at least 3.22 CPU, 11Gi memory (of 4 of 5 nodes)",
			term.Cell{Text: "at least 3.22 CPU, 11Gi memory (of 4 of 5 nodes)", Short: "at least 3.22 CPU, 11Gi memory (4/5)"}},
		{"no metrics", 5, nil, "the cluster serves no metrics.k8s.io", "not available: the cluster serves no metrics.k8s.io", term.Text("not available")},
		{"no nodes", 0, nil, "none of its nodes has metrics", "", term.Text("-")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := view.PoolDetail{Used: tc.used, NoMetrics: tc.problem, Members: make([]view.Member, tc.members)}
			if diff := cmp.Diff(tc.line, d.UsedLine()); diff != "" {
				t.Errorf("describe (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.cell, usedCell(int32(tc.members), tc.used)); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUsedColumn(t *testing.T) {
	items := []tidekeeperv1.NodePool{
		aPool("gpu", "Healthy", func(p *tidekeeperv1.NodePool) {
			p.Status.NodeCount, p.Status.ReadyNodes = 5, 5
			p.Status.Allocatable, p.Status.Requested = list("cpu", "16", "memory", "64Gi"), list("cpu", "8", "memory", "1Gi")
			p.Status.RequestedPercent = map[corev1.ResourceName]int32{"cpu": 50, "memory": 1}
		}),
		aPool("none", "NoNodes", nil),
	}
	used := []*capacity.Used{{Nodes: 5, MeasuredNodes: 4, Resources: list("cpu", "2", "memory", "3Gi")}, nil}
	for _, tc := range []struct {
		name   string
		screen term.Screen
		want   []string
	}{
		{"a pipe", term.Screen{}, []string{
			"NAME   STATUS    READY   CPU   MEMORY   PODS   CONFLICTS   AGE   CPU-OF    MEMORY-OF     USED                                           FITS NOW   OTHER   MESSAGE",
			"gpu    Healthy   5/5     50%   1%       -      -           60m   8 of 16   1Gi of 64Gi   at least 2 CPU, 3Gi memory (of 4 of 5 nodes)   -          -       said so",
			"none   NoNodes   0/0     -     -        -      -           60m   -         -             -                                              -          -       said so",
		}},
		{"a terminal", term.Screen{Terminal: true, Width: 120}, []string{
			"NAME   STATUS    READY   CPU   MEMORY   PODS   CONFLICTS   AGE   USED                               FITS NOW   OTHER",
			"gpu    Healthy   5/5     50%   1%       -      -           60m   at least 2 CPU, 3Gi memory (4/5)   -          -",
			"none   NoNodes   0/0     -     -        -      -           60m   -                                  -          -",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			table := listTable(items, true, noon)
			addUsed(table, items, used)
			if diff := cmp.Diff(tc.want, lines(t, table, tc.screen)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWithUsed checks that JSON output only adds the field used to pools with known usage, and
// leaves the pools unchanged otherwise.
func TestWithUsed(t *testing.T) {
	items := []tidekeeperv1.NodePool{aPool("a", "Healthy", nil), aPool("b", "Healthy", nil)}
	for i := range items {
		items[i].SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind(poolKind.Name))
	}
	shown, err := withUsed(&tidekeeperv1.NodePoolList{Items: items}, []*capacity.Used{nil, {Nodes: 1, MeasuredNodes: 1, Resources: list("cpu", "2")}})
	if err != nil {
		t.Fatal(err)
	}
	want := []any{nil, map[string]any{"nodes": int64(1), "measuredNodes": int64(1), "resources": map[string]any{"cpu": "2"}}}
	for i := range items {
		if diff := cmp.Diff(want[i], shown.Items[i].Object["used"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", items[i].Name, diff)
		}
		delete(shown.Items[i].Object, "used")
		var same tidekeeperv1.NodePool
		err := runtime.DefaultUnstructuredConverter.FromUnstructured(shown.Items[i].Object, &same)
		if diff := cmp.Diff(items[i], same, cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", items[i].Name, err, diff)
		}
	}
	if none, err := withUsed(&tidekeeperv1.NodePoolList{}, nil); err != nil || len(none.Items) != 0 {
		t.Errorf("no pools: %v, %v", none, err)
	}
}
