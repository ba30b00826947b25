// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package judge

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/state"
)

// deployed returns a Deployment with a ReplicaSet and a pod whose names contain `hash`, and a
// ReplicaSet of an earlier template if `earlier` is not empty. `annotations` are set in the
// template.
func deployed(hash, earlier string, replicas int64, annotations map[string]any) []observe.Version {
	owned := func(kind, name string) map[string]any {
		return map[string]any{"namespace": "shop", "labels": map[string]any{"pod-template-hash": hash}, "ownerReferences": []any{map[string]any{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": true}}}
	}
	version := func(resource, name string, metadata, rest map[string]any) observe.Version {
		metadata = maps.Clone(metadata)
		metadata["name"] = name
		object := map[string]any{"metadata": metadata}
		maps.Copy(object, rest)
		return observe.Version{Resource: resource, Object: &unstructured.Unstructured{Object: object}}
	}
	template := map[string]any{"metadata": map[string]any{"annotations": annotations}, "spec": map[string]any{"image": "app:1"}}
	pod := owned("ReplicaSet", "web-"+hash)
	pod["generateName"], pod["annotations"] = "web-"+hash+"-", annotations
	all := []observe.Version{
		version("deployments.apps", "web", map[string]any{"namespace": "shop"}, map[string]any{"spec": map[string]any{"template": template}, "status": map[string]any{"message": "ReplicaSet web-" + hash + " is there"}}),
		version("replicasets.apps", "web-"+hash, owned("Deployment", "web"), map[string]any{"spec": map[string]any{"replicas": replicas, "template": template, "selector": map[string]any{"matchLabels": map[string]any{"pod-template-hash": hash}}}}),
		version("pods", "web-"+hash+"-x1y2z", pod, map[string]any{"spec": map[string]any{"image": "app:1"}}),
		version("controllerrevisions.apps", "set-"+hash, owned("StatefulSet", "set"), nil),
	}
	if earlier != "" {
		all = append(all, version("replicasets.apps", "web-"+earlier, owned("Deployment", "web"), map[string]any{"spec": map[string]any{"replicas": int64(0), "template": template}}),
			version("controllerrevisions.apps", "set-"+earlier, owned("StatefulSet", "set"), nil))
	}
	return all
}

// TestCopiesOfTheAnnotation checks that a new template revision is ignored if the operator has
// copied TouchedAnnotation to the template. The contents and numbers of the template's objects are
// still compared.
func TestCopiesOfTheAnnotation(t *testing.T) {
	stable := map[string]bool{}
	before := deployed("6bc5d9f7c8", "", 2, map[string]any{"team": "a"})
	for i := range before {
		stable[before[i].Key()], stable[before[i].GeneralKey()] = true, true
	}
	names := observe.Names{Stable: stable}
	touched := map[string]any{"team": "a", observe.TouchedAnnotation: "2026-01-02T03:04:05Z"}
	after := deployed("77fd8bd9c5", "6bc5d9f7c8", 2, touched)
	if handedOn(before, nil) || !handedOn(after, nil) {
		t.Errorf("it is handed on: %t before, %t after", handedOn(before, nil), handedOn(after, nil))
	}
	own := []observe.Version{{Resource: "configmaps", Object: &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"namespace": "shop", "name": "a", "annotations": touched}}}}}
	if handedOn(own, map[string]bool{"configmaps shop/a": true}) || !handedOn(own, nil) {
		t.Error("what the kit has annotated itself counts as handed on, or what it has not does not")
	}
	compare := func(got []observe.Version) []string {
		return state.Lines(state.Compare(withoutRevisions(names.State(before, nil)), withoutRevisions(names.State(got, nil)), nil, state.Rules{}))
	}
	if lines := compare(after); len(lines) > 0 {
		t.Errorf("what the kit wrote is judged: %q", lines)
	}
	if lines := compare(deployed("77fd8bd9c5", "6bc5d9f7c8", 3, touched)); len(lines) != 1 {
		t.Errorf("one replica more: %q", lines)
	}
	if lines := compare(append(after, after[2])); len(lines) != 1 {
		t.Errorf("one pod more: %q", lines)
	}
}
