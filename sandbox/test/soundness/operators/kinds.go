// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

// readyFirst returns a reconciler that calls the function "do" and then reports the Thing as ready.
// The buggy variant reports the Thing as ready before it calls the function.
func readyFirst(do func(context.Context, *operator, *Thing) error) func(context.Context, *operator, *Thing) error {
	return func(ctx context.Context, o *operator, t *Thing) error {
		if t.Status.Ready {
			return nil
		}
		steps := []func(context.Context, *operator, *Thing) error{do, func(ctx context.Context, o *operator, t *Thing) error { return o.ready(ctx, t) }}
		if o.wrong {
			steps[0], steps[1] = steps[1], steps[0]
		}
		if err := steps[0](ctx, o, t); err != nil {
			return err
		}
		return steps[1](ctx, o, t)
	}
}

// makeObject returns a function that creates the object in the given manifest with the Thing as
// owner.
func makeObject(resource schema.GroupVersionResource, manifest string) func(context.Context, *operator, *Thing) error {
	return func(ctx context.Context, o *operator, t *Thing) error {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
			return err
		}
		object.SetName(t.Name)
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(t, kind)})
		client, err := dynamic.NewForConfig(o.config)
		if err != nil {
			return err
		}
		if _, err = client.Resource(resource).Namespace(t.Namespace).Create(ctx, object, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
}

