// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package retry

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestWaits(t *testing.T) {
	overtaken := fmt.Errorf("write status: %w", apierrors.NewConflict(schema.GroupResource{Resource: "nodepools"}, "worker", errors.New("modified")))
	gone := fmt.Errorf("write status: %w", apierrors.NewNotFound(schema.GroupResource{Resource: "nodepools"}, "worker"))
	broken := errors.New("broken")
	var answer error
	r := Conflicts(reconcile.TypedFunc[string](func(context.Context, string) (ctrl.Result, error) {
		return ctrl.Result{RequeueAfter: time.Hour}, answer
	}))
	for i, step := range []struct {
		key    string
		answer error
		after  time.Duration
		err    error
	}{
		{"a", overtaken, 50 * time.Millisecond, nil},
		{"a", overtaken, 100 * time.Millisecond, nil},
		{"b", overtaken, 50 * time.Millisecond, nil},
		{"a", overtaken, 200 * time.Millisecond, nil},
		{"a", gone, 400 * time.Millisecond, nil},
		{"a", nil, time.Hour, nil},
		{"a", overtaken, 50 * time.Millisecond, nil},
		{"a", broken, 0, broken},
		{"a", overtaken, 50 * time.Millisecond, nil},
	} {
		answer = step.answer
		result, err := r.Reconcile(t.Context(), step.key)
		if result.RequeueAfter != step.after || !errors.Is(err, step.err) {
			t.Errorf("step %d: again after %s, error %v; want %s, %v", i, result.RequeueAfter, err, step.after, step.err)
		}
	}
	answer = overtaken
	for range 100 {
		if result, _ := r.Reconcile(t.Context(), "c"); result.RequeueAfter > maxConflictDelay {
			t.Fatalf("again after %s", result.RequeueAfter)
		}
	}
}
