// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"testing"

	"tidekeeper.dev/tidekeeper/internal/kube/lease"
)

// chosenBy returns the selection for the given values of --controllers and --namespaces.
func chosenBy(t *testing.T, controllers, namespaces string) *selection {
	t.Helper()
	opts := NewOptions()
	if err := allFlags(opts).Parse([]string{"--controllers=" + controllers, "--namespaces=" + namespaces}); err != nil {
		t.Fatal(err)
	}
	chosen, err := opts.selection()
	if err != nil {
		t.Fatal(err)
	}
	return chosen
}

// TestCacheIsLimitedToNamespaces checks that --namespaces limits a kind's cache unless a
// cluster-wide controller watches the kind.
func TestCacheIsLimitedToNamespaces(t *testing.T) {
	for _, tt := range []struct {
		name        string
		controllers string
		want        []string
	}{
		{"by default", "*", []string{"*v1.DaemonSet", "*v1.Deployment", "*v1.ScheduledRestart", "*v1.StatefulSet"}},
		{"no controller needs all pods", "pod-count", []string{"*v1.Pod", "*v1.ReplicaSet"}},
		{"one controller does", "pod-count,pod-startup", []string{"*v1.ReplicaSet"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for kind, config := range cacheOptions(chosenBy(t, tt.controllers, "shop").watches).ByObject {
				if len(config.Namespaces) > 0 {
					got = append(got, fmt.Sprintf("%T", kind))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("limited are %q, want %q", got, tt.want)
			}
			for kind, config := range cacheOptions(chosenBy(t, tt.controllers, "").watches).ByObject {
				if len(config.Namespaces) > 0 {
					t.Errorf("without --namespaces %T is limited", kind)
				}
			}
		})
	}
}

// TestIndexesOfBorrowedKinds checks a controller that only borrows pods: its indexes on pods are
// added only if another controller watches pods, because an index starts the pod informer. An index
// that two controllers need is added only once, because controller-runtime rejects duplicates.
func TestIndexesOfBorrowedKinds(t *testing.T) {
	for controllers, want := range map[string]int{"scheduled-restart": 2, "nodepool": 1, "freeze": 0, "scheduled-restart,freeze": 3, "scheduled-restart,nodepool": 5, "*,pod-count": 7, "nodepool,node-maintenance": 1} {
		if got := len(chosenBy(t, controllers, "").indexes); got != want {
			t.Errorf("--controllers=%s has %d indexes, want %d", controllers, got, want)
		}
	}
}

// TestPublishedSettings checks that the lease has the running controllers and the flags that they
// publish.
func TestPublishedSettings(t *testing.T) {
	settings := publishedSettings(chosenBy(t, "scheduled-restart,freeze", "").controllers)
	var runs []string
	for _, c := range controllers() {
		if settings[lease.RunsSetting(c.Name)] == "true" {
			runs = append(runs, c.Name)
		}
	}
	if want := []string{"scheduled-restart", "freeze"}; !slices.Equal(runs, want) || settings["max-concurrent-restarts"] == "" {
		t.Errorf("the settings %v say that %v run, want %v", settings, runs, want)
	}
}
