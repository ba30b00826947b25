// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Rollout is the adapter for Rollouts of Argo Rollouts. A restart sets spec.restartAt, whereupon
// Argo Rollouts deletes the pods created before that time. Neither the pod template nor its hash
// changes.
var Rollout = &Kind{
	GroupVersionKind:  rolloutKind,
	Resource:          "rollouts",
	ShortName:         "ro",
	Optional:          true,
	New:               newRollout,
	State:             rolloutState,
	Restart:           restartRollout,
	Trim:              typed(trimRollout),
	TemplateHashLabel: "rollouts-pod-template-hash",
}

var rolloutKind = schema.GroupVersionKind{Group: "argoproj.io", Version: "v1alpha1", Kind: "Rollout"}

func newRollout() Object {
	r := &unstructured.Unstructured{}
	r.SetGroupVersionKind(rolloutKind)
	return r
}

func restartRollout(at time.Time) map[string]any {
	return map[string]any{"spec": map[string]any{"restartAt": FormatTime(at)}}
}

// rollout holds the fields from which the state of a Rollout is derived.
type rollout struct {
	Spec struct {
		Replicas  *int32                `json:"replicas,omitempty"`
		Paused    bool                  `json:"paused,omitempty"`
		RestartAt string                `json:"restartAt,omitempty"`
		Selector  *metav1.LabelSelector `json:"selector,omitempty"`
	} `json:"spec"`
	Status struct {
		// ObservedGeneration is the observed generation as a decimal string, or a hash of the spec
		// in early versions of Argo Rollouts.
		ObservedGeneration string `json:"observedGeneration,omitempty"`
		UpdatedReplicas    int32  `json:"updatedReplicas,omitempty"`
		AvailableReplicas  int32  `json:"availableReplicas,omitempty"`
		Phase              string `json:"phase,omitempty"`
		// Abort means that the update was aborted and the pods of the previous template are kept.
		Abort   bool   `json:"abort,omitempty"`
		Message string `json:"message,omitempty"`
		// RestartedAt is the value that spec.restartAt had for the last completed restart.
		RestartedAt string `json:"restartedAt,omitempty"`
	} `json:"status"`
}

func rolloutState(o Object) (*State, error) {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || u.GroupVersionKind() != rolloutKind {
		return nil, fmt.Errorf("%T is not a Rollout of %s", o, rolloutKind.GroupVersion())
	}
	r := &rollout{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, r); err != nil {
		return nil, fmt.Errorf("read Rollout %s: %w", u.GetName(), err)
	}
	s := stateOf(rolloutKind.Kind, u)
	s.RestartedAt = r.Spec.RestartAt
	s.Config = rolloutConfig(u)
	s.Selector = r.Spec.Selector
	s.Paused = r.Spec.Paused
	s.Pods = desired(r.Spec.Replicas)
	s.Updates = s.Pods
	s.Rollout = r.progress(u.GetGeneration())
	return s, nil
}

func (r *rollout) progress(generation int64) Progress {
	if !r.observed(generation) {
		return notObserved()
	}
	replicas := desired(r.Spec.Replicas)
	// The phase Degraded indicates an aborted update, an exceeded progress deadline, or an invalid
	// spec.
	p := Progress{Exceeded: r.Status.Phase == "Degraded" && !r.Status.Abort, Halted: r.halted()}
	switch {
	case r.Status.UpdatedReplicas < replicas && !r.Status.Abort:
		p.Updating, p.Message = true, fmt.Sprintf("%d of %d pods are updated", r.Status.UpdatedReplicas, replicas)
	case !r.restarted():
		p.Updating, p.Message = true, "not all pods are restarted"
	case r.Status.AvailableReplicas < replicas:
		p.Message = fmt.Sprintf("%d of %d pods are available", r.Status.AvailableReplicas, replicas)
	case r.Status.Phase == "Progressing" || r.Status.Phase == "Paused":
		p.Updating, p.Message = true, "its phase is "+r.Status.Phase
	default:
		p.Available = true
	}
	if p.Message != "" && r.Status.Message != "" {
		p.Message += ": " + r.Status.Message
	}
	return p
}

// halted returns the reason why the update does not continue without a user's action. It is empty
// if the update continues.
func (r *rollout) halted() string {
	switch {
	case r.Status.Abort:
		return "its update was aborted"
	case r.Status.Phase == "Paused":
		return strings.TrimSuffix("its update is paused: "+r.Status.Message, ": ")
	default:
		return ""
	}
}

// observed reports whether Argo Rollouts has observed the given generation of the spec. Early
// versions of Argo Rollouts write a hash of the spec instead of a number; any hash counts as
// observed.
func (r *rollout) observed(generation int64) bool {
	observed, err := strconv.ParseInt(r.Status.ObservedGeneration, 10, 64)
	return r.Status.ObservedGeneration != "" && (err != nil || generation <= observed)
}

// restarted reports whether the last requested restart is complete. It returns true if no restart
// was requested.
func (r *rollout) restarted() bool {
	if r.Spec.RestartAt == "" {
		return true
	}
	wanted, err := time.Parse(time.RFC3339, r.Spec.RestartAt)
	last, lastErr := time.Parse(time.RFC3339, r.Status.RestartedAt)
	return err == nil && lastErr == nil && !last.Before(wanted)
}

// rolloutKept maps the parts "spec" and "status" of a Rollout to the fields that the type rollout
// reads.
var rolloutKept = map[string][]string{
	"spec":   {"replicas", "paused", "restartAt", "selector"},
	"status": {"observedGeneration", "updatedReplicas", "availableReplicas", "phase", "abort", "message", "restartedAt"},
}

// trimRollout drops everything from a Rollout except its metadata, the fields of type rollout, and
// the names of the ConfigMaps and Secrets that it uses.
func trimRollout(u *unstructured.Unstructured) {
	kept := map[string]any{"apiVersion": u.Object["apiVersion"], "kind": u.Object["kind"], "metadata": u.Object["metadata"]}
	for part, fields := range rolloutKept {
		all, ok := u.Object[part].(map[string]any)
		if !ok {
			continue
		}
		some := map[string]any{}
		for _, field := range fields {
			if value := boundField(all[field]); value != nil {
				some[field] = value
			}
		}
		kept[part] = some
	}
	keepConfig(rolloutConfig(u), kept["spec"])
	u.Object = kept
}
