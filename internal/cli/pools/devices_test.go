// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
)

// deviceClient returns a client of a cluster with a DeviceClass, and the kinds of the lists that were
// requested. The kinds in `failing` fail with an error.
func deviceClient(failing map[string]error) (c client.Client, listed *[]string) {
	listed = &[]string{}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu.example.com"}}
	return fake.NewClientBuilder().WithScheme(cmdutil.Scheme).WithObjects(class).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
			kind, err := c.GroupVersionKindFor(into)
			if err != nil {
				return err
			}
			*listed = append(*listed, kind.Kind)
			if err := failing[kind.Kind]; err != nil {
				return err
			}
			return c.List(ctx, into, options...)
		},
	}).Build(), listed
}

// TestReadDevices checks that only the objects that matter for a pod are read, and that a missing
// right or API is no error.
func TestReadDevices(t *testing.T) {
	claims := &corev1.Pod{Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu"}}}}
	extended := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")},
	}}}}}
	group := schema.GroupResource{Group: resourcev1.GroupName}
	forbidden, missing := apierrors.NewForbidden(group, "", nil), apierrors.NewNotFound(group, "")
	all := []string{"DeviceClassList", "ResourceSliceList", "ResourceClaimList", "DeviceTaintRuleList", "ResourceClaimTemplateList"}
	for name, c := range map[string]struct {
		pod     *corev1.Pod
		failing map[string]error
		listed  []string
		known   bool
		unread  []string
	}{
		"a pod without devices":           {pod: &corev1.Pod{}},
		"a pod that has terminated":       {pod: &corev1.Pod{Spec: claims.Spec, Status: corev1.PodStatus{Phase: corev1.PodFailed}}},
		"a pod with an extended resource": {pod: extended, listed: all[:1], known: true},
		"a pod with a claim":              {pod: claims, listed: all, known: true},
		"a cluster without devices":       {pod: claims, listed: all[:1], failing: map[string]error{"DeviceClassList": missing}},
		"no DeviceTaintRules":             {pod: claims, listed: all, known: true, failing: map[string]error{"DeviceTaintRuleList": missing}},
		"no rights": {pod: claims, listed: all, known: true, failing: map[string]error{"DeviceClassList": forbidden, "ResourceSliceList": forbidden, "ResourceClaimList": forbidden, "DeviceTaintRuleList": forbidden, "ResourceClaimTemplateList": forbidden},
			unread: []string{"deviceclasses", "resourceslices", "resourceclaims", "devicetaintrules", "resourceclaimtemplates"}},
	} {
		client, listed := deviceClient(c.failing)
		devices, err := readDevices(t.Context(), client, []*corev1.Pod{c.pod})
		if err != nil || (devices != nil) != c.known || !slices.Equal(*listed, c.listed) {
			t.Errorf("%s: read %v, devices known: %t, error: %v", name, *listed, devices != nil, err)
		}
		if devices != nil && !slices.Equal(devices.Unread, c.unread) {
			t.Errorf("%s: %v not read, want %v", name, devices.Unread, c.unread)
		}
	}
}

// TestPoolDevices checks that a missing right to read the devices of pools is named, and that nothing
// is said on clusters without devices.
func TestPoolDevices(t *testing.T) {
	group := schema.GroupResource{Group: resourcev1.GroupName}
	forbidden := apierrors.NewForbidden(group, "", nil)
	for name, c := range map[string]struct {
		failing map[string]error
		known   bool
		problem string
	}{
		"all rights":           {known: true},
		"no right to claims":   {known: true, failing: map[string]error{"ResourceClaimList": forbidden}},
		"no right to slices":   {problem: "you may not list resourceslices.resource.k8s.io", failing: map[string]error{"ResourceSliceList": forbidden}},
		"no right to classes":  {problem: "you may not list deviceclasses.resource.k8s.io", failing: map[string]error{"DeviceClassList": forbidden}},
		"a cluster without it": {failing: map[string]error{"DeviceClassList": apierrors.NewNotFound(group, "")}},
	} {
		client, _ := deviceClient(c.failing)
		devices, problem, err := poolDevices(t.Context(), client)
		if err != nil || (devices != nil) != c.known || problem != c.problem {
			t.Errorf("%s: devices known: %t, problem %q, error: %v", name, devices != nil, problem, err)
		}
	}
}
