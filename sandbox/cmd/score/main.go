// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command score explores published versions of operators, of which some have known
// mistakes, and prints a table of what was found: a Markdown table for docs/explore.md.
//
//	score PATH-OF-SANDBOX DIR [ROW...]
//
// The operators are compiled from the Go module proxy. A row takes ten minutes.
package main

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

//go:embed *.yaml
var workloads embed.FS

// row is an operator that is explored.
type row struct {
	name string
	// module is compiled, if it is not empty, and what is in its folder crds installed.
	module, version, crds string
	workload              string
	command               []string
	// known are the mistakes that it has, by what the report says of each.
	known map[string]string
}

var rows = []row{
	{
		name: "replicaset-false", workload: "replicaset.yaml", command: replicaSets(false),
		known: map[string]string{"kubernetes#129795: more pods than wanted": "has more pods than the 5 replicas"},
	},
	{name: "replicaset-true", workload: "replicaset.yaml", command: replicaSets(true)},
	{
		name: "rabbitmq-1.6.0", workload: "rabbitmq.yaml", module: rabbitmq, version: "v1.6.0", crds: "config/crd/bases", command: rabbitmqCommand,
		known: map[string]string{
			"#782: a claim never grows":           "persistentvolumeclaims default/persistence-hare-server",
			"#648: a live StatefulSet is deleted": "statefulsets.apps default/hare-server",
		},
	},
	{name: "rabbitmq-1.10.0", workload: "rabbitmq.yaml", module: rabbitmq, version: "v1.10.0", crds: "config/crd/bases", command: rabbitmqCommand},
}

const rabbitmq = "github.com/rabbitmq/cluster-operator"

var rabbitmqCommand = []string{"env", "KUBE_CONFIG=$KUBECONFIG", "OPERATOR_NAMESPACE=default", "OPERATOR", "--metrics-addr=127.0.0.1:0"}

func replicaSets(consistent bool) []string {
	return []string{
		"kube-controller-manager", "--kubeconfig=$KUBECONFIG", "--controllers=replicaset-controller",
		fmt.Sprintf("--feature-gates=StaleControllerConsistencyReplicaSet=%t", consistent), "--leader-elect=false", "--secure-port=0",
	}
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("want PATH-OF-SANDBOX DIR [ROW...]")
	}
	lines := []string{"| operator | known | found | other findings | faults played | took |", "|---|---|---|---|---|---|"}
	for _, r := range rows {
		if len(args) > 2 && !slices.Contains(args[2:], r.name) {
			continue
		}
		line, err := r.play(ctx, args[0], args[1])
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		lines = append(lines, line)
	}
	fmt.Println(strings.Join(lines, "\n"))
	return nil
}

// play explores for ten minutes, and returns a line of the table.
func (r row) play(ctx context.Context, sandbox, dir string) (string, error) {
	dir, err := filepath.Abs(filepath.Join(dir, r.name))
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return "", err
	}
	workload, err := workloads.ReadFile(r.workload)
	if err != nil {
		return "", err
	}
	command := slices.Clone(r.command)
	if r.module != "" {
		source, err := r.source(ctx, dir)
		if err != nil {
			return "", err
		}
		operator := filepath.Join(dir, "operator")
		build := exec.CommandContext(ctx, "go", "build", "-mod=mod", "-o", operator, ".")
		build.Dir, build.Stderr = source, os.Stderr
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
		if err := build.Run(); err != nil {
			return "", fmt.Errorf("build: %w", err)
		}
		command[slices.Index(command, "OPERATOR")] = operator
		workload = fmt.Appendf(workload, "install: [%s]\n", filepath.Join(source, r.crds))
	}
	file := filepath.Join(dir, "workload.yaml")
	if err := os.WriteFile(file, workload, 0o600); err != nil {
		return "", err
	}
	began := time.Now()
	results := filepath.Join(dir, "results")
	explore := exec.CommandContext(ctx, sandbox, append([]string{"explore", "--workload", file, "--dir", results, "--for", "10m", "--"}, command...)...)
	var report bytes.Buffer
	explore.Stdout, explore.Stderr = io.MultiWriter(&report, os.Stdout), os.Stderr
	if err := explore.Run(); err != nil && explore.ProcessState.ExitCode() != 2 {
		return "", err
	}
	return r.line(report.String(), results, time.Since(began))
}

// source copies the source of the module, which is read-only where Go keeps it.
func (r row) source(ctx context.Context, dir string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "mod", "download", "-json", r.module+"@"+r.version).Output()
	if err != nil {
		return "", fmt.Errorf("download %s: %w", r.module, err)
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil {
		return "", err
	}
	source := filepath.Join(dir, "source")
	if err := os.CopyFS(source, os.DirFS(downloaded.Dir)); err != nil {
		return "", err
	}
	return source, filepath.Walk(source, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Chmod(path, info.Mode()|0o200)
	})
}

// line judges a report: which known mistakes it reports, and how much else.
func (r row) line(report, results string, took time.Duration) (string, error) {
	var found, missed []string
	titles := titlesOf(report)
	others := len(titles)
	for name, says := range r.known {
		told := slices.IndexFunc(titles, func(title string) bool { return strings.Contains(title, says) })
		if told < 0 {
			missed = append(missed, name)
			continue
		}
		found = append(found, name)
		others--
	}
	slices.Sort(found)
	known := append(slices.Clone(found), missed...)
	played, err := os.ReadFile(filepath.Join(results, "played.jsonl"))
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("| %s | %s | %s | %d | %d | %s |", r.name, or(strings.Join(known, "; ")), or(strings.Join(found, "; ")), max(others, 0),
		bytes.Count(played, []byte("\n")), took.Round(time.Second)), nil
}

func or(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

// titlesOf returns the lines of a report that begin with a number: each a finding.
func titlesOf(report string) []string {
	var titles []string
	for line := range strings.Lines(report) {
		if number, title, is := strings.Cut(line, ". "); is && strings.Trim(number, "0123456789") == "" && number != "" {
			titles = append(titles, strings.TrimSpace(title))
		}
	}
	return titles
}
