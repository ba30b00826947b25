// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package inject

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/observe"
	"tidekeeper.dev/tidekeeper/sandbox/internal/explore/workload"
)

var leaseResource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// Leadership reads and clears the objects in which the operator records its current leader.
type Leadership struct {
	Log      *observe.Log
	Recorder *observe.Recorder
}

// leases returns the Leases that the operator uses for leader election.
func (l Leadership) leases() []types.NamespacedName {
	var found []types.NamespacedName
	for key := range observe.LockKeys(l.Log.Since(0), nil) {
		namespace, name, _ := strings.Cut(strings.TrimPrefix(key, observe.Election[0]+" "), "/")
		if name != "" {
			found = append(found, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return found
}

// free clears the leader in the operator's leader election records. Otherwise a killed process
// would remain the leader until its lease expires.
func (l Leadership) free(ctx context.Context) error {
	for _, key := range l.leases() {
		patch := []byte(`{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`)
		if _, err := l.Recorder.Client.Resource(leaseResource).Namespace(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("free the lease %s: %w", key, err)
		}
	}
	for _, v := range l.Recorder.Objects() {
		text, is := v.Object.GetAnnotations()[observe.LeaderAnnotation]
		if !is {
			continue
		}
		record := map[string]any{}
		if json.Unmarshal([]byte(text), &record) != nil {
			continue
		}
		record["holderIdentity"] = ""
		held, err := json.Marshal(record)
		if err != nil {
			return err
		}
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{observe.LeaderAnnotation: string(held)}}})
		if err != nil {
			return err
		}
		t := workload.Target{Resource: v.Resource, Namespace: v.Object.GetNamespace(), Name: v.Object.GetName()}
		if err := l.Recorder.Patch(ctx, t, "", patch); err != nil {
			return fmt.Errorf("free the lock %s: %w", t, err)
		}
	}
	return nil
}

// await waits until one of the operator's leases has a holder, and reports whether a holder has
// appeared within the limit.
func (l Leadership) await(ctx context.Context, limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(observe.Look) {
		for _, key := range l.leases() {
			lease, err := l.Recorder.Client.Resource(leaseResource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
			if err != nil {
				continue
			}
			if holder, _, _ := unstructured.NestedString(lease.Object, "spec", "holderIdentity"); holder != "" {
				return true
			}
		}
	}
	return false
}