var (
	makeSlice = makeObject(schema.GroupVersionResource{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"},
		"{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: [{addresses: [10.1.2.3]}]}")
	makePart = makeObject(schema.GroupVersionResource{Group: "parts.example.com", Version: "v1", Resource: "parts"},
		"{apiVersion: parts.example.com/v1, kind: Part, spec: {of: thing}}")
)

// fence sets a condition that the kubelet does not manage, in the status of a Thing's pod.
func fence(ctx context.Context, o *operator, t *Thing) error {
	_, err := o.client.CoreV1().Pods(t.Namespace).Patch(ctx, t.Name, types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"example.com/Fenced","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	return err
}

// markNode sets a condition that the kubelet does not manage, in the status of a node.
func markNode(ctx context.Context, o *operator, _ *Thing) error {
	nodes, err := o.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil || len(nodes.Items) == 0 {
		return err
	}
	_, err = o.client.CoreV1().Nodes().Patch(ctx, nodes.Items[0].Name, types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"example.com/DiskChecked","status":"True"}]}}`), metav1.PatchOptions{}, "status")
	return err
}

// observedBehind keeps a Thing's ConfigMap up to date and reports the observed generation. The
// buggy variant does not retry a failed status update after an edit.
func observedBehind(ctx context.Context, o *operator, t *Thing) error {
	if o.given[t.UID] {
		return nil
	}
	if err := o.keep(ctx, child(t, t.Name, data(t))); err != nil {
		return err
	}
	err := o.ready(ctx, t)
	if o.wrong && err != nil && t.Generation > 1 {
		o.given[t.UID] = true
		return nil
	}
	return err
}

// readyEarly keeps a Thing's ConfigMap up to date. The buggy variant reports the Thing as ready
// even if the write failed. It does retry the write, so the status is correct once the operator is
// idle.
func readyEarly(ctx context.Context, o *operator, t *Thing) error {
	err := o.keep(ctx, child(t, t.Name, data(t)))
	if err != nil && !o.wrong {
		return err
	}
	if told := o.ready(ctx, t); told != nil {
		return told
	}
	return err
}

// eitherEnd writes a value that it chooses in each run. The buggy variant alternates between two
// values, which simulates a race condition. The correct variant chooses a random value in every
// run, which is legitimate.
func eitherEnd(ctx context.Context, o *operator, t *Thing) error {
	chosen := rand.String(20)
	if o.wrong {
		chosen = fmt.Sprint(2 + o.number()%2)
	}
	_, err := o.client.CoreV1().ConfigMaps(t.Namespace).Create(ctx, child(t, t.Name, map[string]string{"replicas": chosen}), metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	return o.ready(ctx, t)
}

// number returns the number of the run, from 1 on, according to the file that --runs names. Each run
// has a kubeconfig of its own.
func (o *operator) number() int {
	text, _ := os.ReadFile(o.runs)
	return 1 + slices.Index(strings.Split(string(text), "\n"), os.Getenv("KUBECONFIG"))
}

// started records the run in the file that --runs names, at the operator's first start in it.
func (o *operator) started() error {
	if o.runs == "" || o.number() > 0 {
		return nil
	}
	file, err := os.OpenFile(o.runs, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	fmt.Fprintln(file, os.Getenv("KUBECONFIG"))
	return file.Close()
}

// secondRun handles a Thing like the function observedBehind. The buggy variant prints a data race,
// but only in the second run without faults.
func secondRun(ctx context.Context, o *operator, t *Thing) error {
	switch {
	case o.wrong && o.number() == 2:
		fmt.Fprintln(os.Stderr, "WARNING: DATA RACE")
	default:
		fmt.Fprintln(os.Stderr, `level=INFO msg="no panic: no data race, no fatal error: all is well"`)
	}
	return observedBehind(ctx, &operator{client: o.client, things: o.things}, t)
}

// heartbeat keeps a Thing's ConfigMap up to date, and writes the unchanged ConfigMap every two
// seconds. The buggy variant gives up on the Thing after a failed write.
func heartbeat(ctx context.Context, o *operator, t *Thing) error {
	return o.beside(ctx, t, func() error {
		maps := o.client.CoreV1().ConfigMaps(t.Namespace)
		now, err := maps.Get(ctx, t.Name, metav1.GetOptions{})
		if err == nil {
			_, err = maps.Update(ctx, now, metav1.UpdateOptions{})
		}
		return err
	})
}

// toggles keeps a Thing's ConfigMap up to date, and changes a status field every two seconds. The
// buggy variant gives up on the Thing after a failed write of the ConfigMap.
func toggles(ctx context.Context, o *operator, t *Thing) error {
	return o.beside(ctx, t, func() error {
		now, err := o.live(ctx, t)
		if err != nil {
			return err
		}
		status := now.Status
		if status.Problem = "tick"; now.Status.Problem == "tick" {
			status.Problem = "tock"
		}
		return o.report(ctx, now, status)
	})
}

// beside keeps a Thing's ConfigMap up to date, and calls the function "beat" every two seconds in
// the background.
func (o *operator) beside(ctx context.Context, t *Thing, beat func() error) error {
	if !o.known[t.UID] {
		o.known[t.UID] = true
		go func() {
			for range time.Tick(2 * time.Second) {
				if err := beat(); apierrors.IsNotFound(err) {
					return
				}
			}
		}()
	}
	if o.given[t.UID] {
		return nil
	}
	err := o.keep(ctx, child(t, t.Name, data(t)))
	o.given[t.UID] = o.wrong && err != nil
	return err
}

// copiesAnnotations copies a Thing's annotations to its ConfigMap. The buggy variant stops updating
// the ConfigMap after a conflict with another client.
func copiesAnnotations(ctx context.Context, o *operator, t *Thing) error {
	want := child(t, t.Name, data(t))
	want.Annotations = map[string]string{}
	for name, value := range t.Annotations {
		if !strings.HasPrefix(name, "kubectl.kubernetes.io/") {
			want.Annotations[name] = value
		}
	}
	maps := o.client.CoreV1().ConfigMaps(t.Namespace)
	now, err := maps.Get(ctx, t.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	if err != nil || o.known[t.UID] {
		return err
	}
	if same(now, want) {
		return nil
	}
	now.Data = want.Data
	for name, value := range want.Annotations {
		metav1.SetMetaDataAnnotation(&now.ObjectMeta, name, value)
	}
	_, err = maps.Update(ctx, now, metav1.UpdateOptions{})
	o.known[t.UID] = o.wrong && apierrors.IsConflict(err)
	return err
}

// same reports whether a ConfigMap already has the desired annotations and data.
func same(now, want *corev1.ConfigMap) bool {
	for name, value := range want.Annotations {
		if now.Annotations[name] != value {
			return false
		}
	}
	one, _ := json.Marshal(now.Data)
	two, _ := json.Marshal(want.Data)
	return bytes.Equal(one, two)
}

// deletesAlways tries to delete a nonexistent object in every reconcile. The buggy variant
// permanently gives up on the Thing after any error other than NotFound.
func deletesAlways(ctx context.Context, o *operator, t *Thing) error {
	if o.given[t.UID] {
		return nil
	}
	err := o.client.CoreV1().ConfigMaps(t.Namespace).Delete(ctx, t.Name+"-old", metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		o.given[t.UID] = o.wrong
		return err
	}
	if err := o.keep(ctx, child(t, t.Name, data(t))); err != nil {
		return err
	}
	return o.ready(ctx, t)
}
