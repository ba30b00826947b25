// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Command stall is an operator for the tests of `sandbox fuzz`. For each Stall, it keeps a
// ConfigMap with the Stall's goods, and a second ConfigMap if the spec requests it. It handles any
// spec and reports an impossible spec in a condition, unless a flag selects typical operator
// mistakes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"tidekeeper.dev/tidekeeper/sandbox/test/loop"
)

var mistakes = flag.String("mistakes", "", `mistakes to make, with commas: "panic" with an empty list; "stuck" forever after a wrong interval; `+
	`"leftover" never deletes the second ConfigMap; "loop" with a negative number; "sticky" never changes the message; "hasty" reports before it writes, and then takes it for written; `+
	`"rigid" takes many writes for a new one, and gives up what is edited meanwhile`)

// counts is off by default. With a count in the status, fuzz always waits for its full --patience
// after it has restored an edited Stall, because the count never returns to its old value.
var counts = flag.Bool("counts", false, "count in the status how often it was written")

// late delays the ConfigMap of a process's first Stall for longer than fuzz waits for the operator,
// and half delays most of its content.
var (
	late = flag.Bool("late", false, "write no ConfigMap for the first Stall")
	half = flag.Bool("half", false, "write a ConfigMap without the message for the first Stall")
)

// pause is how long after a new Stall its ConfigMap is written, as by an operator that looks only now
// and then whether something else is ready.
var pause = flag.Duration("pause", 0, "write the ConfigMap of a new Stall only after this time")

// ask is the address of an application without which no ConfigMap is written.
var ask = flag.String("ask", "", "the URL that is asked before a ConfigMap is written; empty: none")

func makes(mistake string) bool { return slices.Contains(strings.Split(*mistakes, ","), mistake) }

var resource = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "stalls"}

func main() {
	flag.Parse()
	fmt.Fprintln(os.Stderr, "stall:", run(context.Background()))
	os.Exit(1)
}

type operator struct {
	stalls dynamic.Interface
	client kubernetes.Interface
	stuck  map[types.UID]bool
	first  types.UID
	// seen maps each Stall to the time at which it was first seen.
	seen map[types.UID]time.Time
}

