// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wantError fails the test unless the command failed and wrote a single line to standard error that
// contains want.
func wantError(t *testing.T, r result, want string) {
	t.Helper()
	if r.code != 1 {
		t.Errorf("exit code %d, want 1", r.code)
	}
	if !strings.HasPrefix(r.stderr, "error: ") || strings.Count(r.stderr, "\n") != 1 || !strings.Contains(r.stderr, want) {
		t.Errorf("stderr:\n%s\nwant one line, error: ... %s", r.stderr, want)
	}
}

func TestWrongInput(t *testing.T) {
	empty := t.TempDir()
	foreign := t.TempDir()
	file := filepath.Join(foreign, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	running := sharedSandbox(t).dir
	tests := map[string]struct {
		args []string
		want string
	}{
		"no such command":         {[]string{"upp"}, `unknown command "upp"`},
		"logs":                    {[]string{"logs", "--data-dir", running}, `unknown command "logs" for "sandbox": the logs of the components are in ` + filepath.Join(running, "logs")},
		"nearly a command":        {[]string{"statu"}, "did you mean status?"},
		"no such subcommand":      {[]string{"nodes", "sick"}, `unknown command "sick"`},
		"no such flag":            {[]string{"up", "--nods=3"}, "see 'sandbox up --help'"},
		"argument too many":       {[]string{"up", "now"}, "requires no arguments"},
		"nodes not a number":      {[]string{"up", "--nodes=many"}, `--nodes "many": want a whole number`},
		"negative nodes":          {[]string{"up", "--nodes=-1"}, "fewer than 0"},
		"negative real nodes":     {[]string{"up", "--real-nodes=-1"}, "--real-nodes -1: want a number from 0 to"},
		"real nodes nowhere":      {[]string{"up", "--real-nodes=1", "--data-dir", "/proc/sandbox"}, "real nodes "},
		"images without nodes":    {[]string{"nodes", "load-image", "app", file, "--data-dir", running}, "has no real nodes: stop it"},
		"negative delay":          {[]string{"up", "--pod-ready-after=-1s"}, "cannot be negative"},
		"delay without unit":      {[]string{"up", "--pod-ready-after=5"}, `--pod-ready-after "5": want a duration like`},
		"foreign directory":       {[]string{"up", "--data-dir", foreign}, "not a sandbox's"},
		"foreign directory fresh": {[]string{"up", "--fresh", "--detach", "--data-dir", foreign}, "not a sandbox's"},
		"directory is a file":     {[]string{"up", "--data-dir", file}, "is a file"},
		"foreign kubeconfig":      {[]string{"up", "--data-dir", empty, "--kubeconfig", file}, "is not the kubeconfig of a sandbox"},
		"kubeconfig nowhere":      {[]string{"up", "--data-dir", empty, "--kubeconfig", filepath.Join(empty, "no", "file")}, "cannot be written"},
		"already running":         {[]string{"up", "--data-dir", running}, "already runs in"},
		"status of nothing":       {[]string{"status", "--data-dir", empty}, "no sandbox runs in"},
		"status format":           {[]string{"status", "-o", "xml", "--data-dir", running}, "want json"},
		"kubectl of nothing":      {[]string{"kubectl", "--data-dir", empty, "get", "nodes"}, "no sandbox runs in"},
		"kubeconfig of nothing":   {[]string{"kubeconfig", "--data-dir", empty}, "there is no sandbox in"},
		"user without a name":     {[]string{"kubeconfig", "--user=", "--data-dir", running}, "--user is empty"},
		"group without a user":    {[]string{"kubeconfig", "--group=g", "--data-dir", running}, "--group without --user"},
		"nodes of nothing":        {[]string{"nodes", "add", "--data-dir", empty}, "no sandbox runs in"},
		"no nodes":                {[]string{"nodes", "add", "--count=0", "--data-dir", running}, "at least 1"},
		"bad resource":            {[]string{"nodes", "add", "--allocatable=cpu", "--data-dir", running}, "resource=quantity"},
		"bad quantity":            {[]string{"nodes", "add", "--allocatable=cpu=lots", "--data-dir", running}, `"cpu=lots"`},
		"negative quantity":       {[]string{"nodes", "add", "--allocatable=cpu=-1", "--data-dir", running}, `"cpu=-1"`},
		"bad label":               {[]string{"nodes", "add", "--labels=zone", "--data-dir", running}, "key=value"},
		"bad label key":           {[]string{"nodes", "add", "--labels=a b=c", "--data-dir", running}, `"a b=c"`},
		"bad taint":               {[]string{"nodes", "add", "--taints=k=v", "--data-dir", running}, "NoExecute"},
		"bad effect":              {[]string{"nodes", "add", "--taints=k=v:Never", "--data-dir", running}, "NoExecute"},
		"bad pool":                {[]string{"nodes", "add", "--pool=a/b", "--data-dir", running}, `--pool "a/b"`},
		"bad prefix":              {[]string{"nodes", "add", "--name-prefix=Gpu", "--data-dir", running}, `--name-prefix "Gpu"`},
		"unknown resource name":   {[]string{"nodes", "add", "--allocatable=gpu=1", "--data-dir", running}, `gpu`},
		"no such node":            {[]string{"nodes", "not-ready", "missing", "--data-dir", running}, `no node "missing"`},
		"node without a name":     {[]string{"nodes", "ready", "--data-dir", running}, "requires NAME"},
		"no such component":       {[]string{"component", "kill", "kubelet", "--data-dir", running}, `no component is named "kubelet": want one of etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubelets`},
		"odd component":           {[]string{"component", "kill", "a/../b?", "--data-dir", running}, `no component is named`},
		"start what runs":         {[]string{"component", "start", "etcd", "--data-dir", running}, "etcd is running"},
		"resume what runs":        {[]string{"component", "resume", "etcd", "--data-dir", running}, "etcd is running"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) { wantError(t, command(t, tc.args...), tc.want) })
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "precious" {
		t.Errorf("the foreign file: %q, %v", data, err)
	}
	for _, dir := range []string{empty, foreign} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if filepath.Join(dir, e.Name()) != file {
				t.Errorf("a file was left in %s: %s", dir, e.Name())
			}
		}
	}
}

