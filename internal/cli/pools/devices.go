// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/kube/deviceselector"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
)

// readDevices reads the devices and claims on which the ResourceClaims of the given pods depend. It
// returns nil if no pod may have devices, or if the cluster has no such API. If the user is not
// allowed to list some of the objects, results are upper bounds, and name them.
func readDevices(ctx context.Context, c client.Client, asked []*corev1.Pod) (*capacity.Devices, error) {
	asked = slices.DeleteFunc(slices.Clone(asked), func(p *corev1.Pod) bool { return pods.IsTerminal(p) || !capacity.MayHaveDevices(p) })
	if len(asked) == 0 {
		return nil, nil
	}
	reader := deviceReader{client: c, devices: &capacity.Devices{Compile: deviceselector.Compile}}
	served, err := reader.readClasses(ctx)
	if err != nil || !served {
		return nil, err
	}
	if slices.ContainsFunc(asked, capacity.HasResourceClaims) {
		if err := reader.readDevices(ctx); err != nil {
			return nil, err
		}
		templates := &resourcev1.ResourceClaimTemplateList{}
		if _, err := reader.list(ctx, "resourceclaimtemplates", templates); err != nil {
			return nil, err
		}
		reader.devices.Templates = lists.Pointers(templates.Items)
	}
	return reader.devices, nil
}

// poolDevices reads the devices of the cluster, to count those of pools. It returns nil if there are
// no DeviceClasses or if the user is not allowed to list the devices; problem then explains why.
func poolDevices(ctx context.Context, c client.Client) (devices *capacity.Devices, problem string, err error) {
	reader := deviceReader{client: c, devices: &capacity.Devices{Compile: deviceselector.Compile}}
	if served, err := reader.readClasses(ctx); err != nil || !served {
		return nil, "", err
	}
	if len(reader.devices.Classes) == 0 && len(reader.devices.Unread) == 0 {
		return nil, "", nil
	}
	if err := reader.readDevices(ctx); err != nil {
		return nil, "", err
	}
	var missing []string
	for _, resource := range reader.devices.Unread {
		if resource == "deviceclasses" || resource == "resourceslices" {
			missing = append(missing, resource+"."+resourcev1.GroupName)
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Sprintf("you may not list %s", strings.Join(missing, " and ")), nil
	}
	return reader.devices, "", nil
}

// deviceReader reads the objects of Dynamic Resource Allocation.
type deviceReader struct {
	client  client.Client
	devices *capacity.Devices
}

// list lists objects of all namespaces. served is false if the cluster does not have such objects.
// If the user is not allowed to list them, it adds the resource to those that are not read.
func (r *deviceReader) list(ctx context.Context, resource string, into client.ObjectList) (served bool, err error) {
	switch err := r.client.List(ctx, into, cmdutil.FromCache()); {
	case apierrors.IsForbidden(err):
		r.devices.Unread = append(r.devices.Unread, resource)
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, err
	}
	return true, nil
}

// readClasses reads the DeviceClasses. served is false if the cluster has no such API.
func (r *deviceReader) readClasses(ctx context.Context) (served bool, err error) {
	classes := &resourcev1.DeviceClassList{}
	served, err = r.list(ctx, "deviceclasses", classes)
	r.devices.Classes = lists.Pointers(classes.Items)
	return served, err
}

// readDevices reads the devices, their taints and the claims that have them. The list of
// DeviceTaintRules is empty on clusters that do not have them yet.
func (r *deviceReader) readDevices(ctx context.Context) error {
	slices, claims, rules := &resourcev1.ResourceSliceList{}, &resourcev1.ResourceClaimList{}, &resourcev1.DeviceTaintRuleList{}
	for _, one := range []struct {
		resource string
		into     client.ObjectList
	}{{"resourceslices", slices}, {"resourceclaims", claims}, {"devicetaintrules", rules}} {
		if _, err := r.list(ctx, one.resource, one.into); err != nil {
			return err
		}
	}
	r.devices.Slices, r.devices.Claims, r.devices.TaintRules = lists.Pointers(slices.Items), lists.Pointers(claims.Items), lists.Pointers(rules.Items)
	return nil
}