// run processes Stalls until an error occurs.
func run(ctx context.Context) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	if makes("loop") {
		config.QPS, config.Burst = 30, 30 // 30 requests per second are far above the rate at which fuzz reports a loop.
	}
	if makes("rigid") {
		config.QPS = -1
	}
	o := &operator{stuck: map[types.UID]bool{}, seen: map[types.UID]time.Time{}}
	if o.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if o.stalls, err = dynamic.NewForConfig(config); err != nil {
		return err
	}
	informer := dynamicinformer.NewDynamicSharedInformerFactory(o.stalls, 0).ForResource(resource)
	return loop.Run(ctx, informer.Informer(), func(name cache.ObjectName) error {
		object, err := informer.Lister().ByNamespace(name.Namespace).Get(name.Name)
		if err == nil {
			err = o.keep(ctx, object.(*unstructured.Unstructured))
		}
		if apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// spec holds the fields of a Stall's spec.
type spec struct {
	Message  string `json:"message"`
	Interval string `json:"interval"`
	Replicas int64  `json:"replicas"`
	Items    []any  `json:"items"`
	Extra    bool   `json:"extra"`
}

func (o *operator) keep(ctx context.Context, stall *unstructured.Unstructured) error {
	var s struct{ Spec spec }
	text, err := json.Marshal(stall.Object)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if makes("panic") {
		_ = s.Spec.Items[0]
	}
	if o.stuck[stall.GetUID()] {
		return o.report(ctx, stall, "stuck")
	}
	if _, err := time.ParseDuration(s.Spec.Interval); s.Spec.Interval != "" && err != nil {
		o.stuck[stall.GetUID()] = makes("stuck")
		return o.report(ctx, stall, err.Error())
	}
	if s.Spec.Replicas < 0 {
		if makes("loop") {
			_, err := o.client.CoreV1().ConfigMaps(stall.GetNamespace()).Get(ctx, "none", metav1.GetOptions{})
			time.AfterFunc(5*time.Millisecond, func() { _ = o.keep(ctx, stall) })
			if !apierrors.IsNotFound(err) {
				return err
			}
		}
		return o.report(ctx, stall, "replicas is negative")
	}
	if makes("hasty") {
		if seen, _, _ := unstructured.NestedInt64(stall.Object, "status", "observedGeneration"); seen == stall.GetGeneration() {
			return nil
		}
		if err := o.report(ctx, stall, ""); err != nil {
			return err
		}
		return o.write(ctx, stall, s.Spec)
	}
	if _, reported := stall.Object["status"]; makes("rigid") && !reported {
		if err := o.prepare(ctx, stall); err != nil {
			return err
		}
	}
	if o.first == "" {
		o.first = stall.GetUID()
	}
	if first := o.first == stall.GetUID(); first && *late {
		return o.report(ctx, stall, "")
	} else if first && *half {
		return errors.Join(o.apply(ctx, stall, stall.GetName(), map[string]string{"prepared": "0"}), o.report(ctx, stall, ""))
	}
	if seen, is := o.seen[stall.GetUID()]; !is {
		o.seen[stall.GetUID()] = time.Now()
		if *pause > 0 {
			time.AfterFunc(*pause, func() { _ = o.write(ctx, stall, s.Spec) })
			return o.report(ctx, stall, "")
		}
	} else if time.Since(seen) < *pause {
		return o.report(ctx, stall, "")
	}
	if *ask != "" {
		if err := asks(ctx, *ask); err != nil {
			return err
		}
	}
	if err := o.write(ctx, stall, s.Spec); err != nil {
		return err
	}
	err = o.report(ctx, stall, "")
	if makes("rigid") && apierrors.IsConflict(err) {
		now, gone := o.stalls.Resource(resource).Namespace(stall.GetNamespace()).Get(ctx, stall.GetName(), metav1.GetOptions{})
		// A conflict alone does not prove an edit, because it may be with the operator's own write,
		// which its cache does not show yet. An edit changes the generation.
		o.stuck[stall.GetUID()] = gone == nil && now.GetGeneration() != stall.GetGeneration()
	}
	return err
}

// asks sends a request to an application, and returns an error if it does not answer.
func asks(ctx context.Context, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

// preparations is the number of writes for a new Stall, and preparation the pause after each. All
// together take longer than a user's edit, even if the user's process is slow.
const (
	preparations = 50
	preparation  = 40 * time.Millisecond
)

// prepare writes a new Stall's ConfigMap as many times as the constant preparations.
func (o *operator) prepare(ctx context.Context, stall *unstructured.Unstructured) error {
	for i := range preparations {
		if err := o.apply(ctx, stall, stall.GetName(), map[string]string{"prepared": fmt.Sprint(i)}); err != nil {
			return err
		}
		time.Sleep(preparation) // sleep: the operator is to be slow
	}
	return nil
}

// write creates or updates the ConfigMaps of a Stall.
func (o *operator) write(ctx context.Context, stall *unstructured.Unstructured, s spec) error {
	items, err := json.Marshal(s.Items)
	if err != nil {
		return err
	}
	data := map[string]string{"message": s.Message, "interval": s.Interval, "replicas": fmt.Sprint(s.Replicas), "items": string(items)}
	if err := o.apply(ctx, stall, stall.GetName(), data); err != nil {
		return err
	}
	if s.Extra {
		return o.apply(ctx, stall, stall.GetName()+"-extra", map[string]string{"of": stall.GetName()})
	}
	if makes("leftover") {
		return nil
	}
	err = o.client.CoreV1().ConfigMaps(stall.GetNamespace()).Delete(ctx, stall.GetName()+"-extra", metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (o *operator) apply(ctx context.Context, stall *unstructured.Unstructured, name string, data map[string]string) error {
	maps := o.client.CoreV1().ConfigMaps(stall.GetNamespace())
	now, err := maps.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, &corev1.ConfigMap{Data: data, ObjectMeta: metav1.ObjectMeta{
			Name: name, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(stall, stall.GroupVersionKind())},
		}}, metav1.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	if makes("sticky") && now.Data["message"] != "" {
		data["message"] = now.Data["message"]
	}
	if reflect.DeepEqual(now.Data, data) {
		return nil
	}
	now.Data = data
	_, err = maps.Update(ctx, now, metav1.UpdateOptions{})
	return err
}

// report writes the status of a Stall.
func (o *operator) report(ctx context.Context, stall *unstructured.Unstructured, problem string) error {
	before, _, _ := unstructured.NestedMap(stall.Object, "status")
	ready := map[string]any{"type": "Ready", "status": "True", "message": problem}
	if problem != "" {
		ready["status"] = "False"
	}
	after := map[string]any{"observedGeneration": stall.GetGeneration(), "conditions": []any{ready}}
	updates, counted := before["updates"]
	if counted {
		after["updates"] = updates
	}
	if reflect.DeepEqual(before, after) {
		return nil
	}
	if *counts {
		n, _ := updates.(int64)
		after["updates"] = n + 1
	}
	stall = stall.DeepCopy()
	stall.Object["status"] = after
	_, err := o.stalls.Resource(resource).Namespace(stall.GetNamespace()).UpdateStatus(ctx, stall, metav1.UpdateOptions{})
	return err
}