func TestVersion(t *testing.T) {
	if r := command(t, "--version"); r.code != 0 || !regexp.MustCompile(`^sandbox \S+, Kubernetes v1\.\d+\.\d+\n$`).MatchString(r.stdout) {
		t.Errorf("%+v", r)
	}
}

func TestHelp(t *testing.T) {
	for _, args := range [][]string{
		{}, {"--help"}, {"up", "--help"}, {"down", "-h"}, {"status", "-h"}, {"kubeconfig", "-h"}, {"nodes", "add", "-h"},
		{"nodes"}, {"nodes", "ready", "-h"}, {"snapshot"}, {"snapshot", "save", "-h"}, {"component", "pause", "-h"}, {"run", "-h"}, {"nodes", "load-image", "-h"}, {"proxy", "-h"},
	} {
		r := command(t, args...)
		if r.code != 0 || !strings.Contains(r.stdout, "Usage:") || r.stderr != "" {
			t.Errorf("sandbox %s: %+v", strings.Join(args, " "), r)
		}
	}
}

// TestCommands checks that the list of top-level commands stays short enough to learn. New commands
// should become subcommands.
func TestCommands(t *testing.T) {
	_, list, _ := strings.Cut(command(t, "--help").stdout, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var names []string
	for _, m := range regexp.MustCompile(`(?m)^  (\S+)`).FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	want := "component demo down explore fuzz help kubeconfig kubectl nodes proxy replay run snapshot status up"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("the commands are\n%s, want\n%s", got, want)
	}
}
