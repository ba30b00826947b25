// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"tidekeeper.dev/tidekeeper/sandbox/internal/node"
)

func newNodesAdd(s *target) *cobra.Command {
	var pool, prefix, allocatable, devices, labels, taints string
	count := 1
	cmd := &cobra.Command{
		Use:   "add",
		Short: "Add nodes to a sandbox",
		Long:  "Add nodes to a sandbox, and return once the scheduler can use them.",
		Example: `  # Three nodes of the pool gpu (label node-role.kubernetes.io/gpu="").
  sandbox nodes add --pool gpu --count 3 --allocatable cpu=32,memory=128Gi

  # Two nodes with four devices each, for pods with ResourceClaims of the DeviceClass gpu.example.com.
  sandbox nodes add --pool gpu --count 2 --devices gpu.example.com=4

  # A node with labels and taints.
  sandbox nodes add --name-prefix odd --labels zone=a,disk=ssd --taints dedicated=odd:NoSchedule`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if count < 1 {
				return fmt.Errorf("--count %d: want at least 1", count)
			}
			template, err := parseTemplate(pool, allocatable, labels, taints, devices)
			if err != nil {
				return err
			}
			if prefix == "" {
				prefix = "node"
				if pool != "" {
					prefix = pool
				}
			}
			if problems := validation.IsDNS1123Subdomain(prefix + "-1"); len(problems) > 0 {
				return fmt.Errorf("--name-prefix %q cannot begin the name of a node: %s", prefix, problems[0])
			}
			client, err := s.client(cmd.Context())
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), 2*time.Minute,
				errors.New("the nodes were not usable after 2 minutes: see 'sandbox status'"))
			defer cancel()
			start := time.Now()
			names, err := node.Add(ctx, client, prefix, count, template)
			if err != nil {
				if cause := context.Cause(ctx); cause != nil {
					err = cause
				}
				return err
			}
			added := "1 node"
			which := names[0]
			if count > 1 {
				added = fmt.Sprintf("%d nodes", count)
				which = fmt.Sprintf("%s to %s", names[0], names[count-1])
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Added %s in %.1f s: %s.\n", added, time.Since(start).Seconds(), which)
			return nil
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&pool, "pool", "", "the pool of the nodes: labels them "+node.RolePrefix+`POOL=""`)
	flags.IntVar(&count, "count", count, "how many")
	flags.StringVar(&allocatable, "allocatable", "", "allocatable resources of each node, like cpu=32,memory=128Gi (default cpu=16,memory=64Gi,ephemeral-storage=100Gi,pods=110)")
	flags.StringVar(&devices, "devices", "", "simulated devices of each node, by driver, like gpu.example.com=4, or by driver and model, like gpu.example.com/large=2")
	flags.StringVar(&labels, "labels", "", "labels, like zone=a,disk=ssd")
	flags.StringVar(&taints, "taints", "", "taints, like dedicated=gpu:NoSchedule,spot:NoExecute")
	flags.StringVar(&prefix, "name-prefix", "", `prefix of their names, which continue with a dash and a number (default the pool, else "node")`)
	return cmd
}

// parseTemplate returns a template for new nodes from the values of flags. It rejects values that
// the API server would reject, before any node is created.
func parseTemplate(pool, allocatable, labels, taints, devices string) (node.Template, error) {
	t := node.Template{Labels: map[string]string{}, Allocatable: corev1.ResourceList{}, Devices: devices}
	for _, item := range items(labels) {
		key, value, ok := strings.Cut(item, "=")
		if !ok {
			return t, fmt.Errorf("--labels %q: want key=value", item)
		}
		if err := checkLabel(key, value); err != nil {
			return t, fmt.Errorf("--labels %q: %w", item, err)
		}
		t.Labels[key] = value
	}
	if pool != "" {
		if err := checkLabel(node.RolePrefix+pool, ""); err != nil {
			return t, fmt.Errorf("--pool %q: %w", pool, err)
		}
		t.Labels[node.RolePrefix+pool] = ""
	}
	for _, item := range items(allocatable) {
		name, value, _ := strings.Cut(item, "=")
		quantity, err := resource.ParseQuantity(value)
		if err != nil || quantity.Sign() < 0 {
			return t, fmt.Errorf("--allocatable %q: want resource=quantity, like cpu=32 or memory=128Gi", item)
		}
		if problems := validation.IsQualifiedName(name); len(problems) > 0 {
			return t, fmt.Errorf("--allocatable %q: %s", item, problems[0])
		}
		// A resource name without a domain must be one of the standard Kubernetes resources; any
		// other name is probably misspelled.
		if _, known := node.DefaultAllocatable()[corev1.ResourceName(name)]; !known &&
			!strings.Contains(name, "/") && !strings.HasPrefix(name, corev1.ResourceHugePagesPrefix) {
			return t, fmt.Errorf("--allocatable %q: no resource is named %q; a resource of your own needs a domain, like example.com/%s", item, name, name)
		}
		t.Allocatable[corev1.ResourceName(name)] = quantity
	}
	for _, item := range items(taints) {
		taint, err := parseTaint(item)
		if err != nil {
			return t, fmt.Errorf("--taints %q: %w", item, err)
		}
		t.Taints = append(t.Taints, taint)
	}
	if devices != "" {
		if _, err := node.ParseDevices(devices); err != nil {
			return t, fmt.Errorf("--devices %w", err)
		}
	}
	return t, nil
}

func parseTaint(item string) (corev1.Taint, error) {
	keyValue, effect, _ := strings.Cut(item, ":")
	key, value, _ := strings.Cut(keyValue, "=")
	taint := corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
	switch taint.Effect {
	case corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute:
	default:
		return taint, errors.New("want key=value:Effect or key:Effect, with the effect NoSchedule, PreferNoSchedule or NoExecute")
	}
	return taint, checkLabel(key, value)
}

func checkLabel(key, value string) error {
	if problems := validation.IsQualifiedName(key); len(problems) > 0 {
		return errors.New(problems[0])
	}
	if problems := validation.IsValidLabelValue(value); len(problems) > 0 {
		return errors.New(problems[0])
	}
	return nil
}

func items(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}
