// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

var leaseResource = schema.GroupVersionResource{Group: "coordination.k8s.io", Version: "v1", Resource: "leases"}

// leadership is the election of a leader by the operator's processes.
type leadership struct {
	log      *requestLog
	recorder *recorder
}

// leases returns the leases by which the operator elects its leader.
func (l leadership) leases() []types.NamespacedName {
	var found []types.NamespacedName
	for key := range lockKeys(l.log.since(0), nil) {
		namespace, name, _ := strings.Cut(strings.TrimPrefix(key, election[0]+" "), "/")
		if name != "" {
			found = append(found, types.NamespacedName{Namespace: namespace, Name: name})
		}
	}
	return found
}

// free ends the leadership of a process that is dead, which would otherwise last
// until its lease expires.
func (l leadership) free(ctx context.Context) error {
	for _, key := range l.leases() {
		patch := []byte(`{"spec":{"holderIdentity":"","leaseDurationSeconds":1}}`)
		if _, err := l.recorder.client.Resource(leaseResource).Namespace(key.Namespace).Patch(ctx, key.Name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("free the lease %s: %w", key, err)
		}
	}
	for _, v := range l.recorder.objects() {
		text, is := v.Object.GetAnnotations()[leaderAnnotation]
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
		patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{leaderAnnotation: string(held)}}})
		if err != nil {
			return err
		}
		t := Target{Resource: v.Resource, Namespace: v.Object.GetNamespace(), Name: v.Object.GetName()}
		if err := l.recorder.patch(ctx, t, "", patch); err != nil {
			return fmt.Errorf("free the lock %s: %w", t, err)
		}
	}
	return nil
}

// await waits until a lease of the operator is held, and reports whether it is.
func (l leadership) await(ctx context.Context, limit time.Duration) bool {
	for end := time.Now().Add(limit); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(look) {
		for _, key := range l.leases() {
			lease, err := l.recorder.client.Resource(leaseResource).Namespace(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
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

// lockKeys returns the objects by which the operator elects its leader.
func lockKeys(requests []Request, versions []Version) map[string]bool {
	keys := map[string]bool{}
	for i := range requests {
		if r := &requests[i]; slices.Contains(election, r.Resource) && slices.Contains(writeVerbs, r.Verb) {
			keys[nameKey(r.Resource, r.Namespace, r.Name)] = true
		}
	}
	for i := range versions {
		if _, is := versions[i].Object.GetAnnotations()[leaderAnnotation]; is {
			keys[versions[i].key()] = true
		}
	}
	return keys
}

// leaderAnnotation marks a ConfigMap by which old clients elect their leader.
const leaderAnnotation = "control-plane.alpha.kubernetes.io/leader"
