// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseWorkload(t *testing.T) {
	for _, tc := range []struct{ name, text, problem string }{
		{name: "a workload", text: "steps: [{apply: a.yaml}, {wait: {resource: pods, name: a, for: object.ready}}, {run: kubectl get pods}]"},
		{name: "waiting for an end", text: "steps: [{wait: {resource: pods, name: a, for: deleted}}]"},
		{name: "nothing", text: "", problem: "steps: there are none"},
		{name: "no steps", text: "nodes: 3", problem: "steps: there are none"},
		{name: "an unknown field", text: "steps: [{aply: a.yaml}]", problem: `unknown field "aply"`},
		{name: "two things in a step", text: "steps: [{apply: a.yaml, run: ls}]", problem: "steps[0]: has 2 of apply, patch, delete, wait and run: want exactly one"},
		{name: "a deletion that is waited for", text: "steps: [{delete: {resource: pods, name: a}, wait: {resource: pods, name: a, for: deleted}}]"},
		{name: "something else that is waited for badly", text: "steps: [{run: ls, wait: {resource: pods, name: a, for: '1 + 1'}}]", problem: "steps[0]: wait: for: "},
		{name: "a field of nothing", text: "steps: [{run: ls}]\nunjudged: [{path: status}]", problem: "unjudged[0]: resource and path are required"},
		{name: "an empty step", text: "steps: [{name: a}]", problem: "steps[0]: has 0 of"},
		{name: "a deletion of nothing", text: "steps: [{delete: {resource: pods}}]", problem: "steps[0]: delete: resource and name are required"},
		{name: "a patch that changes nothing", text: "steps: [{patch: {resource: pods, name: a}}]", problem: "steps[0]: patch: merge is required"},
		{name: "a condition that is none", text: "steps: [{wait: {resource: pods, name: a, for: 'object.'}}]", problem: "is not an expression in CEL"},
		{name: "a condition that is a number", text: "steps: [{wait: {resource: pods, name: a, for: '1 + 1'}}]", problem: "is not true or false, but a int"},
		{name: "a rule without a name", text: "steps: [{run: ls}]\ninvariants: [{resource: pods, rule: 'true'}]", problem: "invariants[0]: name and resource are required"},
		{name: "too few nodes", text: "nodes: -1\nsteps: [{run: ls}]", problem: "nodes: -1: there cannot be fewer than 0"},
		{name: "without a controller", text: "withoutControllers: [replicaset-controller]\nsteps: [{run: ls}]"},
		{name: "without a controller that is none", text: "withoutControllers: [boats]\nsteps: [{run: ls}]", problem: `withoutControllers[0]: there is no controller "boats": want a name`},
		{name: "a time that is over", text: "steps: [{wait: {resource: pods, namespace: a, name: b, for: 'true', timeout: -3s}}]", problem: "steps[0]: wait: timeout: -3s: it must be more than 0"},
		{name: "an account", text: "serviceAccount: shop/operator\nsteps: [{run: ls}]"},
		{name: "all rights", text: "serviceAccount: none\nsteps: [{run: ls}]"},
		{name: "an account without a namespace", text: "serviceAccount: operator\nsteps: [{run: ls}]", problem: `serviceAccount: "operator": want NAMESPACE/NAME, or none for`},
		{name: "applications", text: "applications: [{pods: app=a, port: 1, http: [{path: /}]}, {pods: 'app in (a, b)', port: 1, servicePort: 2, program: ./a}]\nsteps: [{run: ls}]"},
		{name: "an application of no pods", text: "applications: [{port: 1, program: ./a}]\nsteps: [{run: ls}]", problem: "applications[0]: pods: want a label selector, such as app=web"},
		{name: "an application of pods that are not selected", text: "applications: [{pods: 'app=a,,', port: 1, program: ./a}]\nsteps: [{run: ls}]", problem: "applications[0]: pods: "},
		{name: "an application without a port", text: "applications: [{pods: app=a, program: ./a}]\nsteps: [{run: ls}]", problem: "applications[0]: port: 0: want a number from 1 to 65535"},
		{name: "an application with a port that is none", text: "applications: [{pods: app=a, port: 1, servicePort: 70000, program: ./a}]\nsteps: [{run: ls}]", problem: "applications[0]: servicePort: 70000: want"},
		{name: "an application with two answers", text: "applications: [{pods: app=a, port: 1, program: ./a, http: [{path: /}]}]\nsteps: [{run: ls}]", problem: "applications[0]: want exactly one of program and http"},
		{name: "an application that does not answer", text: "applications: [{pods: app=a, port: 1}]\nsteps: [{run: ls}]", problem: "applications[0]: want exactly one of program and http"},
		{name: "an answer to no path", text: "applications: [{pods: app=a, port: 1, http: [{path: a}]}]\nsteps: [{run: ls}]", problem: `applications[0]: http[0]: path: "a": want a path such as /healthz, without a query`},
		{name: "an answer to a query", text: "applications: [{pods: app=a, port: 1, http: [{path: '/a?b'}]}]\nsteps: [{run: ls}]", problem: `applications[0]: http[0]: path: "/a?b": want a path`},
		{name: "an answer to no method", text: "applications: [{pods: app=a, port: 1, http: [{path: /, method: get}]}]\nsteps: [{run: ls}]", problem: `applications[0]: http[0]: method: "get": want one such as POST`},
		{name: "an answer that is never given", text: "applications: [{pods: app=a, port: 1, http: [{path: /}, {path: /a}, {path: /, method: GET}]}]\nsteps: [{run: ls}]", problem: "applications[0]: http[2]: an earlier answer is for the same requests"},
		{name: "an application that is never reached", text: "applications: [{pods: 'a=1,b=2', port: 1, program: ./a}, {pods: 'b=2,a=1', port: 1, program: ./b}]\nsteps: [{run: ls}]", problem: "applications[1]: an earlier application answers for the same pods and port"},
		{name: "applications of other ports and methods", text: "applications: [{pods: a=1, port: 1, http: [{path: /, method: GET}, {path: /}]}, {pods: a=1, port: 2, program: ./b}]\nsteps: [{run: ls}]"},
		{name: "an answer that is none", text: "applications: [{pods: app=a, port: 1, http: [{path: /, status: 100}]}]\nsteps: [{run: ls}]", problem: "applications[0]: http[0]: status: 100: want one from 200 to 599"},
		{name: "several mistakes", text: "nodes: -1\nsteps: []", problem: "steps: there are none: a workload needs at least one, such as {apply: FILE}\nnodes: -1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse([]byte(tc.text))
			switch {
			case tc.problem == "" && err != nil:
				t.Error(err)
			case tc.problem != "" && (err == nil || !strings.Contains(err.Error(), tc.problem)):
				t.Errorf("got %v, want %q", err, tc.problem)
			}
		})
	}
}

