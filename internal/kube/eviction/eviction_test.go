// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package eviction

import (
	"context"
	"errors"
	"fmt"
	"testing"

	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// TestEvict checks that a pod is evicted by its UID, and how each response of the API server counts.
func TestEvict(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	budget := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	budget.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: policyv1.DisruptionBudgetCause, Message: "The disruption budget web needs 2 healthy pods and has 2 currently"}}
	several := &apierrors.StatusError{ErrStatus: metav1.Status{Code: 500, Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}}
	for name, tc := range map[string]struct {
		answer  error
		result  Result
		refusal string
	}{
		"accepted":            {nil, Accepted, ""},
		"no such pod":         {apierrors.NewNotFound(pods, "web-1"), Gone, ""},
		"another pod":         {apierrors.NewConflict(pods, "web-1", errors.New("the UID in the precondition does not match")), Gone, ""},
		"a budget":            {budget, Refused, "The disruption budget web needs 2 healthy pods and has 2 currently"},
		"several budgets":     {several, Refused, several.ErrStatus.Message},
		"a webhook denies it": {apierrors.NewForbidden(pods, "web-1", errors.New("not now")), Refused, `pods "web-1" is forbidden: not now`},
		"overload":            {apierrors.NewTooManyRequests("too many requests", 1), Error, ""},
		"a webhook fails":     {apierrors.NewInternalError(errors.New("failed calling webhook")), Error, ""},
		"no answer":           {context.DeadlineExceeded, Error, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var sent *policyv1.Eviction
			c := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				SubResourceCreate: func(_ context.Context, _ client.Client, subResource string, o, body client.Object, _ ...client.SubResourceCreateOption) error {
					if sent = body.(*policyv1.Eviction); subResource != "eviction" || o.GetNamespace() != "shop" || o.GetName() != "web-1" {
						t.Errorf("%s of %s/%s", subResource, o.GetNamespace(), o.GetName())
					}
					return tc.answer
				},
			})
			result, refusal, err := Evict(t.Context(), c, types.NamespacedName{Namespace: "shop", Name: "web-1"}, "uid-1")
			if result != tc.result || refusal != tc.refusal || (err != nil) != (tc.result == Error) {
				t.Errorf("%s, %q, %v; want %s, %q", result, refusal, err, tc.result, tc.refusal)
			}
			if err != nil && !errors.Is(err, tc.answer) {
				t.Errorf("the error is %v", fmt.Sprint(err))
			}
			if sent.DeleteOptions == nil || *sent.DeleteOptions.Preconditions.UID != "uid-1" {
				t.Errorf("the options are %v", sent.DeleteOptions)
			}
		})
	}
}
