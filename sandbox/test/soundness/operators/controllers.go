// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
)

// again calls the function "look" after events of the given informers. If "look" fails, it calls
// the function again after a delay.
func (o *operator) again(ctx context.Context, factory informers.SharedInformerFactory, look func() error, all ...cache.SharedIndexInformer) error {
	changed := make(chan struct{}, 1)
	wake := func(any) {
		select {
		case changed <- struct{}{}:
		default:
		}
	}
	for _, informer := range all {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: wake, UpdateFunc: func(_, now any) { wake(now) }, DeleteFunc: wake}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	wait := 20 * time.Millisecond
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := look(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			time.AfterFunc(wait, func() { wake(nil) })
			wait = min(2*wait, time.Second)
			continue
		}
		wait = 20 * time.Millisecond
	}
}

// tooManyPods acts as the ReplicaSet controller. The buggy variant counts the pods in its cache,
// which may be stale.
func tooManyPods(ctx context.Context, o *operator, _, _ cache.SharedIndexInformer) error {
	factory := informers.NewSharedInformerFactory(o.client, 0)
	sets, pods := factory.Apps().V1().ReplicaSets(), factory.Core().V1().Pods()
	return o.again(ctx, factory, func() error {
		all, err := sets.Lister().List(labels.Everything())
		if err != nil {
			return err
		}
		for _, set := range all {
			cached, err := pods.Lister().Pods(set.Namespace).List(labels.SelectorFromSet(set.Spec.Selector.MatchLabels))
			if err != nil {
				return err
			}
			count := len(cached)
			if !o.wrong {
				list, err := o.client.CoreV1().Pods(set.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(set.Spec.Selector)})
				if err != nil {
					return err
				}
				count = len(list.Items)
			}
			if count >= int(*set.Spec.Replicas) {
				continue
			}
			pod := &corev1.Pod{ObjectMeta: *set.Spec.Template.ObjectMeta.DeepCopy(), Spec: *set.Spec.Template.Spec.DeepCopy()}
			pod.GenerateName, pod.OwnerReferences = set.Name+"-", []metav1.OwnerReference{*metav1.NewControllerRef(set, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))}
			if _, err := o.client.CoreV1().Pods(set.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		return nil
	}, sets.Informer(), pods.Informer())
}

// surges acts as the Deployment controller: it scales old ReplicaSets to 0 before it creates the
// new ReplicaSet. The buggy variant ignores an error of the scale-down, so that too many pods
// exist.
func surges(ctx context.Context, o *operator, _, _ cache.SharedIndexInformer) error {
	factory := informers.NewSharedInformerFactory(o.client, 0)
	deployments := factory.Apps().V1().Deployments()
	return o.again(ctx, factory, func() error {
		all, err := deployments.Lister().List(labels.Everything())
		if err != nil {
			return err
		}
		for _, d := range all {
			if err := o.rollOut(ctx, d); err != nil {
				return err
			}
		}
		return nil
	}, deployments.Informer())
}

func (o *operator) rollOut(ctx context.Context, d *appsv1.Deployment) error {
	client := o.client.AppsV1().ReplicaSets(d.Namespace)
	sets, err := client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	version := d.Spec.Template.Labels["version"]
	has := false
	for _, set := range sets.Items {
		if set.Labels["version"] == version {
			has = true
			continue
		}
		if *set.Spec.Replicas == 0 {
			continue
		}
		_, err := client.Patch(ctx, set.Name, types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
		if err != nil && !o.wrong {
			return err
		}
	}
	if has {
		return nil
	}
	_, err = client.Create(ctx, &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: d.Name + "-" + version, Labels: d.Spec.Template.Labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(d, appsv1.SchemeGroupVersion.WithKind("Deployment"))},
		},
		Spec: appsv1.ReplicaSetSpec{Replicas: d.Spec.Replicas, Selector: &metav1.LabelSelector{MatchLabels: d.Spec.Template.Labels}, Template: d.Spec.Template},
	}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// wantedClaims deletes the PersistentVolumeClaims of replicas that a StatefulSet no longer has. The
// buggy variant reads the number of replicas from its cache, which may be stale.
func wantedClaims(ctx context.Context, o *operator, _, _ cache.SharedIndexInformer) error {
	factory := informers.NewSharedInformerFactory(o.client, 0)
	sets, claims, pods := factory.Apps().V1().StatefulSets(), factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().Pods()
	return o.again(ctx, factory, func() error {
		cached, err := claims.Lister().List(labels.Everything())
		if err != nil {
			return err
		}
		for _, claim := range cached {
			if _, err := pods.Lister().Pods(claim.Namespace).Get(strings.TrimPrefix(claim.Name, "data-")); err == nil || claim.DeletionTimestamp != nil {
				continue
			}
			set, err := sets.Lister().StatefulSets(claim.Namespace).Get("a")
			if err == nil && !o.wrong {
				set, err = o.client.AppsV1().StatefulSets(claim.Namespace).Get(ctx, "a", metav1.GetOptions{})
			}
			if err != nil {
				return ignoreNotFound(err)
			}
			ordinal, err := strconv.Atoi(claim.Name[strings.LastIndex(claim.Name, "-")+1:])
			if err != nil || ordinal < int(*set.Spec.Replicas) {
				continue
			}
			uid := claim.UID
			err = o.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Delete(ctx, claim.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			if ignoreNotFound(err) != nil {
				return err
			}
		}
		return nil
	}, sets.Informer(), claims.Informer(), pods.Informer())
}

// takesPod releases a pod from its ReplicaSet by removing a label that the ReplicaSet selects. The
// buggy variant replaces the pod's owner instead.
func takesPod(ctx context.Context, o *operator, t *Thing) error {
	fenced, err := o.client.CoreV1().Pods(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "fenced=true"})
	if err != nil {
		return err
	}
	if len(fenced.Items) > 0 {
		return o.ready(ctx, t)
	}
	pods, err := o.client.CoreV1().Pods(t.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
	if err != nil {
		return err
	}
	if len(pods.Items) == 0 {
		return errors.New("there is no pod yet")
	}
	pod := &pods.Items[0]
	pod.Labels["fenced"] = "true"
	if o.wrong {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(t, kind)}
	} else {
		delete(pod.Labels, "app")
	}
	if _, err := o.client.CoreV1().Pods(t.Namespace).Update(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return o.ready(ctx, t)
}
