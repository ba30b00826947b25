// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
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

func TestOptionalWatches(t *testing.T) {
	for _, tc := range []struct {
		controllers, watches string
		want                 []string
		wantErr              string
	}{
		{"*", "", nil, ""},
		{"*", "secrets", []string{"*v1.Secret"}, ""},
		{"scheduled-restart", "secrets,configmaps", []string{"*v1.ConfigMap", "*v1.Secret"}, ""},
		{"*", "pods", nil, `--optional-watches=pods: there is no optional watch "pods"; there are: configmaps, secrets`},
		{"nodepool", "secrets", nil, "--optional-watches=secrets: only the controller scheduled-restart watches secrets, and --controllers leaves it out"},
	} {
		opts := NewOptions()
		args := []string{"--controllers=" + tc.controllers}
		if tc.watches != "" {
			args = append(args, "--optional-watches="+tc.watches)
		}
		if err := allFlags(opts).Parse(args); err != nil {
			t.Fatal(err)
		}
		gotErr := ""
		if err := opts.Validate(); err != nil {
			gotErr = err.Error()
		}
		if gotErr != tc.wantErr {
			t.Errorf("%q: error %q, want %q", args, gotErr, tc.wantErr)
		}
		if tc.wantErr != "" {
			continue
		}
		chosen, err := opts.selection()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, kind := range chosen.watches {
			if name := fmt.Sprintf("%T", kind.object); name == "*v1.Secret" || name == "*v1.ConfigMap" {
				got = append(got, name)
			}
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%q watches (-want +got):\n%s", args, d)
		}
	}
}

// TestDefinitions checks that each definition is complete: a controller has the rights to list and
// watch the kinds that it watches, each index is on a kind that the controller reads, and each
// right has a reason.
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
		for _, w := range c.OptionalWatches {
			alone := controller.Definition{Rules: w.Rules}
			if !allows(t, alone, w.Object, "list") || !allows(t, alone, w.Object, "watch") || allows(t, c, w.Object, "watch") {
				t.Errorf("%s must have the right to watch %T with the optional watch %s, and without it none", c.Name, w.Object, w.Name)
			}
			if !strings.HasSuffix(w.Purpose, ".") {
				t.Errorf("the purpose of the optional watch %s is %q", w.Name, w.Purpose)
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

// allows reports whether a controller's rules allow a verb on an object's kind.
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
