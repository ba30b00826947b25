// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/term"
)

// envOf returns an environment whose kubeconfig contains the given contexts, each for a separate
// cluster.
func envOf(t *testing.T, contexts ...string) *Env {
	t.Helper()
	var config strings.Builder
	config.WriteString("apiVersion: v1\nkind: Config\n")
	for _, list := range []struct{ name, item string }{
		{"clusters", "- {name: %[1]s, cluster: {server: \"http://127.0.0.1:1\"}}\n"},
		{"contexts", "- {name: %[1]s, context: {cluster: %[1]s, namespace: of-%[1]s}}\n"},
	} {
		config.WriteString(list.name + ":\n")
		for _, name := range contexts {
			fmt.Fprintf(&config, list.item, name)
		}
	}
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(config.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := genericclioptions.NewConfigFlags(true)
	flags.KubeConfig = &path
	return &Env{Console: Console{Out: &strings.Builder{}, ErrOut: &strings.Builder{}}, Kubeconfig: Kubeconfig{flags}, Now: time.Now}
}

// TestContextsFlag checks that an invalid --contexts results in a one-line error that lists the
// kubeconfig's contexts.
func TestContextsFlag(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"", "ok"},
		{"--contexts a,b", "ok"},
		{"--contexts a --contexts c", "ok"},
		{"--contexts b", "ok"},
		{"--contexts=", "--contexts: write the names of contexts, such as prod,edge: the kubeconfig has a, b, c"},
		{"--contexts a,,b", "--contexts: a name is empty: the kubeconfig has a, b, c"},
		{"--contexts a,d", `--contexts: there is no context "d": the kubeconfig has a, b, c`},
		{"--contexts a,b,a", `--contexts: the context "a" is given twice: the kubeconfig has a, b, c`},
		{"--contexts a,b --context a", "write either --contexts or --context: the kubeconfig has a, b, c"},
		{"--contexts a,b --token x", "write either --contexts or --token: the kubeconfig has a, b, c"},
		{"--contexts a,b --server x", "write either --contexts or --server: the kubeconfig has a, b, c"},
		{"--contexts a,b --as x", "ok"},
	} {
		e, c, got := envOf(t, "c", "a", "b"), &Contexts{}, "ok"
		cmd := &cobra.Command{}
		e.Kubeconfig.Flags.AddFlags(cmd.Flags())
		c.AddTo(e, cmd)
		if err := cmd.ParseFlags(strings.Fields(tt.args)); err != nil {
			t.Fatal(err)
		}
		if err := c.Complete(e, cmd); err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s: %s\nwant %s", tt.args, got, tt.want)
		}
	}
	var many []string
	for i := range mostContexts + 5 {
		many = append(many, fmt.Sprintf("c%02d", i))
	}
	if err := checkContexts([]string{"x"}, many); err == nil || !strings.HasSuffix(err.Error(), "c19 and 5 more") {
		t.Errorf("of many contexts, it names %v", err)
	}
}

// TestNextContexts checks that the completion after a comma suggests only contexts that the list
// does not contain yet.
func TestNextContexts(t *testing.T) {
	known := []string{"edge", "prod", "prod-2"}
	for _, tt := range []struct {
		written string
		want    []string
	}{
		{"", known},
		{"pro", []string{"prod", "prod-2"}},
		{"prod,", []string{"prod,edge", "prod,prod-2"}},
		{"prod,edge,p", []string{"prod,edge,prod-2"}},
		{"none,x", []string{}},
	} {
		if diff := cmp.Diff(tt.want, nextContexts(known, tt.written)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.written, diff)
		}
	}
}

// TestAskContexts checks that a cluster that returns an error, or that hangs and ignores
// cancellation, does not delay the other clusters. It uses the fake clock of synctest.
func TestAskContexts(t *testing.T) { synctest.Test(t, testAskContexts) }

