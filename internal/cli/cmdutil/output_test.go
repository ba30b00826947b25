// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
)

func poolsOf(cpu map[string]int32, names ...string) *tidekeeperv1.NodePoolList {
	list := &tidekeeperv1.NodePoolList{}
	for _, name := range names {
		pool := aPool(name, "Healthy")
		pool.SetGroupVersionKind(tidekeeperv1.SchemeGroupVersion.WithKind("NodePool"))
		pool.Status.NodeCount = cpu[name]
		list.Items = append(list.Items, pool)
	}
	return list
}

// outputOf returns an ObjectOutput that has parsed the given flags.
func outputOf(t *testing.T, args ...string) *ObjectOutput {
	t.Helper()
	o, cmd := &ObjectOutput{}, &cobra.Command{}
	o.AddTo(cmd)
	if err := cmd.ParseFlags(args); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestObjectOutput checks the supported output formats of kubectl get, and the errors for malformed
// formats.
func TestObjectOutput(t *testing.T) {
	list := poolsOf(map[string]int32{"a": 10, "b": 9}, "a", "b")
	for _, tt := range []struct{ args, want string }{
		{"-o name", "nodepool.tidekeeper.dev/a\nnodepool.tidekeeper.dev/b\n"},
		{"-o custom-columns=NAME:.metadata.name,NODES:{.status.nodeCount},NONE:.spec.none", "NAME   NODES   NONE\na      10      <none>\nb      9       <none>\n"},
		{"-o custom-columns=NAME:metadata.name --no-headers", "a\nb\n"},
		{"-o jsonpath={.items[*].metadata.name}", "a b"},
		{"-o custom-columns=NAME", `-o custom-columns=NAME: "NAME" is not a column: write HEADER:.path, such as NAME:.metadata.name`},
		{"-o jsonpath={.x", `-o jsonpath={.x: error parsing jsonpath {.x, unclosed action`},
		{"-o jsonpath", "-o jsonpath: template format specified but no template given"},
		{"-o xml", "-o xml: write one of json, yaml, name, wide, custom-columns=…, jsonpath=… or go-template=…"},
	} {
		o := outputOf(t, strings.Fields(tt.args)...)
		var out strings.Builder
		got := ""
		if err := o.Validate(); err != nil {
			got = err.Error()
		} else if err := o.Print(list, &out); err != nil {
			t.Fatal(tt.args, err)
		} else {
			got = out.String()
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestSortBy(t *testing.T) {
	list := poolsOf(map[string]int32{"a": 10, "b": 9, "c": 100}, "a", "b", "c")
	for _, tt := range []struct{ path, want string }{
		{".status.nodeCount", "b a c"}, {"{.status.nodeCount}", "b a c"}, {"metadata.name", "a b c"},
	} {
		if err := outputOf(t, "--sort-by", tt.path).Sort(list); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, pool := range list.Items {
			names = append(names, pool.Name)
		}
		if diff := cmp.Diff(tt.want, strings.Join(names, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
	}
	if err := outputOf(t, "--sort-by", ".spec.none").Sort(list); err == nil || err.Error() != "--sort-by .spec.none: no object has this field" {
		t.Errorf("an unknown field: %v", err)
	}
}

// TestMissingName checks that the error for a missing object suggests a subcommand if the object's
// name resembles it.
func TestMissingName(t *testing.T) {
	cmd := &cobra.Command{Use: "pools"}
	cmd.AddCommand(&cobra.Command{Use: "describe", Run: func(*cobra.Command, []string) {}})
	for name, want := range map[string]string{
		"descibe": `unknown command "descibe" for "pools": did you mean describe?`,
		"worker":  `there is no NodePool "worker"`,
	} {
		if err := MissingName(cmd, name, NotFound("NodePool", "", name)); err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestDurationHasALimit(t *testing.T) {
	d := Duration{Max: 31 * day}
	for text, want := range map[string]string{"31d": "", "100000d": "at most 31d", "1e300w": "at most 31d", "-1h": "write a duration such as 30m, 24h or 7d"} {
		if err := d.Set(text); (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
