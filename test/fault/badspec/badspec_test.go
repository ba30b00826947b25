// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package badspec edits NodePools and ScheduledRestarts in every wrong and
// hostile way that package mutate makes of their schemas. The API server refuses
// the edit and nothing has changed, or it takes it, and then a valid spec brings
// the object back to health with no other help, also if the edit came while work
// was under way. The edits of each kind are counted.
//
// By default every edit is sent, and of those that are accepted a slice is played
// to the end. FAULTS=all plays all of them, at rest and under way.
package badspec

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/test/fault/badspec/mutate"
	"tidekeeper.dev/tidekeeper/test/framework"
)

var cluster framework.Cluster

func TestMain(m *testing.M) { os.Exit(framework.Main(m, &cluster, "--nodes=0")) }

const (
	// slice is one of how many accepted edits is played by default.
	slice = 16
	// parallel is how many edits are made at the same time.
	parallel = 8
)

// kind is what is edited.
type kind struct {
	// crd is the file with its schema.
	crd string
	// examples are valid specs that have every field; the first is what an
	// object is healed with.
	examples []map[string]any
	// standing is an object with the first example that is at rest.
	standing client.Object
	// play has an object of its own edited, and healed.
	play func(testing.TB, edit)
}

// edit is an edit that the API server accepts.
type edit struct {
	mutate.Mutation
	// name of all objects that belong to it.
	name string
	// underWay: it comes while work is under way, and not at rest.
	underWay bool
}

// run sends all mutations of a kind, and plays those that are accepted.
func (k kind) run(t *testing.T) {
	t.Helper()
	manager := cluster.StartManager(t)
	mutations := k.mutations(t)
	var accepted []mutate.Mutation
	for _, m := range mutations {
		if k.accepts(t, m) {
			accepted = append(accepted, m)
		}
	}
	edits := choose(accepted, framework.AllFaults())

	queue := make(chan edit)
	var wait sync.WaitGroup
	var recovered atomic.Int32
	for range parallel {
		wait.Go(func() {
			for e := range queue {
				name := strings.ReplaceAll(e.String(), "/", "|")
				if t.Run(fmt.Sprintf("%s, under way: %t", name, e.underWay), func(t *testing.T) { k.play(t, e) }) {
					recovered.Add(1)
				}
			}
		})
	}
	for _, e := range edits {
		queue <- e
	}
	close(queue)
	wait.Wait()
	manager.AssertSound(t)
	t.Logf("%d fields, %d edits: %d refused, %d accepted; of these %d played, %d recovered",
		mutate.Fields(mutations), len(mutations), len(mutations)-len(accepted), len(accepted), len(edits), recovered.Load())
}

// choose returns the edits to play.
func choose(accepted []mutate.Mutation, whole bool) []edit {
	var edits []edit
	for i, m := range accepted {
		for _, underWay := range []bool{false, true} {
			if whole || i%slice == 0 && underWay == (i/slice%2 == 1) {
				edits = append(edits, edit{Mutation: m, name: fmt.Sprintf("bad-%d-%t", i, underWay), underWay: underWay})
			}
		}
	}
	return edits
}

func (k kind) mutations(t *testing.T) []mutate.Mutation {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(framework.Root(), "config", "crd", "bases", k.crd))
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		t.Fatal(err)
	}
	spec := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	mutations, err := mutate.Mutations(&spec, k.examples...)
	if err != nil {
		t.Fatal(err)
	}
	return mutations
}

// refusal reports whether an error is the API server's answer that a spec is
// wrong. That it is busy, that something else has changed the object or that the
// object is gone says nothing about the spec.
func refusal(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	switch status.Status().Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge:
		return true
	default:
		return false
	}
}

// answerTo does something until the API server has taken or refused it.
func answerTo(t *testing.T, what string, do func() error) (answer error) {
	t.Helper()
	framework.Eventually(t, what+" is answered", func() error {
		if answer = do(); answer != nil && !refusal(answer) {
			return answer
		}
		return nil
	})
	return answer
}

// accepts reports whether the API server accepts a mutation. If not it says why,
// and nothing has changed.
func (k kind) accepts(t *testing.T, m mutate.Mutation) bool {
	t.Helper()
	ctx := t.Context()
	patch := client.RawPatch(types.JSONPatchType, m.Patch(k.standing.GetName()))
	try := k.standing.DeepCopyObject().(client.Object)
	if answerTo(t, m.String(), func() error { return cluster.Patch(ctx, try, patch, client.DryRunAll) }) == nil {
		return true
	}
	before := k.standing.GetGeneration()
	err := answerTo(t, m.String(), func() error { return cluster.Patch(ctx, try, patch) })
	switch {
	case err == nil:
		t.Errorf("%s: refused when tried and accepted when done", m)
	case len(err.Error()) < 10:
		t.Errorf("%s: refused in words that help nobody: %v", m, err)
	}
	cluster.Refresh(t, k.standing)
	if k.standing.GetGeneration() != before {
		t.Errorf("%s: refused, and yet the spec has changed", m)
	}
	return false
}

// change makes the spec of an object that of a patch.
func change(t testing.TB, o client.Object, patch []byte) {
	t.Helper()
	if err := cluster.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
}

// create makes an object with a spec.
func create(t testing.TB, o client.Object, spec map[string]any) {
	t.Helper()
	gvk, err := cluster.GroupVersionKindFor(o)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := yaml.Marshal(map[string]any{
		"apiVersion": gvk.GroupVersion().String(), "kind": gvk.Kind, "spec": spec,
		"metadata": map[string]any{"name": o.GetName(), "namespace": o.GetNamespace()},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(string(manifest), mutate.Placeholder, o.GetName())), o); err != nil {
		t.Fatal(err)
	}
	cluster.Apply(t, o)
}

// eventually waits until the check accepts an object.
func eventually(t testing.TB, o client.Object, what string, check func() error) {
	t.Helper()
	framework.Eventually(t, o.GetName()+" "+what, func() error {
		if err := cluster.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(o), o); err != nil {
			return err
		}
		return check()
	})
}
