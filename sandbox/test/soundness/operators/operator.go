// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

// Thing is the custom resource that the operators handle.
type Thing struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitzero"`
}

// Spec is the desired state of a Thing.
type Spec struct {
	Message  string   `json:"message,omitempty"`
	Interval string   `json:"interval,omitempty"`
	Count    int32    `json:"count,omitempty"`
	Items    []string `json:"items,omitempty"`
	Extra    bool     `json:"extra,omitempty"`
}

// Status is the observed state of a Thing, reported by the operator.
type Status struct {
	ObservedGeneration int64  `json:"observedGeneration,omitempty"`
	Ready              bool   `json:"ready,omitempty"`
	Child              string `json:"child,omitempty"`
	Problem            string `json:"problem,omitempty"`
	Phase              string `json:"phase,omitempty"`
	Beats              int64  `json:"beats,omitempty"`
}

var (
	kind      = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Thing"}
	resources = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "things"}
)

// operator holds the state that all operators have in common.
type operator struct {
	name, runs string
	wrong      bool
	config     *rest.Config
	client     kubernetes.Interface
	things     dynamic.NamespaceableResourceInterface
	// cached lists the Things in the informer's cache; maps lists the ConfigMaps in their
	// informer's cache.
	cached cache.GenericLister
	maps   listers.ConfigMapLister
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
	// known is the set of UIDs of the Things that an operator remembers until its process exits.
	known map[types.UID]bool
	// given is the set of UIDs of the Things that the operator has given up on.
	given map[types.UID]bool
}

// run starts the named operator, which handles Things until an error occurs.
func (o *operator) run(ctx context.Context) (err error) {
	if o.config, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")); err != nil {
		return err
	}
	o.config.QPS = -1
	if o.client, err = kubernetes.NewForConfig(o.config); err != nil {
		return err
	}
	client, err := dynamic.NewForConfig(o.config)
	if err != nil {
		return err
	}
	o.things, o.known, o.given = client.Resource(resources), map[types.UID]bool{}, map[types.UID]bool{}
	o.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[cache.ObjectName](20*time.Millisecond, time.Second))
	context.AfterFunc(ctx, o.queue.ShutDown)
	things := dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(resources)
	maps := informers.NewSharedInformerFactory(o.client, 0).Core().V1().ConfigMaps()
	o.cached, o.maps = things.Lister(), maps.Lister()
	if err := o.started(); err != nil {
		return err
	}
	if program := programs[o.name]; program != nil {
		return program(ctx, o, things.Informer(), maps.Informer())
	}
	reconcile := reconcilers[o.name]
	if reconcile == nil {
		return fmt.Errorf("there is no pair %q", o.name)
	}
	return o.reconcileAll(ctx, reconcile, things.Informer(), maps.Informer())
}

// reconcileAll calls the function "reconcile" for each Thing after a change of the Thing or of a
// ConfigMap that the Thing owns, and retries after an error.
func (o *operator) reconcileAll(ctx context.Context, reconcile func(context.Context, *operator, *Thing) error, things, maps cache.SharedIndexInformer) error {
	for _, informer := range []cache.SharedIndexInformer{things, maps} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: o.enqueue, UpdateFunc: func(_, now any) { o.enqueue(now) }, DeleteFunc: o.enqueue}); err != nil {
			return err
		}
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), things.HasSynced, maps.HasSynced) {
		return errors.New("the informers have not synced")
	}
	for {
		name, over := o.queue.Get()
		if over {
			return ctx.Err()
		}
		t, err := o.thing(name)
		if err == nil {
			err = reconcile(ctx, o, t)
		}
		o.queue.Done(name)
		if err == nil || apierrors.IsNotFound(err) && t == nil {
			o.queue.Forget(name)
			continue
		}
		fmt.Fprintln(os.Stderr, name, err)
		o.queue.AddRateLimited(name)
	}
}

// enqueue adds a Thing, or the Thing that owns a ConfigMap, to the queue.
func (o *operator) enqueue(object any) {
	if gone, is := object.(cache.DeletedFinalStateUnknown); is {
		object = gone.Obj
	}
	switch object := object.(type) {
	case *unstructured.Unstructured:
		o.queue.Add(cache.ObjectName{Namespace: object.GetNamespace(), Name: object.GetName()})
	case *corev1.ConfigMap:
		if owner := metav1.GetControllerOf(object); owner != nil && owner.Kind == kind.Kind {
			o.queue.Add(cache.ObjectName{Namespace: object.Namespace, Name: owner.Name})
		}
	}
}

// thing returns a copy of a Thing from the cache.
func (o *operator) thing(name cache.ObjectName) (*Thing, error) {
	object, err := o.cached.ByNamespace(name.Namespace).Get(name.Name)
	if err != nil {
		return nil, err
	}
	return typed(object.(*unstructured.Unstructured))
}

func typed(object *unstructured.Unstructured) (*Thing, error) {
	t := &Thing{}
	return t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, t)
}

func (t *Thing) untyped() (*unstructured.Unstructured, error) {
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	return &unstructured.Unstructured{Object: object}, err
}

// live gets the current Thing from the API server, not from the cache.
func (o *operator) live(ctx context.Context, t *Thing) (*Thing, error) {
	object, err := o.things.Namespace(t.Namespace).Get(ctx, t.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return typed(object)
}

// update writes a Thing without its status.
func (o *operator) update(ctx context.Context, t *Thing) error {
	object, err := t.untyped()
	if err != nil {
		return err
	}
	_, err = o.things.Namespace(t.Namespace).Update(ctx, object, metav1.UpdateOptions{})
	return err
}

func (o *operator) report(ctx context.Context, t *Thing, status Status) error {
	if reflect.DeepEqual(t.Status, status) {
		return nil
	}
	now := *t
	now.Status = status
	object, err := now.untyped()
	if err != nil {
		return err
	}
	_, err = o.things.Namespace(t.Namespace).UpdateStatus(ctx, object, metav1.UpdateOptions{})
	return err
}

// ready reports the Thing as ready in its status.
func (o *operator) ready(ctx context.Context, t *Thing) error {
	status := t.Status
	status.Ready, status.Problem, status.Phase, status.ObservedGeneration = true, "", "", t.Generation
	return o.report(ctx, t, status)
}

// data returns the desired data of a Thing's ConfigMap.
func data(t *Thing) map[string]string { return map[string]string{"message": t.Spec.Message} }

// child returns a ConfigMap with a Thing as owner.
func child(t *Thing, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{Data: data, ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: t.Namespace, OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(t, kind)},
	}}
}

// keep creates the given ConfigMap, or updates the data of the existing ConfigMap if they differ.
func (o *operator) keep(ctx context.Context, want *corev1.ConfigMap) error {
	maps := o.client.CoreV1().ConfigMaps(want.Namespace)
	now, err := maps.Get(ctx, want.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = maps.Create(ctx, want, metav1.CreateOptions{})
		return err
	}
	if err != nil || reflect.DeepEqual(now.Data, want.Data) {
		return err
	}
	now.Data = want.Data
	_, err = maps.Update(ctx, now, metav1.UpdateOptions{})
	return err
}

// children lists the ConfigMaps that a Thing owns, directly from the API server.
func (o *operator) children(ctx context.Context, t *Thing) ([]*corev1.ConfigMap, error) {
	list, err := o.client.CoreV1().ConfigMaps(t.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var all []*corev1.ConfigMap
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], t) {
			all = append(all, &list.Items[i])
		}
	}
	return all, nil
}
