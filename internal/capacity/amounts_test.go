// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tidekeeper.dev/tidekeeper/internal/resources"
)

// axesOf returns the axes (the ordered list of resources) of a cluster whose nodes offer the named
// resources.
func axesOf(names ...corev1.ResourceName) *axes {
	var offered []resources.Amount
	for _, name := range names {
		offered = append(offered, resources.Amount{Resource: name, Value: 1})
	}
	return newAxes([][]resources.Amount{offered})
}

// TestAxes checks that the axes contain each resource offered by any node exactly once, with CPU
// and memory first.
func TestAxes(t *testing.T) {
	amount := func(name corev1.ResourceName) resources.Amount { return resources.Amount{Resource: name, Value: 1} }
	a := newAxes([][]resources.Amount{{amount("pods"), amount("memory")}, {amount("nvidia.com/gpu"), amount("memory"), amount("cpu")}, nil})
	equal(t, "names", []corev1.ResourceName{"cpu", "memory", "nvidia.com/gpu", "pods"}, a.names)
	for _, tc := range []struct {
		name    string
		amounts []resources.Amount
		want    vector
		unknown corev1.ResourceName
	}{
		{"nothing", nil, vector{0, 0, 0, 0}, ""},
		{"some", []resources.Amount{{Resource: "nvidia.com/gpu", Value: 2}, {Resource: "cpu", Value: 500}}, vector{500, 0, 2, 0}, ""},
		{"none of a resource that no node offers", []resources.Amount{{Resource: "example.com/a"}, {Resource: "cpu", Value: 1}}, vector{1, 0, 0, 0}, ""},
		{"the first resource that no node offers", []resources.Amount{{Resource: "example.com/a", Value: 1}, {Resource: "example.com/b", Value: 1}}, vector{0, 0, 0, 0}, "example.com/a"},
	} {
		got, unknown := a.vectorOf(tc.amounts)
		equal(t, tc.name, tc.want, got)
		equal(t, tc.name+": unknown", tc.unknown, unknown)
	}
}

func TestCopies(t *testing.T) {
	a := axesOf("cpu", "memory", "pods")
	for _, tc := range []struct {
		name          string
		free, request vector
		copies        int64
		limit         string
	}{
		{"the scarcest resource limits", vector{8, 10, 100}, vector{2, 5, 1}, 2, "memory"},
		{"the first of two limits", vector{4, 4, 4}, vector{1, 1, 1}, 4, "cpu"},
		{"a resource without a request does not limit", vector{0, 9, 9}, vector{0, 3, 1}, 3, "memory"},
		{"an overcommitted resource is full", vector{-3, 9, 9}, vector{1, 1, 1}, 0, "cpu"},
		{"nothing is requested of the node", vector{8, 8, 8}, vector{0, 0, 0}, 0, "pods"},
	} {
		copies, limit := a.copies(tc.free, tc.request)
		if copies != tc.copies || limit != tc.limit {
			t.Errorf("%s: %d copies, limited by %s, want %d by %s", tc.name, copies, limit, tc.copies, tc.limit)
		}
	}
}

func TestCovers(t *testing.T) {
	for _, tc := range []struct {
		free, request vector
		want          bool
	}{
		{vector{2, 2}, vector{2, 1}, true},
		{vector{2, 2}, vector{3, 1}, false},
		{vector{-1, 2}, vector{0, 2}, true},
		{vector{-1, 2}, vector{1, 2}, false},
	} {
		if got := tc.free.covers(tc.request); got != tc.want {
			t.Errorf("%v covers %v: %t", tc.free, tc.request, got)
		}
	}
}
