// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChooseControllers(t *testing.T) {
	known := []controller{{name: "a"}, {name: "b"}, {name: "c", offByDefault: true}}
	for _, tc := range []struct {
		selectors string
		want      []string
		wantErr   string
	}{
		{selectors: "*", want: []string{"a", "b"}},
		{selectors: "*,c", want: []string{"a", "b", "c"}},
		{selectors: "c,*", want: []string{"a", "b", "c"}},
		{selectors: "*,-a", want: []string{"b"}},
		{selectors: "-a,*", want: []string{"b"}},
		{selectors: "b", want: []string{"b"}},
		{selectors: "b,a", want: []string{"a", "b"}},
		{selectors: "a,-a", want: []string{"a"}},
		{selectors: "*,-a,a", want: []string{"b"}},
		{selectors: "-a", wantErr: "--controllers=-a: leaves no controller to run; there are: a, b, c"},
		{selectors: "*,-a,-b", wantErr: "--controllers=*,-a,-b: leaves no controller to run; there are: a, b, c"},
		{selectors: "d", wantErr: `--controllers=d: there is no controller "d"; there are: a, b, c`},
		{selectors: "*,-d", wantErr: `--controllers=*,-d: there is no controller "d"; there are: a, b, c`},
		{selectors: "", wantErr: `--controllers=: there is no controller ""; there are: a, b, c`},
	} {
		t.Run(tc.selectors, func(t *testing.T) {
			chosen, err := chooseControllers(strings.Split(tc.selectors, ","), known)
			gotErr := ""
			if err != nil {
				gotErr = err.Error()
			}
			if gotErr != tc.wantErr {
				t.Fatalf("error: got %q, want %q", gotErr, tc.wantErr)
			}
			var got []string
			for _, c := range chosen {
				got = append(got, c.name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEveryControllerSaysWhatItWatches(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range allControllers {
		if len(c.watches) == 0 || c.setup == nil {
			t.Errorf("%s watches nothing or does nothing", c.name)
		}
		for _, object := range c.watches {
			if _, _, err := scheme.ObjectKinds(object); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}

// With --namespaces the cache keeps a kind of these only, unless a controller
// that is about the whole cluster needs it.
func TestCacheIsLimitedToNamespaces(t *testing.T) {
	for _, tt := range []struct {
		name        string
		controllers []string
		want        []string
	}{
		{"by default", []string{"*"}, []string{"*v1.DaemonSet", "*v1.Deployment", "*v1.ReplicaSet", "*v1.ScheduledRestart", "*v1.StatefulSet"}},
		{"nothing that needs the pods of all", []string{"pod-count"}, []string{"*v1.DaemonSet", "*v1.Deployment", "*v1.Pod", "*v1.ReplicaSet", "*v1.ScheduledRestart", "*v1.StatefulSet"}},
		{"one that does", []string{"pod-count", "pod-startup"}, []string{"*v1.DaemonSet", "*v1.Deployment", "*v1.ReplicaSet", "*v1.ScheduledRestart", "*v1.StatefulSet"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			chosen, err := chooseControllers(tt.controllers, allControllers)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for kind, of := range cacheOptions(chosen, []string{"shop"}).ByObject {
				if len(of.Namespaces) > 0 {
					got = append(got, fmt.Sprintf("%T", kind))
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("limited are %q, want %q", got, tt.want)
			}
			for kind, of := range cacheOptions(chosen, nil).ByObject {
				if len(of.Namespaces) > 0 {
					t.Errorf("without --namespaces %T is limited", kind)
				}
			}
		})
	}
}

// An index on pods starts their informer, so that who can do without pods has
// his only where another controller watches them.
func TestIndexesOf(t *testing.T) {
	for selectors, want := range map[string]int{"scheduled-restart": 1, "nodepool": 1, "scheduled-restart,nodepool": 3, "*,pod-count": 4} {
		chosen, err := chooseControllers(strings.Split(selectors, ","), allControllers)
		if err != nil {
			t.Fatal(err)
		}
		if got := len(indexesOf(chosen)); got != want {
			t.Errorf("--controllers=%s has %d indexes, want %d", selectors, got, want)
		}
	}
}
