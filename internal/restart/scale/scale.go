// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scale reads restart targets of arbitrary kinds through their scale subresource.
package scale

import (
	"context"
	"fmt"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/restart/decision"
	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

// longestProblem is the maximum length in bytes of the message about an unusable target, so that
// the message fits into a history entry.
const longestProblem = 768

// Read reads the scale subresource of a target, and sets the target's state in the input. If the
// target does not exist or cannot be used, it returns no error, but reports the problem in a field
// of the input.
func Read(ctx context.Context, c client.SubResourceClientConstructor, namespace string, ref tidekeeperv1.TargetRef, in *decision.Input) error {
	in.Polled = true
	// For kinds that are not in its scheme, the client accepts only unstructured objects.
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(autoscalingv1.SchemeGroupVersion.WithKind("Scale"))
	err := c.SubResource("scale").Get(ctx, workload.Unknown(ref, namespace), found)
	scale := &autoscalingv1.Scale{}
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, scale)
	}
	switch {
	case meta.IsNoMatchError(err):
		in.Unserved = true
	case apierrors.IsNotFound(err):
		in.Unreadable = fmt.Sprintf("there is no %s %s in this namespace, or its kind has no scale subresource", ref.Kind, ref.Name)
	case apierrors.IsForbidden(err):
		// The API server's error message names the missing permission.
		in.Unreadable = fmt.Sprintf("the scale subresource of %s %s cannot be read: %s", ref.Kind, ref.Name, err)
	case err != nil:
		return fmt.Errorf("get the scale of %s %s: %w", ref.Kind, ref.Name, err)
	default:
		if in.Target, err = workload.ScaledState(ref, scale); err != nil {
			in.Unreadable = err.Error()
		}
	}
	in.Unreadable = text.Shorten(in.Unreadable, longestProblem)
	return nil
}
