// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package fuzz

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/faults"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/judge"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/lab"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/testbed"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
	"tidekeeper.dev/tidekeeper/sandbox/internal/fuzz/edits"
	"tidekeeper.dev/tidekeeper/sandbox/internal/results"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// TestInputs checks that all edits are repeated after a change of the sample, of the objects that it
// needs, or of any flag that affects the verdict.
func TestInputs(t *testing.T) {
	hashed := func(change func(*Fuzzer)) map[string]string {
		t.Helper()
		f := &Fuzzer{Testbeds: &testbed.Maker{Setup: lab.Setup{Workload: &workload.Workload{}, Command: []string{"true"}}}, Sample: map[string]any{"kind": "App"}}
		change(f)
		about, err := results.NewAbout(f.inputs())
		if err != nil {
			t.Fatal(err)
		}
		return about.Contents
	}
	before := hashed(func(*Fuzzer) {})
	for name, change := range map[string]func(*Fuzzer){
		"--quiet": func(f *Fuzzer) { f.Limits.Quiet = 1 }, "--patience": func(f *Fuzzer) { f.Limits.Patience = 1 },
		"--ignore": func(f *Fuzzer) { f.Ignore = []string{"jobs.batch"} }, "--busy": func(f *Fuzzer) { f.Busy = true },
		"the sample": func(f *Fuzzer) { f.Sample["kind"] = "Shop" }, "what it needs": func(f *Fuzzer) { f.Others = "kind: Secret" },
		"--nodes": func(f *Fuzzer) { f.Testbeds.Workload.Nodes = new(1) },
	} {
		if maps.Equal(hashed(change), before) {
			t.Errorf("%s does not matter", name)
		}
	}
	if !maps.Equal(hashed(func(*Fuzzer) {}), before) {
		t.Error("the same inputs matter")
	}
}

