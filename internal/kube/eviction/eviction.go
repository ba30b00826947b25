// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// timeout is the time limit of an eviction request. Without this limit, client-go would retry the
// request for longer while the status of a changed PodDisruptionBudget is outdated.
const timeout = 5 * time.Second

// Result is the outcome of an eviction request. It is a label value of metrics.
type Result string

// Results of [Evict].
const (
	// Accepted means that the API server has accepted the eviction and begun to delete the pod.
	Accepted Result = "Accepted"
	// Refused means that the API server will reject the eviction until a pod, a
	// PodDisruptionBudget or a webhook changes.
	Refused Result = "Refused"
	// Gone means that the pod no longer exists, or that another pod now has its name.
	Gone Result = "Gone"
	// Error means that the request failed for another reason.
	Error Result = "Error"
)

// Results lists all results of [Evict].
var Results = []Result{Accepted, Refused, Gone, Error}

// Evict evicts the pod with the given name and UID. refusal is the API server's reason if the
// result is [Refused], and "" otherwise. err is set if the result is [Error].
func Evict(ctx context.Context, c client.Client, pod types.NamespacedName, uid types.UID) (result Result, refusal string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	about := metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}
	err = c.SubResource("eviction").Create(ctx, &corev1.Pod{ObjectMeta: about}, &policyv1.Eviction{
		ObjectMeta: about, DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(uid))},
	})
	switch {
	case err == nil:
		return Accepted, "", nil
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return Gone, "", nil
	}
	if refusal = refusalOf(err); refusal != "" {
		return Refused, refusal, nil
	}
	return Error, "", fmt.Errorf("evict pod %s: %w", pod.Name, err)
}

// refusalOf returns the reason if the API server rejected an eviction and will reject it until a
// pod or budget changes. It returns "" for any other error.
func refusalOf(err error) string {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return ""
	}
	if cause, ok := apierrors.StatusCause(err, policyv1.DisruptionBudgetCause); ok {
		return cmp.Or(cause.Message, status.Status().Message)
	}
	switch status.Status().Reason {
	case metav1.StatusReasonForbidden, metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest:
		return status.Status().Message
	case metav1.StatusReasonUnknown:
		// The API server returns this error if several PodDisruptionBudgets select the pod.
		return status.Status().Message
	default:
		return ""
	}
}
