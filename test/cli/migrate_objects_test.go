// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"tidekeeper.dev/tidekeeper/internal/migrate"
	"tidekeeper.dev/tidekeeper/test/framework"
)

// check converts an object of an original project and checks that the API server accepts the
// result. If the conversion leaves parts out, check verifies that the API server rejects the same
// spec as an object of Tidekeeper's kind. The function `as` makes that object; it is nil if there
// is no equivalent.
func check(t *testing.T, what string, kind schema.GroupVersionKind, name string, spec map[string]any, as func(*unstructured.Unstructured)) {
	t.Helper()
	apiVersion, kindName := kind.ToAPIVersionAndKind()
	text, err := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kindName, "metadata": map[string]any{"name": name}, "spec": spec})
	if err != nil {
		t.Fatal(err)
	}
	original := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &original.Object); err != nil {
		t.Fatal(err)
	}
	result := migrate.Convert([]migrate.Object{{Unstructured: original}}, migrate.Options{TimeZone: "UTC"})
	for _, o := range append(items(result.Pools), items(result.Restarts)...) {
		text, err := yaml.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		made := documents(t, string(text))[0]
		if made.GetKind() == "ScheduledRestart" {
			made.SetNamespace("default")
		}
		if err := cluster.Create(t.Context(), made, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
			t.Errorf("%s: %v\n%s", what, err, text)
		}
	}
	leftOut := slices.ContainsFunc(result.Remarks, func(r migrate.Remark) bool { return r.Severity == migrate.LeftOut })
	if !leftOut || as == nil {
		return
	}
	same := original.DeepCopy()
	as(same)
	if err := cluster.Create(t.Context(), same, client.DryRunAll); err == nil {
		t.Errorf("%s: the API server accepts what is left out: %v", what, result.Remarks)
	}
}

func items[T any](list []T) []any {
	var all []any
	for _, item := range list {
		all = append(all, item)
	}
	return all
}

// kubectl runs kubectl as the administrator, and fails the test if it fails.
func kubectl(t *testing.T, stdin string, args ...string) string {
	t.Helper()
	out, err := cluster.Kubectl(stdin, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// apply applies the given manifests, and deletes the objects when the test ends.
func apply(t *testing.T, printed string) {
	t.Helper()
	for _, o := range documents(t, printed) {
		deletedAtTheEnd(t, o)
	}
	kubectl(t, printed, "apply", "-f", "-")
}

// deletedAtTheEnd deletes an object when the test ends, and waits until it is gone. A manager that
// the test started before the call runs until then, and removes the finalizer of a NodePool.
func deletedAtTheEnd(t *testing.T, o client.Object) {
	t.Helper()
	t.Cleanup(func() {
		cluster.Delete(t, o)
		framework.Eventually(t, o.GetName()+" is gone", func() error {
			err := cluster.Get(context.WithoutCancel(t.Context()), client.ObjectKeyFromObject(o), o)
			if err == nil {
				return fmt.Errorf("it has the finalizers %q", o.GetFinalizers())
			}
			return client.IgnoreNotFound(err)
		})
	})
}

// documents parses the YAML documents in the given string.
func documents(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "---\n") {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &o.Object); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		objects = append(objects, o)
	}
	return objects
}

func itemsOf(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var objects []*unstructured.Unstructured
	for _, fields := range list.Items {
		objects = append(objects, &unstructured.Unstructured{Object: fields})
	}
	return objects
}

// statusIs returns nil if the condition Ready of an object has the reason `want`. A namespaced
// object must be in the namespace "old".
func statusIs(t *testing.T, object, want string) error {
	t.Helper()
	got, err := cluster.Kubectl("", "get", object, "-n", "old", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}`)
	if err == nil && got != want {
		err = fmt.Errorf("%s is %q, want %q", object, got, want)
	}
	return err
}

// templatesOf returns the pod templates of a namespace's Deployments, keyed by name. A template
// change would replace the pods.
func templatesOf(t *testing.T, namespace string) map[string]corev1.PodTemplateSpec {
	t.Helper()
	list := &appsv1.DeploymentList{}
	if err := cluster.List(t.Context(), list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	templates := map[string]corev1.PodTemplateSpec{}
	for _, d := range list.Items {
		templates[d.Name] = d.Spec.Template
	}
	return templates
}

// watchTaint watches the nodes that have the given taint. The returned function stops the watch and
// returns the nodes that lacked the taint at some moment.
func watchTaint(t *testing.T, key string) func() []string {
	t.Helper()
	watching, err := client.NewWithWatch(cluster.Config, client.Options{Scheme: cluster.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	list := &corev1.NodeList{}
	with := client.MatchingLabels{"node-role.kubernetes.io/old": ""}
	if err := watching.List(t.Context(), list, with); err != nil {
		t.Fatal(err)
	}
	if len(list.Items) == 0 {
		t.Fatal("there are no nodes to watch")
	}
	events, err := watching.Watch(t.Context(), &corev1.NodeList{}, with, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Stop)
	return func() []string {
		kubectl(t, "", "annotate", "node", "old-1", "end=")
		var lost []string
		for event := range events.ResultChan() {
			node, ok := event.Object.(*corev1.Node)
			if !ok {
				t.Fatalf("the watch ended: %+v", event)
			}
			if !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return taint.Key == key }) {
				lost = append(lost, node.Name)
			}
			if _, end := node.Annotations["end"]; end {
				break
			}
		}
		return lost
	}
}