func TestParseSample(t *testing.T) {
	sample, others, err := parseSample([]byte("# a comment\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n---\napiVersion: example.com/v1\nkind: App\nmetadata: {name: a}\nspec: {count: 1}\n"))
	if err != nil || sample["kind"] != "App" || !strings.Contains(others, "kind: Secret") || strings.Contains(others, "App") {
		t.Fatalf("%v, others %q, %v", sample, others, err)
	}
	if n, _, _ := unstructured.NestedInt64(sample, "spec", "count"); n != 1 {
		t.Errorf("whole numbers do not stay whole: %v", sample)
	}
	for text, says := range map[string]string{
		"":                        "it has no object",
		"# nothing":               "it has no object",
		"[1]":                     "apiVersion and kind are missing",
		"kind: App":               "apiVersion and kind are missing",
		"a: [":                    "it is not YAML",
		"apiVersion: v1\nkind: A": "the object that is to be edited has no metadata.name",
	} {
		if _, _, err := parseSample([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}

func TestChoose(t *testing.T) {
	crd := apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "example.com", Scope: apiextensionsv1.NamespaceScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "App", Plural: "apps"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{
			{Name: "v1", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &edits.Schema{
				Properties: map[string]edits.Schema{"spec": {}, "status": {}},
			}}},
			{Name: "v2", Served: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &edits.Schema{
				Properties: map[string]edits.Schema{"kind": {}, "status": {}},
			}}},
			{Name: "v3"},
		},
	}}
	crd.Name = "apps.example.com"
	for _, tc := range []struct{ version, kind, says string }{
		{"v1", "App", ""},
		{"v2", "App", "the CustomResourceDefinition apps.example.com has no schema for the version v2"},
		{"v3", "App", "has no schema for the version v3"},
		{"v4", "App", "that of App of example.com/v4: there are App of example.com/v1, App of example.com/v2, App of example.com/v3"},
		{"v1", "Other", "that of Other of example.com/v1: there are"},
	} {
		got, err := choose([]apiextensionsv1.CustomResourceDefinition{crd}, schema.GroupVersionKind{Group: "example.com", Version: tc.version, Kind: tc.kind})
		if tc.says == "" {
			if err != nil || got.resource.Resource != "apps" || !got.namespaced {
				t.Errorf("%+v, %v", got, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s %s: %v, want %s", tc.version, tc.kind, err, tc.says)
		}
	}
	if _, err := choose(nil, schema.GroupVersionKind{Kind: "App"}); err == nil || !strings.Contains(err.Error(), "there is none") {
		t.Errorf("without a definition: %v", err)
	}
}

func TestFindingIsReadAsWritten(t *testing.T) {
	f := &Finding{
		Evidence: results.Evidence{Command: []string{"./op"}, Timeline: []results.Moment{{Seconds: 1, Lane: "kit", Text: "x"}}}, Install: []string{"/crds"}, Nodes: 3, HostNetwork: true, ServiceAccount: "shop/operator",
		Programs: []string{"./bank"}, Applications: []workload.Application{{Pods: "app=bank", Port: 80, HTTP: []workload.Answer{{Path: "/"}}}}, WithoutControllers: []string{"job-controller"}, Object: object{"kind": "App", "spec": map[string]any{"n": int64(1)}},
		Edits:   []edits.Edit{{Field: "spec.n", Class: edits.Beyond, What: "the most", Path: edits.Path{"spec", "n"}, Value: int64(9223372036854775807)}},
		Outcome: accepted, Problem: Problem{Oracle: NotHealed, When: "after", Lines: []string{"a: b"}},
	}
	dir := t.TempDir()
	book, err := Tool.Open(dir, results.About{})
	if err != nil {
		t.Fatal(err)
	}
	defer book.Close()
	if err := book.Found(f); err != nil {
		t.Fatal(err)
	}
	saved := filepath.Join(dir, results.File(f))
	read, err := Tool.ReadFinding(saved)
	if err != nil || !reflect.DeepEqual(read, f) || !IsFinding(saved) {
		t.Errorf("read as %+v, %v", read, err)
	}
	w := read.Workload()
	if err := w.Check(); err != nil || w.Applications[0].Selector == nil || !slices.Equal(w.Programs, f.Programs) || !slices.Equal(w.WithoutControllers, f.WithoutControllers) {
		t.Errorf("it is played again with %+v, %v", w, err)
	}
	if !w.HostNetwork || w.ServiceAccount != "shop/operator" || *w.Nodes != 3 || !slices.Equal(w.Install, f.Install) {
		t.Errorf("it is played again with %+v", w)
	}
	for _, text := range []string{"", "a: b", "edits: []", "command: [a]\nobject: {a: b}", "edits: 7", "command: [a]\nobject: {a: b}\nedits: [{path: 'a..b', value: 1}]", "command: [a]\nnodes: -1\nobject: {a: b}\nedits: [{path: a, value: 1}]"} {
		file := filepath.Join(dir, "other.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Tool.ReadFinding(file); err == nil || !strings.Contains(err.Error(), "other.yaml is not a finding of sandbox fuzz: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestIgnoredFields checks that the --ignore flag recommended to users makes fuzz ignore a field
// when it compares states and when it waits for a quiet cluster.
func TestIgnoredFields(t *testing.T) {
	advised := strings.Trim(strings.TrimPrefix(ignoreFlag("shops.example.com", "status.count"), "--ignore "), "'")
	f := &Fuzzer{Ignore: []string{"jobs.batch", advised}}
	if got, want := f.ignoredFields(), []workload.Unjudged{{Resource: "shops.example.com", Path: "status.count"}}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := NewMask(f.Ignore).Compare(state.State{"shops.example.com default/a": {{"status.count": "1"}}}, state.State{"shops.example.com default/a": {{"status.count": "2"}}}); len(got) > 0 {
		t.Errorf("what is ignored is judged: %v", got)
	}
}

// TestShards checks that each edit belongs to exactly one shard, regardless of the other edits.
func TestShards(t *testing.T) {
	const shards = 3
	var all []edits.Edit
	for i := range 60 {
		all = append(all, edits.Edit{Field: "spec.n", What: fmt.Sprint("value ", i)})
	}
	part := map[string]int{}
	for shard := 1; shard <= shards; shard++ {
		for _, one := range chosen(all[1:], Plan{Plan: results.Plan{Shard: shard, Shards: shards}}) {
			if before, twice := part[one.name()]; twice {
				t.Errorf("%s is in the parts %d and %d", one.name(), before, shard)
			}
			part[one.name()] = shard
		}
	}
	if len(part) != len(all)-1 {
		t.Errorf("%d of %d edits are in a part", len(part), len(all)-1)
	}
	for shard := 1; shard <= shards; shard++ {
		mine := chosen(all, Plan{Plan: results.Plan{Shard: shard, Shards: shards}})
		if len(mine) < 5 {
			t.Errorf("part %d has only %d of %d edits", shard, len(mine), len(all))
		}
		for _, one := range mine {
			if before, was := part[one.name()]; was && before != shard {
				t.Errorf("%s is in part %d, and with one more before it in part %d", one.name(), before, shard)
			}
		}
	}
}

// TestEarlierFindingsComeFirst checks that trials with findings from earlier versions of the inputs
// come first, and run only once.
func TestEarlierFindingsComeFirst(t *testing.T) {
	one, two := edits.Edit{Field: "spec.n", What: "one"}, edits.Edit{Field: "spec.n", What: "two"}
	q := &queue{book: &results.Book[*Finding]{Result: &results.Result[*Finding]{}, Again: []*Finding{{Edits: []edits.Edit{two}}, {Edits: []edits.Edit{one, two}}}}, over: t.Context()}
	q.fill(chosen([]edits.Edit{one, two}, Plan{}))
	var names []string
	for next, ok := q.take(); ok; next, ok = q.take() {
		names = append(names, next.name())
	}
	if want := []string{two.String(), one.String() + "; at once " + two.String(), one.String()}; !slices.Equal(names, want) {
		t.Errorf("played are %q, want %q", names, want)
	}
}

// FuzzParseFinding checks that the parser does not panic on any finding file.
func FuzzParseFinding(f *testing.F) {
	f.Add([]byte("command: [a]\nobject: {a: b}\nedits: [{path: 'spec.a[0]', value: [1]}]"))
	f.Add([]byte("edits: [{remove: true}]\nobject: []"))
	f.Fuzz(func(_ *testing.T, text []byte) {
		finding, err := parseFinding(text)
		if err != nil {
			return
		}
		_, _, _ = finding.Kind(), finding.Where(), finding.Title()
		for _, e := range finding.Edits {
			_, _ = e.Apply(finding.Object)
		}
	})
}

// TestSequences checks that sequences combine edits without a problem whose paths do not overlap.
func TestSequences(t *testing.T) {
	q := &queue{book: &results.Book[*Finding]{Result: &results.Result[*Finding]{}}}
	at := func(what string, path ...any) edits.Edit {
		return edits.Edit{Field: edits.Path(path).String(), What: what, Path: path}
	}
	q.survive(at("a", "spec"))
	q.survive(at("b", "spec", "n"))
	q.survive(at("c", "other"))
	if len(q.sequences) > 0 {
		t.Fatalf("too early: %v", q.sequences)
	}
	q.survive(at("d", "third", 0))
	if len(q.sequences) != 1 || q.sequences[0].name() != "spec: a; at once other: c; at once third[0]: d" {
		t.Errorf("%v", q.sequences)
	}
	for range inSequence {
		q.survive(at("e", "spec"))
	}
	if len(q.sequences) != 1 {
		t.Errorf("a sequence of edits of the same: %v", q.sequences)
	}
}

// TestQueueGoesOn checks that a continued run skips judged edits, and compares a new finding with
// the findings of earlier runs.
func TestQueueGoesOn(t *testing.T) {
	one, two := edits.Edit{Field: "spec.a", What: "x"}, edits.Edit{Field: "spec.b", What: "y"}
	three := edits.Edit{Field: "spec.c", What: "z"}
	finding := func(line string, repeated int) *Finding {
		f := &Finding{Edits: []edits.Edit{one}, Problem: Problem{Oracle: NotUndone, Lines: []string{line}}}
		f.Repeated = repeated
		return f
	}
	id := func(e edits.Edit) string { return trial{edits: []edits.Edit{e}}.id() }
	q := &queue{over: t.Context(), book: &results.Book[*Finding]{Result: &results.Result[*Finding]{
		Findings: []*Finding{finding("configmaps default/a: data.b is 1, not 2", 1), finding("configmaps default/a: data.c is 1, not 2", 0)},
		Played:   []results.Played{{ID: id(one)}, {ID: id(three), Error: "etcd crashed"}},
	}}}
	q.fill(chosen([]edits.Edit{one, two, three}, Plan{}))
	next, ok := q.take()
	if !ok || next.name() != "spec.b: y" {
		t.Errorf("%s is played next", next.name())
	}
	if next, ok := q.take(); !ok || next.name() != "spec.c: z" {
		t.Errorf("%s is played then, and not what could not be judged", next.name())
	}
	if next, ok := q.take(); ok {
		t.Errorf("%s is played at last", next.name())
	}
	for line, like := range map[string]string{"configmaps default/a: data.b is 3, not 2": id(one), "configmaps default/a: data.c is 3, not 2": ""} {
		if got := q.book.Like(finding(line, 0)); got != like {
			t.Errorf("%s is like %q, want %q", line, got, like)
		}
	}
}

// TestSecondTime checks that a finding with a fault is confirmed if a second run shows the same
// problem, whether with or without the fault.
func TestSecondTime(t *testing.T) {
	at := func(fault *faults.Fault, oracle judge.Oracle, lines ...string) *Finding {
		return &Finding{Edits: []edits.Edit{{Field: "spec.a", What: "x"}}, Fault: fault, Problem: Problem{Oracle: oracle, Lines: lines}}
	}
	fault := &faults.Fault{Kind: "CrashAfter", Step: 1, Nth: 1, Call: &observe.Call{Verb: "update", Resource: "configmaps"}}
	const line, other = "configmaps default/a: data.b is 1, not 2", "secrets default/a: it is missing"
	for _, tc := range []struct {
		name   string
		again  *Finding
		same   bool
		second string
		fault  *faults.Fault
	}{
		{name: "the same", again: at(fault, judge.OtherState, line), same: true, fault: fault},
		{name: "the same without the fault", again: at(nil, judge.OtherState, line), same: true},
		{name: "something else", again: at(fault, judge.OtherState, other), second: "it was other state: secrets default/a: it is missing", fault: fault},
		{name: "something else without the fault", again: at(nil, judge.OtherState, other), second: "it was other state: secrets default/a: it is missing", fault: fault},
		{name: "another oracle", again: at(fault, NotUndone, line), second: "it was not undone: " + line, fault: fault},
		{name: "the same with another value", again: at(fault, judge.OtherState, "configmaps default/a: data.b is 3, not 2"), same: true, fault: fault},
		{name: "the same after a line by chance", again: at(fault, judge.OtherState, "a by chance is here", line), same: true, fault: fault},
		{name: "what is certain", again: at(nil, judge.Failed, "panic: oh"), same: true},
	} {
		found := at(fault, judge.OtherState, line).secondTime(tc.again)
		if found.Confirmed() != tc.same || found.Second != tc.second || found.Fault != tc.fault {
			t.Errorf("%s: found again: %t, %q, with %v, want %t, %q, with %v", tc.name, found.Confirmed(), found.Second, found.Fault, tc.same, tc.second, tc.fault)
		}
	}
	found := at(nil, NotUndone, "pods a: a time is 1, not 2", line, other).secondTime(at(nil, NotUndone, line, other, "pods b: a time is 1, not 2"))
	if !found.Confirmed() || !slices.Equal(found.Problem.Lines, []string{line, other}) {
		t.Errorf("of lines of which some come by chance, %q are left, want those of both runs", found.Problem.Lines)
	}
	const three = "configmaps default/a: data.b is 3, not 2"
	found = at(fault, judge.OtherState, line).secondTime(at(nil, judge.OtherState, other, three))
	if found.Fault != nil || !slices.Equal(found.Problem.Lines, []string{three}) {
		t.Errorf("without the fault, %q are left, want the values of that run", found.Problem.Lines)
	}
}

// TestQueueGoesOnWithFaults checks that a continued run repeats an edit without a problem to plan
// its trials with faults, unless all of these trials are done.
func TestQueueGoesOnWithFaults(t *testing.T) {
	one := func(field string) trial { return trial{edits: []edits.Edit{{Field: field, What: "x"}}} }
	played := func(field string, came outcome, then ...string) results.Played {
		return results.Played{ID: one(field).id(), Outcome: string(came), Then: then}
	}
	q := &queue{over: t.Context(), plan: Plan{Faults: true}, book: &results.Book[*Finding]{Result: &results.Result[*Finding]{Played: []results.Played{
		played("all", accepted, "1", "2"), {ID: "1"}, {ID: "2"}, played("one", accepted, "1", "3"), played("not asked", accepted), played("refused", denied),
		played("none", accepted, []string{}...), {ID: one("found").id(), Outcome: string(accepted), Found: true},
	}}}}
	q.book.Played[6].Then = []string{}
	var all []trial
	for _, field := range []string{"all", "one", "not asked", "refused", "none", "found", "new"} {
		all = append(all, one(field))
	}
	q.fill(all)
	var left []string
	for _, t := range q.edits {
		left = append(left, t.edits[0].Field)
	}
	if want := []string{"one", "not asked", "new"}; !slices.Equal(left, want) {
		t.Errorf("played are %q, want %q", left, want)
	}
}

func TestFindingWithFault(t *testing.T) {
	const finding = `
command: [./operator]
object: {apiVersion: v1, kind: A, metadata: {name: a}}
edits: [{field: spec.a, class: plausible, what: x, path: spec.a, value: 1}]
fault: {kind: CrashAfter, step: 1, nth: 1, call: {verb: update, resource: configmaps}}
problem: {oracle: other state, lines: [x]}
outcome: with a fault
`
	for _, tc := range []struct{ replace, by, says string }{
		{"x", "x", ""},
		{"kind: CrashAfter", "kind: Freeze", `there is no fault "Freeze" of a write`},
		{"kind: CrashAfter", "kind: Pause", `fuzz does not play the fault "Pause"`},
		{", call: {verb: update, resource: configmaps}", "", "the fault has no call"},
		{"nth: 1", "nth: 0", "they are counted from 1"},
		{"step: 1", "step: 2", "there is only one"},
		{"edits: [", "edits: [{field: spec.b, class: plausible, what: x, path: spec.b, value: 1}, ", "more than one edit"},
	} {
		f, err := parseFinding([]byte(strings.Replace(finding, tc.replace, tc.by, 1)))
		switch {
		case tc.says == "" && (err != nil || f.Where() != "spec.a: x; with CrashAfter of the first update configmaps"):
			t.Errorf("%v %v", f, err)
		case tc.says != "" && (err == nil || !strings.Contains(err.Error(), tc.says)):
			t.Errorf("%s: %v, want %s", tc.by, err, tc.says)
		}
	}
}

func TestReports(t *testing.T) {
	object := func(status map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": status}}
	}
	ready := map[string]any{"type": "Ready", "status": "True", "message": "all is well", "observedGeneration": int64(1)}
	again := map[string]any{"type": "Ready", "status": "True", "message": "all is well again", "observedGeneration": int64(2)}
	not := map[string]any{"type": "Ready", "status": "False"}
	a := reports(object(map[string]any{"phase": "Running", "conditions": []any{ready}}))
	if b := reports(object(map[string]any{"phase": "Running", "conditions": []any{again}})); a != b {
		t.Errorf("%s and %s are the same", a, b)
	}
	for _, other := range []map[string]any{{"phase": "Failed", "conditions": []any{ready}}, {"phase": "Running", "conditions": []any{not}}, {}, {"conditions": "x"}} {
		if b := reports(object(other)); a == b {
			t.Errorf("%s is not what %v reports", b, other)
		}
	}
}
