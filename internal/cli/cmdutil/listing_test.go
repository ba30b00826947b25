// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// TestListingOfClusters checks that the objects of several clusters are sorted together, that empty
// and failed clusters get a row, and that a failed cluster results in an error. It uses the fake
// clock of synctest, so that no request times out.
func TestListingOfClusters(t *testing.T) { synctest.Test(t, testListingOfClusters) }

func testListingOfClusters(t *testing.T) {
	found := map[string]*tidekeeperv1.NodePoolList{"a": poolsOf(map[string]int32{"x": 3, "y": 1}, "x", "y"), "b": poolsOf(map[string]int32{"z": 2}, "z"), "empty": poolsOf(nil)}
	for _, tt := range []struct{ args, want, err string }{
		{"--contexts a,b", "CONTEXT   NAME\na         x\na         y\nb         z\n", ""},
		{"--contexts a,b --sort-by .status.nodeCount", "CONTEXT   NAME\na         y\nb         z\na         x\n", ""},
		{"--contexts empty,b", "CONTEXT   NAME\nb         z\nempty     no node pools\n", ""},
		{"--contexts empty,b -l team=web", "CONTEXT   NAME\nb         z\nempty     no node pools that match\n", ""},
		{"--contexts down,b", "CONTEXT   NAME\nb         z\ndown      no route\n", "down: no route"},
		{"--contexts down,b -o jsonpath={.items[*].metadata.name}{.errors[*].context}", "zdown", "down: no route"},
	} {
		e, out := envOf(t, "a", "b", "empty", "down"), &strings.Builder{}
		e.Console.Out, e.Now = out, time.Now
		l, cmd := &Listing{Env: e, Kind: "NodePool", Plural: "node pools"}, &cobra.Command{}
		l.AddTo(cmd, "only some")
		if err := errors.Join(cmd.ParseFlags(strings.Fields(tt.args)), l.CompleteFlags(cmd), l.ValidateFlags()); err != nil {
			t.Fatalf("%s: %v", tt.args, err)
		}
		clusters := &Clusters[*tidekeeperv1.NodePoolList, tidekeeperv1.NodePool]{
			Read: func(_ context.Context, of *Env) (*tidekeeperv1.NodePoolList, error) {
				if list := found[*of.Kubeconfig.Flags.Context]; list != nil {
					return list, nil
				}
				return nil, errors.New("no route")
			},
			Items:  func(l *tidekeeperv1.NodePoolList) []tidekeeperv1.NodePool { return l.Items },
			List:   func(l *tidekeeperv1.NodePoolList) client.ObjectList { return l },
			Object: func(p *tidekeeperv1.NodePool) runtime.Object { return p },
			Fields: func(p *tidekeeperv1.NodePool) (map[string]any, error) {
				return runtime.DefaultUnstructuredConverter.ToUnstructured(p)
			},
			Table: func(_ []Answer[*tidekeeperv1.NodePoolList], rows []Located[tidekeeperv1.NodePool], _ time.Time) *term.Table {
				table := &term.Table{Columns: []term.Column{{Header: "NAME", Name: true}}}
				for _, row := range rows {
					table.Rows = append(table.Rows, []term.Cell{term.Text(row.Value.Name)})
				}
				return table
			},
		}
		err := clusters.Print(t.Context(), l)
		if out.String() != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
			t.Errorf("%s: printed %q, error %v; want %q, %q", tt.args, out, err, tt.want, tt.err)
		}
	}
}

// TestMistakesInListingFlags checks that invalid flags are rejected before any request is sent.
func TestMistakesInListingFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-l =":                  "--selector: ",
		"--contexts a,none":     `there is no context "none"`,
		"--contexts a -o name":  "-o name does not show the cluster",
		"-o nonsense":           "nonsense",
		"--contexts a --watch ": "",
	} {
		l, cmd := &Listing{Env: envOf(t, "a")}, &cobra.Command{}
		l.AddTo(cmd, "only some")
		if err := cmd.ParseFlags(strings.Fields(args)); err != nil {
			t.Fatal(err)
		}
		err := l.CompleteFlags(cmd)
		if err == nil {
			err = l.ValidateFlags()
		}
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", args, err, want)
		}
	}
}