func testAskContexts(t *testing.T) {
	e := envOf(t, "a", "b", "hangs")
	timeout := "1s"
	e.Kubeconfig.Flags.Timeout = &timeout
	hang := make(chan struct{})
	defer close(hang)
	answered := make(chan time.Duration, 1)
	began := time.Now()
	answers, err := AskContexts(t.Context(), e, []string{"hangs", "b", "a"}, func(_ context.Context, of *Env) (string, error) {
		namespace, err := of.Kubeconfig.Namespace(false)
		switch *of.Kubeconfig.Flags.Context {
		case "hangs":
			<-hang
		case "b":
			return "", errors.New("of\nno use")
		default:
			of.Console.Note("note: something")
			answered <- time.Since(began)
		}
		return namespace, err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []Answer[string]{{"hangs", "", "no answer within 1s"}, {"b", "", "of no use"}, {"a", "of-a", ""}}
	if diff := cmp.Diff(want, answers); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if took := <-answered; took != 0 {
		t.Errorf("a has answered after %s: it has waited for another", took)
	}
	if took := time.Since(began); took != time.Second {
		t.Errorf("all was asked after %s, want the second that --request-timeout allows", took)
	}
	if got := fmt.Sprint(e.Console.ErrOut); got != "a: note: something\n" {
		t.Errorf("stderr has %q", got)
	}
	if err := Unanswered(ProblemsOf(answers)); err == nil || err.Error() != "hangs: no answer within 1s; b: of no use" {
		t.Errorf("the error is %v", err)
	}
	if code, _ := ExplainError(Unanswered(ProblemsOf(answers))); code != ExitError {
		t.Errorf("the exit code is %d", code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := AskContexts(ctx, e, []string{"a"}, func(context.Context, *Env) (string, error) { return "", nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestLocated checks that a table sorts the objects of several clusters together and shows the
// context of each. A cluster without objects gets a row, too.
func TestLocated(t *testing.T) {
	answers := []Answer[*tidekeeperv1.NodePoolList]{
		{Context: "b", Value: poolsOf(map[string]int32{"x": 3, "y": 1}, "x", "y")},
		{Context: "down", Problem: "no answer within 10s"},
		{Context: "a", Value: poolsOf(map[string]int32{"x": 2}, "x")},
		{Context: "empty", Value: poolsOf(nil)},
	}
	object := func(p *tidekeeperv1.NodePool) runtime.Object { return p }
	rows := Locate(answers, func(l *tidekeeperv1.NodePoolList) []tidekeeperv1.NodePool { return l.Items })
	names := func() (all []string) {
		for _, row := range rows {
			all = append(all, row.Context+"/"+row.Value.Name)
		}
		return all
	}
	if diff := cmp.Diff([]string{"b/x", "b/y", "a/x"}, names()); diff != "" {
		t.Errorf("unsorted (-want +got):\n%s", diff)
	}
	o := outputOf(t, "-o", "custom-columns=C:.context,N:.metadata.name", "--sort-by", ".status.nodeCount")
	if err := errors.Join(o.Validate(), o.ValidateContexts(), SortLocated(o, rows, object)); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	fields := func(p *tidekeeperv1.NodePool) (map[string]any, error) {
		return runtime.DefaultUnstructuredConverter.ToUnstructured(p)
	}
	list := tidekeeperv1.SchemeGroupVersion.WithKind("NodePoolList")
	if err := PrintLocated(o, &out, list, rows, ProblemsOf(answers), fields); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != "C   N\nb   y\na   x\nb   x\n" {
		t.Errorf("printed: %q", got)
	}
	o = outputOf(t, "-o", "jsonpath={.kind} {.errors[0].context} {.errors[0].error}")
	out.Reset()
	if err := errors.Join(o.Validate(), PrintLocated(o, &out, list, rows, ProblemsOf(answers), fields)); err != nil || out.String() != "NodePoolList down no answer within 10s" {
		t.Errorf("errors: %q, %v", out.String(), err)
	}
	if err := outputOf(t, "-o", "name").ValidateContexts(); err == nil {
		t.Error("-o name is taken, and does not say which cluster")
	}
	table := &term.Table{Columns: []term.Column{{Header: "NAME"}, {Header: "NODES"}}}
	for _, row := range rows {
		table.Rows = append(table.Rows, []term.Cell{term.Text(row.Value.Name), term.Text(fmt.Sprint(row.Value.Status.NodeCount))})
	}
	AddContexts(table, rows)
	AddOthers(table, answers, rows, "no node pools")
	out.Reset()
	if err := table.WriteTo(&out, term.Screen{}); err != nil {
		t.Fatal(err)
	}
	want := "CONTEXT   NAME   NODES\nb         y      1\na         x      2\nb         x      3\ndown      no answer within 10s\nempty     no node pools\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
