// Copyright The Tidekeeper Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tidekeeper.dev/tidekeeper/internal/capacity"
	"tidekeeper.dev/tidekeeper/internal/kube/pods"
	"tidekeeper.dev/tidekeeper/internal/workload"
)

const (
	// likeAge is the time for which the answer to a lookup of a workload's pod is cached. The
	// lookup sends two API requests.
	likeAge = 30 * time.Second
	// longestLike is the maximum length of a workload's name with its namespace. Names of existing
	// workloads are always shorter.
	longestLike = 400
	// mostWorkloads is the maximum number of workloads that the capacity page suggests for
	// selection.
	mostWorkloads = 300
)

// podOfLike is a pod with the properties of a workload's pods, or the error if the workload could
// not be read. lacks explains which defaults the API server did not set on the pod; "" if it set
// all.
type podOfLike struct {
	pod   *corev1.Pod
	lacks string
	err   error
}

// likeName is a workload that a user entered on the capacity page. The field like is TYPE/NAME. An
// empty namespace means the default namespace of the kubeconfig context.
type likeName struct{ namespace, like string }

// likeNameOf parses a workload that a user entered as [NAMESPACE/]TYPE/NAME. The parameter
// namespace is the default namespace.
func likeNameOf(text, namespace string) (likeName, error) {
	parts := strings.Split(text, "/")
	if len(parts) == 3 {
		namespace, parts = parts[0], parts[1:]
	}
	if len(text) > longestLike || len(parts) != 2 || slices.Contains(parts, "") || namespace == "" && strings.HasPrefix(text, "/") {
		return likeName{}, fmt.Errorf("%s: write NAMESPACE/TYPE/NAME, such as shop/deployment/web", "As workload")
	}
	return likeName{namespace, strings.Join(parts, "/")}, nil
}

// askLike returns a pod with the properties of the pods of the workload that the user entered, and
// the equivalent kubectl tide command. It fills the input fields of the capacity page with the
// requests of the pod.
func (d *whatIf) askLike(namespace string, podLike func(likeName) podOfLike) (*corev1.Pod, []string, error) {
	d.Fields = slices.Clone(formFields)
	for i := range d.Fields {
		d.Fields[i].Off = true
	}
	name, err := likeNameOf(d.Like, namespace)
	if err != nil {
		return nil, []string{"pools", "fit"}, err
	}
	command := []string{"pools", "fit", "--like", name.like}
	if name.namespace != "" {
		command = append(command, "-n", name.namespace)
	}
	of := podLike(name)
	if of.err != nil {
		return nil, command, of.err
	}
	d.Lacks = of.lacks
	requests := capacity.RequestsOf(of.pod)
	for i := range d.Fields {
		if amount, asks := requests[d.Fields[i].resource]; asks {
			d.Fields[i].Value = amount.String()
		}
	}
	return of.pod, command, nil
}

// workloadNames lists at most mostWorkloads workloads with pods in the page's namespaces, as
// NAMESPACE/TYPE/NAME.
func workloadNames(list []*corev1.Pod, a address) []string {
	type owner struct{ namespace, kind, name string }
	names, known := map[string]bool{}, map[owner]bool{}
	for _, pod := range list {
		controller := metav1.GetControllerOfNoCopy(pod)
		if controller == nil {
			continue
		}
		by := owner{pod.Namespace, controller.Kind, controller.Name}
		if known[by] {
			continue
		}
		known[by] = true
		kind, name := pods.WorkloadOf(controller, pod.Labels)
		if k := workload.Named(kind); k != nil && a.shows(pod.Namespace) {
			names[pod.Namespace+"/"+strings.ToLower(k.Kind)+"/"+name] = true
		}
	}
	sorted := slices.Sorted(maps.Keys(names))
	return sorted[:min(len(sorted), mostWorkloads)]
}
