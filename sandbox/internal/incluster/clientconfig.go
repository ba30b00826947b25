// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package incluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"tidekeeper.dev/tidekeeper/sandbox/internal/kubelet"
)

// withWebhooks lists the resources whose objects configure webhooks.
var withWebhooks = []schema.GroupVersionResource{
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
	{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
}

// redirectedAnnotation is the annotation of an object with redirected webhooks. Its JSON value
// holds the original and the redirected clientConfigs, keyed by webhook name.
const redirectedAnnotation = kubelet.Prefix + "redirected-webhooks"

// redirected is the description of a redirected webhook in the value of redirectedAnnotation.
type redirected struct {
	// Pod is the NAMESPACE/NAME of the program's Pod to which the webhook was redirected.
	Pod string `json:"pod"`
	// Before is the webhook's original clientConfig; Now is the redirected clientConfig.
	Before map[string]any `json:"before"`
	Now    map[string]any `json:"now"`
}

// conversion is used in place of a webhook name for the conversion webhook of a
// CustomResourceDefinition, which has no name.
const conversion = "conversion"

// webhook refers to a webhook in an object, and to its clientConfig.
type webhook struct {
	name string
	// owner is the part of the object that contains the webhook's clientConfig as a field.
	owner map[string]any
}

func (w webhook) clientConfig() map[string]any {
	config, _ := w.owner["clientConfig"].(map[string]any)
	return config
}

// webhooksOf returns references to the webhooks in an object. A change through a reference changes
// the object.
func webhooksOf(object *unstructured.Unstructured) []webhook {
	if crd, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "conversion", "webhook"); found {
		if owner, ok := crd.(map[string]any); ok {
			return []webhook{{name: conversion, owner: owner}}
		}
	}
	list, _, _ := unstructured.NestedFieldNoCopy(object.Object, "webhooks")
	items, _ := list.([]any)
	var all []webhook
	for _, item := range items {
		if owner, ok := item.(map[string]any); ok {
			name, _ := owner["name"].(string)
			all = append(all, webhook{name: name, owner: owner})
		}
	}
	return all
}

// serviceOf returns the Service, port and path in a clientConfig. It sets "found" to false if the
// clientConfig contains a URL instead.
func serviceOf(clientConfig map[string]any) (service types.NamespacedName, port int32, path string, found bool) {
	named, found, _ := unstructured.NestedMap(clientConfig, "service")
	if !found {
		return service, 0, "", false
	}
	service.Namespace, _ = named["namespace"].(string)
	service.Name, _ = named["name"].(string)
	path, _ = named["path"].(string)
	port = 443
	if p, ok := named["port"].(int64); ok {
		port = int32(p)
	}
	return service, port, path, true
}

// CalledServices returns the Services that the API server calls for webhooks, each with the name of
// an object that configures such a webhook, for instance validatingwebhookconfigurations/shop.
func CalledServices(ctx context.Context, client dynamic.Interface) (map[types.NamespacedName]string, error) {
	called := map[types.NamespacedName]string{}
	err := eachWithWebhooks(ctx, client, func(resource schema.GroupVersionResource, object *unstructured.Unstructured) error {
		for _, hook := range webhooksOf(object) {
			if service, _, _, found := serviceOf(hook.clientConfig()); found {
				called[service] = resource.Resource + "/" + object.GetName()
			}
		}
		return nil
	})
	return called, err
}

// eachWithWebhooks calls the function "do" for each object that configures webhooks. It stops at
// the first error, and adds the object's name to the error.
func eachWithWebhooks(ctx context.Context, client dynamic.Interface, do func(schema.GroupVersionResource, *unstructured.Unstructured) error) error {
	for _, resource := range withWebhooks {
		list, err := client.Resource(resource).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("list %s: %w", resource.Resource, err)
		}
		for i := range list.Items {
			if err := do(resource, &list.Items[i]); err != nil {
				return fmt.Errorf("%s %s: %w", resource.Resource, list.Items[i].GetName(), err)
			}
		}
	}
	return nil
}

// target is a function that returns the address at which a program serves a Service's webhooks, and
// reports whether it serves them.
type target func(service types.NamespacedName, port int32) (address string, serves bool, _ error)

// redirect redirects webhooks in an object to a program, if the function "serves" reports that the
// program serves them. It reports whether there were any.
func redirect(object *unstructured.Unstructured, pod string, ca []byte, serves target) (bool, error) {
	kept, err := redirections(object)
	if err != nil {
		return false, err
	}
	changed := false
	for _, w := range webhooksOf(object) {
		before := w.clientConfig()
		service, port, path, found := serviceOf(before)
		if !found {
			continue
		}
		address, ours, err := serves(service, port)
		if err != nil {
			return false, fmt.Errorf("webhook %s: %w", w.name, err)
		}
		if !ours {
			continue
		}
		now := map[string]any{"url": "https://" + address + path, "caBundle": base64.StdEncoding.EncodeToString(ca)}
		kept[w.name] = redirected{Pod: pod, Before: before, Now: now}
		w.owner["clientConfig"] = runtime.DeepCopyJSON(now)
		changed = true
	}
	if !changed {
		return false, nil
	}
	return true, setRedirections(object, kept)
}

// restore restores the original clientConfigs of webhooks in an object. It handles the webhooks
// that were redirected to a Pod for which the function "of" returns true, and reports whether there
// were any. A webhook that another client has changed since the redirection keeps that client's
// configuration.
func restore(object *unstructured.Unstructured, of func(pod string) bool) (bool, error) {
	kept, err := redirections(object)
	if err != nil {
		return false, err
	}
	changed := false
	for name, r := range kept {
		if !of(r.Pod) {
			continue
		}
		for _, w := range webhooksOf(object) {
			if w.name == name && reflect.DeepEqual(w.clientConfig(), r.Now) {
				w.owner["clientConfig"] = r.Before
			}
		}
		delete(kept, name)
		changed = true
	}
	if !changed {
		return false, nil
	}
	return true, setRedirections(object, kept)
}

func redirections(object *unstructured.Unstructured) (map[string]redirected, error) {
	kept := map[string]redirected{}
	text, ok := object.GetAnnotations()[redirectedAnnotation]
	if !ok {
		return kept, nil
	}
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return nil, fmt.Errorf("the annotation %s cannot be read: %w", redirectedAnnotation, err)
	}
	// The JSON decoder reads numbers as floating-point numbers. Convert them to integers, because
	// the object's clientConfigs, with which these are compared, contain integers.
	for _, r := range kept {
		wholeNumbers(r.Before)
		wholeNumbers(r.Now)
	}
	return kept, nil
}

// wholeNumbers converts the floating-point numbers in an object, which must be whole numbers, to
// integers.
func wholeNumbers(object map[string]any) {
	for key, value := range object {
		switch v := value.(type) {
		case float64:
			object[key] = int64(v)
		case map[string]any:
			wholeNumbers(v)
		}
	}
}

func setRedirections(object *unstructured.Unstructured, kept map[string]redirected) error {
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, redirectedAnnotation)
	if len(kept) > 0 {
		text, err := json.Marshal(kept)
		if err != nil {
			return err
		}
		annotations[redirectedAnnotation] = string(text)
	}
	object.SetAnnotations(annotations)
	return nil
}
