// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	tidekeeperv1 "tidekeeper.dev/tidekeeper/api/v1"
	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/cli/cmdutil"
	"tidekeeper.dev/tidekeeper/internal/kube/lists"
	"tidekeeper.dev/tidekeeper/internal/nodepool/plan"
	"tidekeeper.dev/tidekeeper/internal/text"
	"tidekeeper.dev/tidekeeper/internal/view"
)

// metricsTimeout is the time limit for reading metrics. It is short, because a separate server
// provides the metrics API and may not respond. The rest of the output is useful without metrics.
const metricsTimeout = 3 * time.Second

// problemLimit is the maximum length, in bytes, of the error message of the metrics API in the
// output.
const problemLimit = 200

// ReadMetrics reads the measured usage of all nodes. If the metrics are unavailable, it returns no
// error, and the result contains the reason.
func ReadMetrics(ctx context.Context, e *cmdutil.Env, c client.Client) (view.NodeMetrics, error) {
	config, err := e.Kubeconfig.Config()
	if err != nil {
		return view.NodeMetrics{}, err
	}
	timeout := metricsTimeout
	if config.Timeout > 0 { // --request-timeout
		timeout = min(timeout, config.Timeout)
	}
	bounded, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer := &unstructured.UnstructuredList{}
	answer.SetGroupVersionKind(cmdutil.NodeMetricsKind.GroupVersion().WithKind(cmdutil.NodeMetricsKind.Kind + "List"))
	err = c.List(bounded, answer)
	switch {
	case ctx.Err() != nil:
		return view.NodeMetrics{}, ctx.Err()
	case err != nil:
		return view.NodeMetrics{Problem: problemOf(err, timeout)}, nil
	}
	m := view.NodeMetrics{List: make([]capacity.Metrics, len(answer.Items))}
	for i := range answer.Items {
		m.List[i] = metricsOf(&answer.Items[i])
	}
	return m, nil
}

// problemOf briefly explains why the metrics are unavailable.
func problemOf(err error, timeout time.Duration) string {
	switch {
	case apierrors.IsNotFound(err):
		return "the cluster serves no " + cmdutil.NodeMetricsKind.Group
	case apierrors.IsForbidden(err):
		return "you may not list nodes." + cmdutil.NodeMetricsKind.Group
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("no answer in %s", timeout)
	default:
		_, message := cmdutil.ExplainError(err)
		return text.Shorten(message, problemLimit)
	}
}

// anAmount matches the amounts of resources that are read from the metrics of a node. All other
// strings are ignored: an amount with a huge exponent would take too long to parse.
var anAmount = regexp.MustCompile(`^[0-9]{1,30}(\.[0-9]{1,30})?([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?$`)

// metricsOf converts the metrics of a node from an unstructured NodeMetrics object. It ignores
// malformed values.
func metricsOf(o *unstructured.Unstructured) capacity.Metrics {
	m := capacity.Metrics{Node: o.GetName(), Usage: corev1.ResourceList{}}
	if at, _, err := unstructured.NestedString(o.Object, "timestamp"); err == nil {
		m.Time, _ = time.Parse(time.RFC3339, at)
	}
	usage, _, _ := unstructured.NestedFieldNoCopy(o.Object, "usage")
	amounts, _ := usage.(map[string]any)
	for name, value := range amounts {
		written := fmt.Sprint(value)
		if !anAmount.MatchString(written) {
			continue
		}
		if amount, err := resource.ParseQuantity(written); err == nil {
			m.Usage[corev1.ResourceName(name)] = amount
		}
	}
	return m
}

// usedByPools returns the measured usage of the nodes of each pool, in the order of pools. An entry
// is nil if the usage is unknown. The usage is read from the metrics API. The nodes are listed only
// for their labels, which show to which pools a node belongs.
func usedByPools(ctx context.Context, e *cmdutil.Env, c client.Client, pools []tidekeeperv1.NodePool) ([]*capacity.Used, error) {
	used := make([]*capacity.Used, len(pools))
	if len(pools) == 0 {
		return used, nil
	}
	metrics, err := ReadMetrics(ctx, e, c)
	if err != nil || metrics.Problem != "" {
		return used, err
	}
	nodes := &metav1.PartialObjectMetadataList{}
	nodes.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("NodeList"))
	if err := c.List(ctx, nodes, cmdutil.FromCache()); apierrors.IsForbidden(err) {
		return used, nil
	} else if err != nil {
		return nil, err
	}
	members := lists.Pointers(nodes.Items)
	for i := range pools {
		selector, err := plan.Selector(&pools[i])
		if err != nil {
			continue // The pool's status already reports the invalid selector.
		}
		used[i], _ = metrics.UsedBy(view.MembersOf(members, selector), e.Now())
	}
	return used, nil
}
