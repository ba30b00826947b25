// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"tidekeeper.dev/tidekeeper/internal/controller"
)

func TestChooseControllers(t *testing.T) {
	known := []controller.Definition{{Name: "a"}, {Name: "b"}, {Name: "c", OffByDefault: true}}
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
				got = append(got, c.Name)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("chosen (-want +got):\n%s", diff)
			}
		})
	}
}

// Each definition is complete: what the controller watches it may list and watch,
// each index is on a kind that it reads, and each right has its reason.
func TestDefinitions(t *testing.T) {
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range controllers() {
		if c.Purpose == "" || len(c.Watches) == 0 || c.SetupWithManager == nil {
			t.Errorf("%s: purpose, watches or set-up is missing", c.Name)
		}
		var kinds []reflect.Type
		for _, object := range c.Watches {
			kinds = append(kinds, reflect.TypeOf(object))
			for _, verb := range []string{"list", "watch"} {
				if !allows(t, c, object, verb) {
					t.Errorf("%s has no right to %s %T, which it watches", c.Name, verb, object)
				}
			}
			if gvk, err := apiutil.GVKForObject(object, scheme); err != nil {
				t.Error(err)
			} else if c.Namespaced && slices.Contains([]string{"Node", "NodePool", "RuntimeClass"}, gvk.Kind) {
				t.Errorf("%s is namespaced, but watches %s", c.Name, gvk.Kind)
			}
		}
		for _, b := range c.Borrows {
			kinds = append(kinds, reflect.TypeOf(b.Object))
			if b.Reason == "" || allows(t, c, b.Object, "watch") {
				t.Errorf("%s borrows %T without a reason, or has a right of its own to watch it", c.Name, b.Object)
			}
		}
		for _, i := range c.Indexes {
			if !slices.Contains(kinds, reflect.TypeOf(i.Object)) {
				t.Errorf("%s has an index on %T, which it neither watches nor borrows", c.Name, i.Object)
			}
		}
		for _, r := range c.Rules {
			if len(r.Resources) == 0 || len(r.Verbs) == 0 || !strings.HasSuffix(r.Reason, ".") {
				t.Errorf("%s: the rule %+v is not complete", c.Name, r)
			}
		}
	}
}

// allows reports whether the rules of a controller allow a verb on a kind.
func allows(t *testing.T, c controller.Definition, object client.Object, verb string) bool {
	t.Helper()
	scheme, err := newScheme()
	if err != nil {
		t.Fatal(err)
	}
	gvk, err := apiutil.GVKForObject(object, scheme)
	if err != nil {
		t.Fatal(err)
	}
	plural, _ := meta.UnsafeGuessKindToResource(gvk)
	return slices.ContainsFunc(c.Rules, func(r controller.Rule) bool {
		return r.Group == gvk.Group && slices.Contains(r.Resources, plural.Resource) && slices.Contains(r.Verbs, verb)
	})
}
