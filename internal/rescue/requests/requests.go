// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requests uses ScheduledRestarts to request restarts that move the pods of Deployments.
package requests

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/freeze"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// Requests requests restarts of Deployments for a controller. It requests each restart with a
// suspended ScheduledRestart, so that the restart is checked, limited and recorded like any other
// restart. The time for which a restart is requested identifies it: even if it is requested
// repeatedly, the Deployment is restarted only once.
type Requests struct {
	client client.Client
	// serves reports whether this manager restarts workloads in a namespace. It is nil if the manager
	// does not run the controller that restarts workloads.
	serves func(namespace string) bool
	// purpose is part of the names of the ScheduledRestarts, and label is the key of a label on
	// them. Both differ between controllers, so that each controller recognizes its own
	// ScheduledRestarts.
	purpose, label string
}

// New returns the Requests of a controller. purpose is a word in the names of its
// ScheduledRestarts, and label is the key of a label on them. serves is the result of [Serves].
func New(c client.Client, serves func(namespace string) bool, purpose, label string) *Requests {
	return &Requests{client: c, serves: serves, purpose: "-" + purpose + "-", label: label}
}

// Serves returns a function that reports whether the manager restarts workloads in a namespace. It
// returns nil if the manager does not run the controller that restarts workloads.
func Serves(mgr ctrl.Manager) func(namespace string) bool {
	if !freeze.Watched(mgr.GetCache(), &tidekeeperv1.ScheduledRestartList{}) {
		return nil
	}
	if limited, is := mgr.(interface{ Reads(namespace string) bool }); is {
		return limited.Reads
	}
	return func(string) bool { return true }
}

// Served reports whether this manager runs the controller that restarts workloads.
func (r *Requests) Served() bool { return r.serves != nil }

// Serves reports whether this manager restarts workloads in a namespace. In other namespaces, no
// restart can be requested.
func (r *Requests) Serves(namespace string) bool { return r.Served() && r.serves(namespace) }

// Known returns the cached ScheduledRestart that moves the pods of a Deployment; nil if there is
// none.
func (r *Requests) Known(ctx context.Context, d *appsv1.Deployment) (*tidekeeperv1.ScheduledRestart, error) {
	known := &tidekeeperv1.ScheduledRestart{}
	err := r.client.Get(ctx, types.NamespacedName{Namespace: d.Namespace, Name: r.nameFor(d)}, known)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // No ScheduledRestart is a state, in which a request creates one.
	}
	if err != nil {
		return nil, fmt.Errorf("get ScheduledRestart %s: %w", r.nameFor(d), err)
	}
	return known, nil
}

// Request requests a restart of a Deployment for the given time. If a restart for that time has
// already ended, it requests a restart for a later time. value is the value of the label with the
// key r.label. known is the result of [Requests.Known] that led to the request. If the
// ScheduledRestart has changed since then, Request returns a conflict error, so that two concurrent
// requests cause a single restart.
func (r *Requests) Request(ctx context.Context, deployment *appsv1.Deployment, known *tidekeeperv1.ScheduledRestart, value string, start time.Time) error {
	if known == nil {
		return r.create(ctx, deployment, value, workload.FormatTime(start))
	}
	if last := known.Status.LastRequestTime; last != nil && !start.After(last.Time) {
		start = last.Add(time.Second)
	}
	patch := fmt.Sprintf(`{"metadata":{"resourceVersion":%q,"annotations":{%q:%q},"labels":{%q:%q}}}`,
		known.ResourceVersion, tidekeeperv1.RestartNowAnnotation, workload.FormatTime(start), r.label, value)
	restart := &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: known.Namespace, Name: known.Name}}
	if err := r.client.Patch(ctx, restart, client.RawPatch(types.MergePatchType, []byte(patch))); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("request a restart by ScheduledRestart %s: %w", known.Name, err)
	}
	return nil
}

// create creates a ScheduledRestart that requests a restart for the given time.
func (r *Requests) create(ctx context.Context, deployment *appsv1.Deployment, value, at string) error {
	restart := &tidekeeperv1.ScheduledRestart{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: deployment.Namespace, Name: r.nameFor(deployment),
			Labels:      map[string]string{r.label: value},
			Annotations: map[string]string{tidekeeperv1.RestartNowAnnotation: at},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: deployment.Name, UID: deployment.UID,
			}},
		},
		Spec: tidekeeperv1.ScheduledRestartSpec{
			TargetRef: tidekeeperv1.TargetRef{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment", Name: deployment.Name},
			Schedule:  "@yearly", Suspend: true,
		},
	}
	err := r.client.Create(ctx, restart)
	if apierrors.IsAlreadyExists(err) {
		err = apierrors.NewConflict(schema.GroupResource{Group: tidekeeperv1.GroupName, Resource: "scheduledrestarts"}, restart.Name, err)
	}
	if err != nil {
		return fmt.Errorf("create ScheduledRestart %s: %w", restart.Name, err)
	}
	return nil
}

// nameFor returns the name of the ScheduledRestart that moves the pods of a Deployment. If the
// Deployment is deleted and created again, the name changes.
func (r *Requests) nameFor(d *appsv1.Deployment) string {
	const longest = 200
	hash := sha256.Sum256([]byte(d.UID))
	return strings.TrimRight(d.Name[:min(len(d.Name), longest)], "-.") + r.purpose + hex.EncodeToString(hash[:4])
}

// Delete deletes the cached ScheduledRestarts of this controller that the options select and for
// which `unused` returns true. A ScheduledRestart that has changed since it was cached is kept.
// Rollouts in progress continue.
func (r *Requests) Delete(ctx context.Context, unused func(*tidekeeperv1.ScheduledRestart) bool, opts ...client.ListOption) error {
	if !r.Served() {
		return nil
	}
	list := &tidekeeperv1.ScheduledRestartList{}
	if err := r.client.List(ctx, list, append(opts, client.UnsafeDisableDeepCopy)...); err != nil {
		return fmt.Errorf("list the ScheduledRestarts that moved pods: %w", err)
	}
	for i := range list.Items {
		restart := &list.Items[i]
		if !r.IsRequest(restart) || !unused(restart) {
			continue
		}
		err := r.client.Delete(ctx, &tidekeeperv1.ScheduledRestart{ObjectMeta: metav1.ObjectMeta{Namespace: restart.Namespace, Name: restart.Name}},
			client.Preconditions{UID: &restart.UID, ResourceVersion: &restart.ResourceVersion})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			return fmt.Errorf("delete ScheduledRestart %s: %w", restart.Name, err)
		}
	}
	return nil
}

// IsRequest reports whether the name and the labels of a ScheduledRestart show that this controller
// created it to request a restart.
func (r *Requests) IsRequest(restart client.Object) bool {
	_, labeled := restart.GetLabels()[r.label]
	return labeled && strings.Contains(restart.GetName(), r.purpose)
}
