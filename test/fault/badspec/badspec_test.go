// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package badspec edits NodePools and ScheduledRestarts in every wrong and hostile
// way that package mutate derives from their schemas. Either the API server refuses
// the edit and nothing changes, or it accepts the edit, and then a valid spec alone
// brings the object back to health, even if the edit came while work was in progress.
// The edits of each kind are counted.
//
// By default every edit is sent, and a sample of those that are accepted is played
// through. FAULTS=all plays all of them, on idle objects and on busy ones.
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
	// slice: by default one in this number of accepted edits is played.
	slice = 16
	// parallel is the number of concurrent edits.
	parallel = 8
)

// kind is what is edited.
type kind struct {
	// crd is the file with its schema.
	crd string
	// examples are valid specs that together have every field. The first one is used
	// to heal an object.
	examples []map[string]any
	// standing is an idle object with the first example.
	standing client.Object
	// args are arguments of the manager.
	args []string
	// play edits an object of its own, and heals it.
	play func(testing.TB, edit)
}

// edit is an edit that the API server accepts.
type edit struct {
	mutate.Mutation
	// name is the name of all objects that belong to the edit.
	name string
	// underWay: the edit comes while work is in progress.
	underWay bool
}

// run sends all mutations of a kind, and plays those that are accepted.
func (k kind) run(t *testing.T) {
	t.Helper()
	manager := cluster.StartManager(t, k.args...)
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

// refusal reports whether an error is the API server's answer that a spec is invalid.
// Errors because the API server is busy, another client has changed the object, or the
// object is gone do not say anything about the spec.
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

// answerTo repeats a request until the API server has accepted or refused it.
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

// accepts reports whether the API server accepts a mutation. If it does not, its error
// must say why, and nothing may have changed.
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
		t.Errorf("%s: refused in a dry run, but accepted for real", m)
	case len(err.Error()) < 10:
		t.Errorf("%s: refused with an unhelpful message: %v", m, err)
	}
	cluster.Refresh(t, k.standing)
	if k.standing.GetGeneration() != before {
		t.Errorf("%s: refused, but the spec has changed", m)
	}
	return false
}

// change applies a patch to an object.
func change(t testing.TB, o client.Object, patch []byte) {
	t.Helper()
	if err := cluster.Patch(t.Context(), o, client.RawPatch(types.JSONPatchType, patch)); err != nil {
		t.Fatalf("%s: %v", patch, err)
	}
}

// create creates an object with a spec.
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