func FuzzParseWorkload(f *testing.F) {
	f.Add("steps: [{apply: a.yaml}]")
	f.Add("steps: [{wait: {resource: pods, name: a, for: 'has(object.status)'}}]\ninvariants: [{name: a, resource: pods, rule: 'old == null'}]")
	f.Fuzz(func(t *testing.T, text string) {
		w, err := Parse([]byte(text))
		if err == nil && (len(w.Steps) == 0 || *w.Nodes < 0) {
			t.Errorf("%q was accepted", text)
		}
	})
}

func TestReadWorkload(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("web.yaml", "kind: Deployment\nmetadata: {name: web}\n---\nkind: Service\nmetadata: {name: web}\n")
	write("crd", "")
	w, err := Read(write("workload.yaml", "install: [crd]\nsteps: [{apply: web.yaml}, {apply: \"kind: Pod\\nmetadata: {name: a}\"}]"))
	if err != nil {
		t.Fatal(err)
	}
	if w.Install[0] != filepath.Join(dir, "crd") {
		t.Errorf("what is installed is %q", w.Install[0])
	}
	if !strings.HasPrefix(w.Steps[0].Apply, "kind: Deployment") || w.Steps[0].Name != "apply web.yaml" || w.Steps[1].Name != "apply Pod a" {
		t.Errorf("the steps are %+v", w.Steps)
	}
	t.Setenv("KINDS", filepath.Join(dir, "crd"))
	if w, err = Read(write("workload.yaml", "install: [$KINDS]\nsteps: [{run: ls}]")); err != nil || w.Install[0] != filepath.Join(dir, "crd") {
		t.Errorf("with a variable: %+v, %v", w, err)
	}
	setting := write("setting.yaml", "install: [crd]")
	if w, err = ReadForFuzz(setting); err != nil || w.Install[0] != filepath.Join(dir, "crd") {
		t.Errorf("without steps, for fuzz: %+v, %v", w, err)
	}
	if _, err = Read(setting); err == nil {
		t.Error("a workload without steps was accepted for explore")
	}
	if _, err = ReadForFuzz(write("setting.yaml", "nodes: -1")); err == nil || !strings.Contains(err.Error(), "nodes: -1") {
		t.Errorf("a mistake in a workload for fuzz: %v", err)
	}
	for text, problem := range map[string]string{
		"install: [missing]\nsteps: [{run: ls}]":      "install[0]: ",
		"install: [$NONE_SUCH/a]\nsteps: [{run: ls}]": "install[0]: $NONE_SUCH/a: the environment has no NONE_SUCH",
		"steps: [{apply: missing.yaml}]":              "steps[0]: apply: ",
		"steps: [{apply: \"a: [\"}]":                  "steps[0]: apply: it is not a manifest",
	} {
		if _, err := Read(write("workload.yaml", text)); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: got %v, want %q", text, err, problem)
		}
	}
}

func TestInclude(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	write("crd.yaml", "")
	write("common/rights.yaml", "")
	write("common/all.yaml", "programs: [sleep 9]\ninstall: [../crd.yaml, rights.yaml]\nserviceAccount: a/b\nnodes: 7\ninvariants: [{name: a, resource: pods, rule: 'true'}]\nunjudged: [{resource: pods, path: spec}]")
	write("more.yaml", "serviceAccount: c/d")
	w, err := Read(write("workload.yaml", "include: [common/all.yaml, more.yaml]\nnodes: 1\nsteps: [{run: ls}]\ninvariants: [{name: b, resource: pods, rule: 'true'}]"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{filepath.Join(dir, "crd.yaml"), filepath.Join(dir, "common/rights.yaml")}; !slices.Equal(w.Install, want) {
		t.Errorf("%q is installed, want %q", w.Install, want)
	}
	if *w.Nodes != 1 || w.ServiceAccount != "c/d" || len(w.Unjudged) != 1 || len(w.Programs) != 1 || len(w.Invariants) != 2 || w.Invariants[0].Name != "a" || w.Invariants[0].Condition == nil {
		t.Errorf("got %+v", w)
	}
	for text, problem := range map[string]string{
		"nope: 1":                 `unknown field "nope"`,
		"steps: [{run: ls}]":      "it has steps or an include",
		"install: [missing]":      "more.yaml: install[0]: ",
		"invariants: [{name: a}]": "more.yaml: invariants[0]: name and resource",
	} {
		write("more.yaml", text)
		if _, err := Read(filepath.Join(dir, "workload.yaml")); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%q: got %v, want %q", text, err, problem)
		}
	}
}
